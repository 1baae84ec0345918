#include "planner/load/capacity.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "analysis/estimate/alternatives.hpp"
#include "analysis/estimate/lookup_curve.hpp"
#include "analysis/planning/request_laws.hpp"
#include "planner/benchmark_command.hpp"
#include "planner/draft_pairs.hpp"
#include "planner/lookup_drafts.hpp"
#include "planner/model_names.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

using sim::CapacityScenario;

constexpr auto largest_served_gamma = static_cast<std::int64_t>(capacity_ranges.gamma.hi);
constexpr std::int64_t usual_largest_gamma = 8;
constexpr std::size_t most_scenarios = 256;
/// Worlds of each alternative.
constexpr std::size_t capacity_worlds = 200;
/// Tokens per block of the cache, as engines have it unless told otherwise.
constexpr std::int64_t cache_block_tokens = 16;
/// Requests of a run at most, where nobody says how many.
constexpr std::int64_t most_requests = 8000;
/// Relative difference of the mean time per token by both engines above which a warning says so.
constexpr double most_engines_difference = 0.2;
/// Times of one request that the arrivals of a run are to last.
constexpr double shortest_run = 10;

void require_rising(std::string_view option, const std::vector<std::int64_t>& values, LegalRange range) {
  for (const std::int64_t value : values) {
    require_in(option, value, range);
    range.lo = static_cast<double>(value + 1);
  }
}

/// Those of the options; what is not given is legal.
void require_ranges(const CapacityQuestion& q) {
  constexpr const CapacityRanges& legal = capacity_ranges;
  require_in("--arrival-rate", q.arrival_rate, legal.arrival_rate);
  require_in("--concurrency", q.concurrency, legal.concurrency);
  require_in("--outside-ms", q.outside_ms, legal.outside_ms);
  require_in("--prefix-cache-hit-rate", q.prefix_cache_hit_rate, legal.prefix_cache_hit_rate);
  require_in("--alpha-spread", q.alpha_spread, legal.alpha_spread);
  require_in("--gpus", q.gpus, legal.gpus);
  require_in("--tensor-parallel-size", q.tensor_parallel, legal.tensor_parallel);
  require_in("--prefill-tokens-per-second", q.prefill_tokens_per_second, legal.prefill_tokens_per_second);
  require_in("--replicas", q.replicas, legal.replicas);
  require_in("--price", q.price, legal.price);
  require_in("--gpu-memory-utilization", q.gpu_memory_utilization, legal.gpu_memory_utilization);
  require_in("--activation-reserve-gb", q.activation_reserve_gb, legal.activation_reserve_gb);
  require_in("--kv-cache-tokens", q.kv_cache_tokens, legal.kv_cache_tokens);
  require_rising("--max-num-seqs", q.max_num_seqs, legal.max_num_seqs);
  require_in("--max-num-batched-tokens", q.max_num_batched_tokens, legal.max_num_batched_tokens);
  if (q.gamma) require_rising("--gamma", *q.gamma, legal.gamma);
  require_in("--ttft-ms", q.ttft_ms, legal.ttft_ms);
  require_in("--tpot-ms", q.tpot_ms, legal.tpot_ms);
  require_in("--percentile", q.percentile, legal.percentile);
  require_in("--replications", q.replications, legal.replications);
  require_in("--num-requests", q.workload.requests, legal.num_requests);
  require_in("--seed", q.seed, legal.seed);
  require_in("--threads", q.threads, legal.threads);
}

std::vector<std::int64_t> gammas_of(const CapacityQuestion& q, bool has_acceptance) {
  std::vector<std::int64_t> gammas;
  if (q.gamma) {
    gammas = *q.gamma;
    std::erase(gammas, 0);  // plain decoding is always there
    if (!gammas.empty() && !has_acceptance) {
      refuse("--gamma", fmt::format("{}", fmt::join(gammas, ",")),
             "0 without an acceptance: one of --alpha, --counters, --trace, ... is needed");
    }
    return gammas;
  }
  const std::int64_t last = has_acceptance && q.schedule.empty() ? usual_largest_gamma : 0;
  for (std::int64_t gamma = 1; gamma <= last; ++gamma) gammas.push_back(gamma);
  return gammas;
}

std::vector<sim::GammaFrom> engine_schedule(const std::vector<planning::ScheduleStretch>& stretches) {
  std::vector<sim::GammaFrom> schedule;
  for (const planning::ScheduleStretch& stretch : stretches) {
    if (stretch.gamma > largest_served_gamma) {
      refuse("--schedule", fmt::format("{}-{}:{}", stretch.batch_low, stretch.batch_high, stretch.gamma),
             fmt::format("of gammas up to {}", largest_served_gamma));
    }
    schedule.push_back({stretch.batch_low, stretch.gamma});
  }
  return schedule;
}

/// Each that drafts, with a budget of verified drafts, behind them.
void add_budgets(std::vector<CapacityScenario>& kinds) {
  const std::size_t all = kinds.size();
  for (std::size_t i = 0; i < all; ++i) {
    if (sim::is_plain(kinds[i])) continue;
    CapacityScenario with = kinds[i];
    with.name += " budgeted";
    with.engine.verification_budget = true;
    kinds.push_back(std::move(with));
  }
}

/// Plain decoding first; the cache is not yet set.
std::vector<CapacityScenario> scenarios_of(const CapacityQuestion& q, bool has_acceptance) {
  std::vector<CapacityScenario> kinds = {{"plain", {}}};
  for (const std::int64_t gamma : gammas_of(q, has_acceptance)) {
    kinds.push_back({fmt::format("gamma {}", gamma), {}});
    kinds.back().engine.schedule = {{1, gamma}};
  }
  if (!q.schedule.empty()) {
    kinds.push_back({"schedule", {}});
    kinds.back().engine.schedule = engine_schedule(q.schedule);
  }
  if (q.verification_budget) add_budgets(kinds);
  std::vector<CapacityScenario> scenarios;
  for (const CapacityScenario& kind : kinds) {
    for (const std::int64_t num_seqs : q.max_num_seqs) {
      CapacityScenario& scenario = scenarios.emplace_back(kind);
      scenario.engine.max_num_seqs = num_seqs;
      scenario.engine.max_num_batched_tokens = q.max_num_batched_tokens;
      scenario.engine.block_size = cache_block_tokens;
      scenario.engine.prefix_cache_hit_rate = q.prefix_cache_hit_rate;
      scenario.engine.decode_only = q.decode_only;
      scenario.engine.prefill_first = q.prefill_first;
    }
  }
  if (scenarios.size() > most_scenarios) {
    throw QuestionError(fmt::format("--gamma and --max-num-seqs give {} scenarios, but must give at most {}",
                                    scenarios.size(), most_scenarios));
  }
  return scenarios;
}

std::int64_t max_gamma_of(const CapacityScenario& scenario) {
  std::int64_t largest = 0;
  for (const sim::GammaFrom& stretch : scenario.engine.schedule) largest = std::max(largest, stretch.gamma);
  return largest;
}

// ---- acceptance

std::vector<sim::RequestAcceptance> request_acceptances(const std::vector<planning::ConditionalRates>& laws) {
  std::vector<sim::RequestAcceptance> acceptances;
  for (const planning::ConditionalRates& law : laws) acceptances.push_back({law});
  return acceptances;
}

/// What is stated of rounds; null where it is of drafts alone, of which a hit rate says how many there are.
const StatedAcceptance* stated_of_rounds(const Acceptance& acceptance) {
  const bool of_drafts = std::dynamic_pointer_cast<const estimate::LookupCurve>(acceptance.curve) != nullptr;
  return acceptance.stated && !of_drafts ? &*acceptance.stated : nullptr;
}

bool is_one_rate(const Acceptance& acceptance) {
  const StatedAcceptance* const stated = stated_of_rounds(acceptance);
  return stated != nullptr && !stated->typed;
}

std::vector<planning::RequestRate> rates_of(const CapacityQuestion& q, const Acceptance& acceptance,
                                            std::int64_t max_gamma) {
  if (!q.alpha_spread) return acceptance.request_rates;
  if (acceptance.request_rates.size() > 1) {
    throw QuestionError("--alpha-spread is given, but the files hold the rates of single requests");
  }
  const double alpha = acceptance.alpha.value_or(0);
  if (!(alpha > 0 && alpha < 1 && *q.alpha_spread * *q.alpha_spread < alpha * (1 - alpha))) {
    refuse("--alpha-spread", fmt::format("{}", *q.alpha_spread),
           fmt::format("below {}, the largest that a rate of {} can have",
                       brief(std::sqrt(std::max(0.0, alpha * (1 - alpha)))), brief(alpha)));
  }
  return planning::beta_rates(alpha, *q.alpha_spread, max_gamma);
}

/// At least one, the first from context 0 on.
using CurvesByContext = std::vector<planning::ContextAcceptance>;

CurvesByContext curves_of(const Acceptance& acceptance) {
  return acceptance.by_context.empty() ? CurvesByContext{{0, acceptance.curve}} : acceptance.by_context;
}

/// With what others have from a context on.
void add_from_context(double context, std::vector<sim::RequestAcceptance> laws,
                      std::vector<sim::RequestAcceptance>& into) {
  for (std::size_t i = 0; i < into.size(); ++i) {
    into[i].from_contexts.push_back({std::llround(std::ceil(context)), std::move(laws[i].conditional)});
  }
}

/// The laws of requests, from their acceptance together.
class RequestLaws {
 public:
  RequestLaws(const CapacityQuestion& q, const Acceptance& acceptance, std::int64_t max_gamma)
      : question_(q), acceptance_(acceptance), max_gamma_(max_gamma), rates_(rates_of(q, acceptance, max_gamma)),
        curves_(curves_of(acceptance)) {}

  std::vector<sim::RequestAcceptance> estimate() const {
    return by_context([&](std::size_t part) {
      std::vector<double> tokens = {1};
      for (std::int64_t gamma = 1; gamma <= max_gamma_; ++gamma)
        tokens.push_back(curves_[part].acceptance->tokens_per_step(gamma).value);
      return tokens;
    });
  }

  /// capacity_worlds of each alternative.
  std::vector<sim::CapacityWorld> worlds() const {
    std::vector<estimate::WorldsByAlternative> parts;
    std::size_t alternatives = 1, each = 1;
    for (const planning::ContextAcceptance& part : curves_) {
      parts.emplace_back(
          part.acceptance->draw(max_gamma_, {capacity_worlds, static_cast<std::uint64_t>(question_.seed)}));
      alternatives = std::max(alternatives, parts.back().worlds.size());
      each = std::max(each, parts.back().most());
    }
    std::vector<sim::CapacityWorld> worlds;
    for (std::size_t alternative = 0; alternative < alternatives; ++alternative) {
      const std::size_t first = worlds.size();
      for (std::size_t w = 0; w < each; ++w) {
        const auto tokens_of = [&](std::size_t part) {
          std::vector<double> tokens;
          for (std::size_t gamma = 0; gamma < parts[part].tokens.size(); ++gamma)
            tokens.push_back(parts[part].at(gamma, alternative, w));
          return tokens;
        };
        worlds.push_back({{}, by_context(tokens_of), static_cast<int>(alternative)});
      }
      for (std::size_t w = each; w < capacity_worlds; ++w) worlds.push_back(worlds[first + w % each]);
    }
    return worlds;
  }

 private:
  /// @param tokens_of  tokens per step of gammas 0, 1, ... of a numbered part of the curves
  template <class TokensOf>
  std::vector<sim::RequestAcceptance> by_context(const TokensOf& tokens_of) const {
    std::vector<sim::RequestAcceptance> laws;
    for (std::size_t part = 0; part < curves_.size(); ++part) {
      std::vector<sim::RequestAcceptance> here = with(planning::conditionals_of(tokens_of(part)));
      if (part == 0) {
        laws = std::move(here);
      } else {
        add_from_context(curves_[part].from, std::move(here), laws);
      }
    }
    return laws;
  }

  std::vector<sim::RequestAcceptance> with(const planning::ConditionalRates& pooled) const {
    if (rates_.size() < 2) return request_acceptances({pooled});
    if (!is_one_rate(acceptance_)) return request_acceptances(planning::laws_by_request(rates_, pooled));
    // A world's rate may be too near to 0 or 1 to be spread so far.
    if (*question_.alpha_spread * *question_.alpha_spread >= pooled.front() * (1 - pooled.front()))
      return request_acceptances({pooled});
    std::vector<planning::ConditionalRates> constant;
    for (const planning::RequestRate& rate :
         planning::beta_rates(pooled.front(), *question_.alpha_spread, max_gamma_))
      constant.push_back({rate.rate});
    return request_acceptances(constant);
  }

  const CapacityQuestion& question_;
  const Acceptance& acceptance_;
  std::int64_t max_gamma_;
  std::vector<planning::RequestRate> rates_;
  CurvesByContext curves_;
};

/// World i of an alternative has replicate i modulo their number.
void take_replicates(Capacity& c) {
  if (c.worlds.empty()) c.worlds.resize(capacity_worlds);
  const std::size_t replicates = c.simulation.cost->replicates();
  for (std::size_t w = 0; replicates > 0 && w < c.worlds.size(); ++w)
    c.worlds[w].replicate = w % capacity_worlds % replicates;
}

void take_laws(const Acceptance& acceptance, std::int64_t max_gamma, const std::vector<std::string>& model_names,
               Capacity& c) {
  const RequestLaws laws(c.question, acceptance, max_gamma);
  c.acceptance = acceptance.text;
  c.is_range = acceptance.stated && acceptance.stated->is_range();
  c.engine = acceptance.engine.value_or("");
  c.simulation.acceptance = laws.estimate();
  c.acceptance_laws = c.simulation.acceptance.size();
  c.worlds = laws.worlds();
  c.files.insert(c.files.end(), acceptance.files.begin(), acceptance.files.end());
  append_new(c.presets, acceptance.presets);
  append_new(c.assumptions, acceptance.assumptions);
  append(c.warnings, acceptance.warnings);
  if (auto warning = other_model(acceptance.model, model_names)) c.warnings.push_back(*warning);
}

// ---- cost and memory

void assume(Capacity& c, std::string name, nlohmann::ordered_json value, bool by_user) {
  c.assumptions.push_back({std::move(name), std::move(value), by_user ? "user" : "default"});
}

void remember_memory(const CapacityScenario& scenario, std::int64_t tokens,
                     const std::optional<planning::KvMemory>& memory, Capacity& c) {
  const std::int64_t ahead = planning::lookahead_tokens(scenario.engine.max_num_seqs, max_gamma_of(scenario));
  c.memory.push_back({tokens, std::max<std::int64_t>(0, tokens - ahead), memory});
}

void warn_of_length(const cost::ModelSpec& model, Capacity& c) {
  const sim::Workload& workload = c.simulation.workload;
  double longest = workload.prompt_tokens.mean + workload.output_tokens.mean;
  if (!workload.recorded.empty()) longest = 0;
  for (const sim::SimulatedRequest& request : workload.recorded) {
    longest = std::max(longest, static_cast<double>(request.prompt_tokens + request.output_tokens));
  }
  const auto warning = context_beyond_model(
      workload.recorded.empty() ? "the mean request with its answer" : "the longest request with its answer", longest,
      model);
  if (warning) c.warnings.push_back(*warning);
}

[[noreturn]] void refuse_memory(const cost::RooflineOptions& placed, const planning::ReplicaHolds& holds,
                                const planning::KvMemory& memory, const CapacityScenario& scenario) {
  const auto gigabytes = [](double bytes) { return fmt::format("{:.1f} GB", bytes / bytes_per_gigabyte); };
  const std::string draft =
      holds.draft ? fmt::format(" and {} of the draft", gigabytes(memory.draft_weight_bytes)) : "";
  const std::string states =
      memory.state_bytes > 0 ? fmt::format(" beside {} of states", gigabytes(memory.state_bytes)) : "";
  const auto enough = planning::gpus_that_hold(holds);
  const std::string remedy =
      enough ? fmt::format("divided over {} GPUs they leave room{}", *enough, without_link(placed.hardware))
             : std::string("no number of GPUs up to 1024 has room");
  const double missing = static_cast<double>(holds.block_size) * memory.bytes_per_token - memory.cache_bytes;
  throw QuestionError(fmt::format(
      "--tensor-parallel-size is {}, but {} of target weights per GPU{}{} leave no room for a cache in the {} that "
      "{} has to give to {}: {} are missing; {}",
      placed.target.tensor_parallel, gigabytes(memory.target_weight_bytes), draft, states,
      gigabytes(memory.usable_bytes), placed.hardware.name, scenario.name, gigabytes(missing), remedy));
}

void take_memory(const cost::RooflineOptions& placed, CapacityScenario& scenario, Capacity& c) {
  const CapacityQuestion& q = c.question;
  planning::ReplicaHolds holds;
  holds.memory_bytes_per_gpu = placed.hardware.memory_bytes.value;
  holds.utilization = q.gpu_memory_utilization;
  holds.reserve_bytes_per_gpu = q.activation_reserve_gb * bytes_per_gigabyte;
  holds.target = placed.target;
  if (!sim::is_plain(scenario)) holds.draft = placed.draft;
  holds.block_size = cache_block_tokens;
  holds.max_num_seqs = scenario.engine.max_num_seqs;
  const planning::KvMemory memory = planning::kv_memory(holds);
  if (memory.usable_bytes <= 0) {
    refuse("--activation-reserve-gb", brief(q.activation_reserve_gb),
           fmt::format("below {:.1f}, the share of {} that --gpu-memory-utilization takes",
                       holds.memory_bytes_per_gpu * holds.utilization / bytes_per_gigabyte, placed.hardware.name));
  }
  if (memory.blocks == 0) refuse_memory(placed, holds, memory, scenario);
  // Groups are engines of their own, here taken as one that has what all of them have.
  const std::int64_t groups = placed.target.data_parallel;
  scenario.engine.max_num_seqs *= groups;
  scenario.engine.max_num_batched_tokens *= groups;
  scenario.engine.cache_blocks = groups * memory.blocks;
  remember_memory(scenario, groups * memory.tokens, memory, c);
}

/// Refuses a draft that cannot draft for the target, and warns of mismatched models; null if unknown.
void require_pair(const Cost& cost, const cost::ModelSpec* draft, const cost::ModelSpec* target, Capacity& c) {
  if (const auto why = unfit_head(draft, target)) {
    throw QuestionError(fmt::format("--draft-model is {}, but {}", cost.draft.model.value_or(""), *why));
  }
  if (auto warning = mismatch(cost.kind, draft, target)) append_new(c.warnings, {*std::move(warning)});
}

void take_hardware(const Cost& cost, Capacity& c) {
  const cost::RooflineOptions& placed = cost.roofline->options();
  if (placed.draft) require_pair(cost, &placed.draft->model, &placed.target.model, c);
  c.calibrated = cost.roofline->is_calibrated();
  warn_of_length(placed.target.model, c);
  if (placed.draft && cost.kind != cost::DraftKind::mtp) warn_of_length(placed.draft->model, c);
  c.simulation.cost = cost.iterations ? cost.iterations : cost.roofline;
  c.simulation.gpus_per_replica = placed.target.accelerators();
  for (CapacityScenario& scenario : c.simulation.scenarios) take_memory(placed, scenario, c);
  // Groups have their own places, which a run must fill.
  sim::Workload& workload = c.simulation.workload;
  if (placed.target.data_parallel > 1 && !workload.requests && !workload.clients)
    workload.requests = std::min(placed.target.data_parallel * workload.open_requests(), most_requests);
}

void take_rounds(const Cost& cost, Capacity& c) {
  const CapacityQuestion& q = c.question;
  if (!cost.rounds->in_seconds()) throw QuestionError("--cost: times are no seconds");
  if (!q.kv_cache_tokens) {
    throw QuestionError("--kv-cache-tokens is missing: without --hardware nothing else says it");
  }
  require_pair(cost, cost::model_preset(cost.draft.model.value_or("")), cost::model_preset(cost.target_model), c);
  c.simulation.cost = cost::iterations_of(cost.rounds, {q.prefill_tokens_per_second});
  c.simulation.gpus_per_replica = q.tensor_parallel.value_or(1);
  for (CapacityScenario& scenario : c.simulation.scenarios) {
    scenario.engine.cache_blocks = std::max<std::int64_t>(1, *q.kv_cache_tokens / cache_block_tokens);
    remember_memory(scenario, *q.kv_cache_tokens, std::nullopt, c);
  }
  const bool stated = q.prefill_tokens_per_second.has_value();
  assume(c, "prompts", stated ? "priced by their own speed" : "priced as further positions of the same pass", stated);
}

void take_cost(const Cost& cost, Capacity& c) {
  c.served_model = cost.target_model;
  c.draft_kind = cost.kind;
  c.files.insert(c.files.end(), cost.files.begin(), cost.files.end());
  append_new(c.presets, cost.presets);
  append_new(c.assumptions, cost.assumptions);
  append(c.warnings, cost.warnings);
  if (cost.rounds) c.impossible = cost.rounds->impossible();
  if (cost.roofline) return take_hardware(cost, c);
  take_rounds(cost, c);
}

/// The target's names from all sources.
std::vector<std::string> model_names(const Cost& cost) {
  const auto asked = cost.target_model.empty() ? std::nullopt : std::optional(cost.target_model);
  return names_of(asked, cost.roofline ? &cost.roofline->options().target.model : nullptr);
}

bool follows_context(const Capacity& c) {
  const std::vector<sim::RequestAcceptance>& laws = c.simulation.acceptance;
  return !laws.empty() && !laws.front().from_contexts.empty();
}

void add_assumptions(bool by_hardware, Capacity& c) {
  const CapacityQuestion& q = c.question;
  const bool recorded = !q.workload.recorded.empty();
  assume(c, "scenarios compared",
         q.concurrency       ? "at equal concurrency"
         : c.asks_for_load() ? "at equal arrival rate"
                             : "at the largest load of each",
         false);
  assume(c, "arrivals",
         q.concurrency ? "all clients begin at once, and send again when their last request has ended"
         : recorded    ? "as recorded"
                       : "Poisson",
         recorded && !q.concurrency);
  const auto in_file = static_cast<std::int64_t>(q.workload.recorded.size());
  if (recorded && !q.concurrency && q.workload.open_requests() < in_file) {
    c.warnings.push_back(
        {"requests_left_out", fmt::format("a run has {} requests, taken in order from a place of its own among the {} "
                                          "recorded ones; --num-requests {} runs all of them",
                                          q.workload.open_requests(), in_file, in_file)});
  }
  if (q.verification_budget)
    assume(c, "budgets of verified drafts", "by what was accepted of each request before, at no cost", false);
  if (recorded && q.arrival_rate) assume(c, "gaps between arrivals", "scaled to --arrival-rate", true);
  if (!c.acceptance.empty()) {
    assume(c, "requests' acceptance",
           fmt::format("{}{}",
                       c.acceptance_laws > 1 ? "of their own, kept from the first token to the last" : "one for all",
                       follows_context(c) ? ", changing as their contexts grow" : ""),
           q.alpha_spread.has_value());
  }
  const CapacityQuestion usual;
  if (by_hardware) {
    assume(c, "gpu_memory_utilization", q.gpu_memory_utilization,
           q.gpu_memory_utilization != usual.gpu_memory_utilization);
    assume(c, "activation_reserve_gb", q.activation_reserve_gb, q.activation_reserve_gb > 0);
  }
  assume(c, "max_num_seqs", fmt::format("{}", fmt::join(q.max_num_seqs, ",")), q.max_num_seqs != usual.max_num_seqs);
  assume(c, "max_num_batched_tokens", q.max_num_batched_tokens,
         q.max_num_batched_tokens != usual.max_num_batched_tokens);
  if (q.prefill_first) assume(c, "iterations", "prompts alone, before rounds", true);
}

// ---- notes on the answer

/// Warns if the recommended scenario's load is within the simulation's error of the largest one.
void warn_of_edge(Capacity& c) {
  if (!c.asks_for_load() || !c.answer().recommended) return;
  const sim::ScenarioCapacity& s = c.scenarios()[*c.answer().recommended];
  const sim::CapacityLimits& limits = c.simulation.limits;
  const auto check = [&](std::string_view what, const auto& percentiles, const std::optional<double>& limit) {
    if (!limit || !percentiles || percentiles->asked.value <= *limit) return;
    c.warnings.push_back(
        {"load_within_error_of_limit",
         fmt::format("{} of {} is {} ms at p{} of all runs' requests, above its limit: the load is so close to the "
                     "largest one that some runs take it and others do not; more --replications or --num-requests tell",
                     what, s.scenario.name, brief(1000 * percentiles->asked.value), brief(limits.percentile))});
  };
  check("time to first token", s.ttft_seconds, limits.ttft_seconds);
  check("time per output token", s.tpot_seconds, limits.tpot_seconds);
}

/// True if a round of the scenario at this batch, or plain decoding there, lies outside of what was measured.
bool is_extrapolated(const cost::RoundCost& rounds, const sim::ScenarioCapacity& scenario, double batch,
                     double context) {
  cost::RoundPoint point;
  point.batch = std::max(1.0, batch);
  point.context = context;
  if (!(scenario.mean_batch.value > 0)) return false;
  if (rounds.extrapolates(point)) return true;
  for (const sim::GammaFrom& stretch : scenario.scenario.engine.schedule) {
    if (static_cast<double>(stretch.batch_low) <= point.batch) point.gamma = stretch.gamma;
  }
  return rounds.extrapolates(point);
}

/// By the rule of plans, at the mean batch and the context halfway through the output.
void mark_extrapolated_prices(const Cost& cost, Capacity& c) {
  const double context = c.simulation.workload.middle_context();
  std::string first;
  for (const sim::ScenarioCapacity& s : c.scenarios()) {
    const double batch = s.mean_batch.value, largest = s.largest_mean_batch;
    c.price_extrapolated.push_back(is_extrapolated(*cost.rounds, s, batch, context));
    c.largest_extrapolated.push_back(is_extrapolated(*cost.rounds, s, largest, context));
    const std::size_t i = c.price_extrapolated.size() - 1;
    if (!first.empty() || !c.rests_on_extrapolated(i)) continue;
    first = c.price_extrapolated[i]
                ? fmt::format("{} runs at a mean batch of {}", s.scenario.name, brief(batch, 3))
                : fmt::format("{} takes its largest load at a mean batch of {}", s.scenario.name, brief(largest, 3));
  }
  if (first.empty()) return;
  c.warnings.push_back(
      {"price_extrapolated",
       fmt::format("{} and a context of {}, outside of what was measured", first, brief(context, 4))});
}

/// Warns if the formulas and the simulation disagree about the scenario shown.
void warn_of_engines(Capacity& c) {
  const sim::ScenarioCapacity& s = c.scenarios()[c.shown()];
  const auto& difference = s.engines_relative_difference;
  if (!s.steady || !s.tpot_seconds || !difference || std::abs(*difference) <= most_engines_difference) return;
  const sim::Workload& workload = c.simulation.workload;
  std::string why = "the formulas are rough where few requests run together or prompts take most of the time";
  const double lasts = static_cast<double>(workload.open_requests()) / s.at_requests_per_second;
  const double takes = s.steady->tpot_seconds * workload.output_tokens.mean;
  if (!workload.recorded.empty()) {
    why = "the formulas assume that requests come one by one, and recorded ones may not";
  } else if (!workload.clients && lasts < shortest_run * takes) {
    why = fmt::format(
        "the load is not stationary, since the {} requests of a run arrive within {} s while one of them takes {} s by "
        "the formulas; more --num-requests tell",
        workload.open_requests(), brief(lasts, 3), brief(takes, 3));
  }
  c.warnings.push_back(
      {"engines_disagree",
       fmt::format("the mean time per output token of {} by steady state differs by {} from the "
                   "simulated one, more than {}: {}",
                   s.scenario.name, percent(std::abs(*difference)), percent(most_engines_difference), why)});
}

/// Warns if the requests of a run, by the user, are too few for the batch to fill before they count, and if
/// replications are so few that their intervals say little.
void warn_of_few_runs(Capacity& c) {
  const sim::ScenarioCapacity& s = c.scenarios()[c.shown()];
  const sim::Workload& workload = c.simulation.workload;
  if (workload.requests && !workload.clients) {
    const double least = sim::least_requests(s.mean_batch.value);
    if (static_cast<double>(*workload.requests) < least) {
      c.warnings.push_back(
          {"short_runs",
           fmt::format("the {} requests of a run are over before the batch of {} has filled, so that times "
                       "are too short and loads too large: --num-requests {} or more tell",
                       *workload.requests, s.scenario.name, brief(std::ceil(least), 6))});
    }
  }
  constexpr std::int64_t enough_replications = 3;
  if (c.question.replications < enough_replications) {
    c.warnings.push_back({"few_replications",
                          "two runs know little of how far they err: a 95% interval is 12.7 standard errors to either "
                          "side, where four runs, the default, leave 3.2"});
  }
}

/// Warns if more requests run together than were timed.
void warn_of_batch(const Cost& cost, Capacity& c) {
  const sim::ScenarioCapacity& s = c.scenarios()[c.shown()];
  if (!(s.mean_batch.value > 0)) return;
  const double batch = std::max(1.0, std::round(s.mean_batch.value));
  const std::string about = cost.rounds->about(batch, c.simulation.workload.middle_context());
  if (about.empty()) return;
  c.warnings.push_back({"not_timed", fmt::format("the mean batch of {} is {}, but {}", s.scenario.name,
                                                 brief(s.mean_batch.value), about)});
}

void warn_of_answer(Capacity& c) {
  const auto explain_null = [&](std::string code, std::string message) {
    c.warnings.push_back({std::move(code), std::move(message), true});
  };
  if (!c.answer().recommended) {
    c.warnings.push_back({"no_scenario_meets_the_limits",
                          c.has_limits() ? "no scenario meets the limits at any load, or at the load asked for"
                                         : "no scenario takes the load asked for"});
  }
  warn_of_edge(c);
  if (!c.question.schedule.empty()) {
    const planning::ScheduleStretch& last = c.question.schedule.back();
    const std::int64_t batches = c.question.max_num_seqs.back();
    if (last.batch_high < batches) {
      c.warnings.push_back(
          {"schedule_goes_on", fmt::format("--schedule ends at batch {}; its last gamma, {}, is taken up "
                                           "to batch {}, too",
                                           last.batch_high, last.gamma, batches)});
    }
  }
  if (c.question.verification_budget && c.acceptance_laws < 2) {
    c.warnings.push_back({"requests_alike",
                          "all requests have one acceptance, so that none has more to gain from a budget than another; "
                          "--alpha-spread, counters of requests or a recording tell how they differ"});
  }
  if (c.acceptance.empty()) explain_null("no_acceptance", "nothing is drafted: no acceptance is given");
  if (!c.question.price) explain_null("no_price", "cost_per_million_tokens is null without --price");
  if (!c.scenarios()[c.shown()].steady) {
    explain_null("no_steady_state", "engines_agree is null where the formulas have no equilibrium at the load shown");
  }
}

void warn_of_missing(std::size_t asked, Capacity& c) {
  const std::size_t finished = c.scenarios().size();
  std::string message = fmt::format("interrupted: {} of {} scenarios were simulated", finished, asked);
  if (c.in_worlds.interrupted) message += ", and not all of their worlds, so that no figure has an interval";
  c.warnings.push_back({"partial", message});
}

/// In the progress, the answer and its worlds count alike.
void run(const core::RunHooks& hooks, Capacity& c) {
  constexpr double first = 0.5;
  hooks.tell(0);
  sim::CapacityAnswer answer =
      sim::plan_capacity(c.simulation, {[&](double share) { hooks.tell(first * share); }, hooks.interrupt});
  if (answer.scenarios.empty()) throw QuestionError("interrupted before a scenario was simulated");
  const std::size_t asked = c.simulation.scenarios.size();
  c.simulation.scenarios.resize(answer.scenarios.size());
  c.in_worlds = sim::in_worlds(c.simulation, std::move(answer), c.worlds,
                               {[&](double share) { hooks.tell(first + (1 - first) * share); }, hooks.interrupt});
  hooks.tell(1);
  c.partial = c.answer().interrupted || c.in_worlds.interrupted;
  if (c.partial) warn_of_missing(asked, c);
}

/// @throws QuestionError if a request finds no room in the cache
void simulate(const core::RunHooks& hooks, Capacity& c) {
  try {
    run(hooks, c);
  } catch (const sim::CacheTooSmall& error) {
    const std::string needs = fmt::format("{} needs {} tokens of cache", error.request, error.needed_tokens);
    if (c.question.kv_cache_tokens) {
      refuse("--kv-cache-tokens", fmt::format("{}", *c.question.kv_cache_tokens),
             fmt::format("at least {}: {}", error.needed_tokens, needs));
    }
    throw QuestionError(fmt::format(
        "--tensor-parallel-size is {}, but {}, and these GPUs leave {}; more of them, or shorter requests, do",
        c.simulation.gpus_per_replica, needs, error.cache_tokens));
  }
}

/// The first requests of clients are not counted, nor as many at the end.
void require_enough_requests(const CapacityQuestion& q) {
  if (!q.concurrency || !q.workload.requests) return;
  constexpr std::int64_t least_per_client = 4;
  const std::int64_t replicas = q.replicas.value_or(1);
  const std::int64_t least = least_per_client * ((*q.concurrency + replicas - 1) / replicas);
  if (*q.workload.requests >= least) return;
  refuse("--num-requests", fmt::format("{}", *q.workload.requests),
         fmt::format("at least {}, {} for each client of a replica", least, least_per_client));
}

sim::CapacityQuestion simulation_of(const CapacityQuestion& q, bool has_acceptance) {
  require_enough_requests(q);
  sim::CapacityQuestion simulation;
  simulation.workload = q.workload;
  if (q.arrival_rate) simulation.workload.requests_per_second = q.arrival_rate;
  if (q.concurrency) {
    simulation.workload.requests_per_second.reset();
    simulation.workload.clients = q.concurrency;
  }
  simulation.workload.outside_seconds = q.outside_ms / 1000;
  simulation.scenarios = scenarios_of(q, has_acceptance);
  simulation.limits.percentile = q.percentile;
  // Prompts have a pool, and a limit, of their own.
  if (q.ttft_ms) simulation.limits.ttft_seconds = *q.ttft_ms / 1000;
  if (q.tpot_ms) simulation.limits.tpot_seconds = *q.tpot_ms / 1000;
  simulation.replicas = q.replicas;
  simulation.price_per_gpu_hour = q.price;
  simulation.replications = q.replications;
  simulation.seed = static_cast<std::uint64_t>(q.seed);
  simulation.threads = q.threads;
  return simulation;
}

}  // namespace

std::int64_t CapacityQuestion::largest_gamma(bool has_acceptance) const {
  const std::vector<std::int64_t> gammas = gammas_of(*this, has_acceptance);
  std::int64_t largest = gammas.empty() ? 0 : gammas.back();
  for (const planning::ScheduleStretch& stretch : schedule) largest = std::max(largest, stretch.gamma);
  return largest;
}

namespace {

/// Refuses a budget for rounds that do not state the time of the target's pass, or that verify all that was found.
void require_budget_priced(const Cost& cost, const Capacity& c) {
  if (!c.question.verification_budget) return;
  if (c.acceptance.empty()) refuse("--verification-budget", "on", "absent where nothing is drafted");
  if (cost.draft.states_lookups() || (cost.rounds && cost::looks_up(cost.rounds->kind())))
    refuse("--verification-budget", "on", "absent beside drafts that are looked up, which are verified in full");
  if (cost.rounds && !cost.roofline && !cost.rounds->parts_known({.gamma = 1}))
    refuse("--verification-budget", "on",
           "beside a cost that knows the target's pass by itself, which runs do not tell");
}

Capacity asked_of_found(const std::optional<Acceptance>& acceptance, const Cost& cost,
                        const CapacityQuestion& question) {
  require_ranges(question);
  Capacity c;
  c.question = question;
  c.simulation = simulation_of(question, acceptance.has_value());
  take_cost(cost, c);
  const std::int64_t max_gamma = question.largest_gamma(acceptance.has_value());
  if (acceptance && max_gamma > 0) take_laws(*acceptance, max_gamma, model_names(cost), c);
  take_replicates(c);
  append(c.warnings, calibration_doubts(cost, acceptance && max_gamma > 0 ? &*acceptance : nullptr,
                                        c.simulation.workload.middle_context()));
  require_budget_priced(cost, c);
  add_assumptions(cost.roofline != nullptr, c);
  return c;
}

}  // namespace

Capacity asked_capacity(const std::optional<Acceptance>& acceptance, const Cost& cost,
                        const CapacityQuestion& question) {
  std::optional<Acceptance> found = acceptance;
  Cost of_found = acceptance && acceptance->is_of_llamacpp() ? with_drafts_of_llamacpp(cost) : cost;
  take_draft(found ? &*found : nullptr, of_found);
  return asked_of_found(found, of_found, question);
}

namespace {

/// In the layout that the cost states.
Capacity capacity_in_layout(std::optional<Acceptance> acceptance, Cost cost, const CapacityQuestion& question,
                            const core::RunHooks& hooks) {
  take_draft(acceptance ? &*acceptance : nullptr, cost);
  Capacity c = asked_of_found(acceptance, cost, question);
  simulate(hooks, c);
  mark_extrapolated_prices(cost, c);
  warn_of_batch(cost, c);
  warn_of_engines(c);
  warn_of_few_runs(c);
  warn_of_answer(c);
  return c;
}

void warn_of_gpus(Capacity& c) {
  const std::optional<std::int64_t> needed = c.scenarios()[c.shown()].gpus;
  c.exceeds_gpus = c.asks_for_load() && needed && *needed > *c.question.gpus;
  if (!c.exceeds_gpus) return;
  c.warnings.push_back({"more_gpus_than_given",
                        fmt::format("{} GPUs are wanted for the load, where {} {} given: no layout takes it on fewer",
                                    *needed, *c.question.gpus, *c.question.gpus == 1 ? "is" : "are")});
}

/// Plans plain decoding in the layout that is best for it, where that is not the one of the recommended drafts.
void compare_with_plain_elsewhere(const Cost& cost, const core::RunHooks& hooks, Capacity& c) {
  const LayoutSearch& search = *c.layouts;
  const auto& recommended = c.answer().recommended;
  const std::optional<Layout> layout = search.layout_of_plain();
  if (c.partial || !layout || *layout == search.layouts[search.chosen].layout) return;
  if (!recommended || sim::is_plain(c.scenarios()[*recommended].scenario)) return;
  const Cost placed = in_layout(cost, *layout);
  auto plain = std::make_shared<Capacity>(asked_capacity({}, placed, without_drafts(c.question)));
  for (CapacityScenario& scenario : plain->simulation.scenarios) scenario.name += ", " + text_of(*layout);
  sim::CapacityAnswer answer = sim::plan_capacity(plain->simulation, {{}, hooks.interrupt});
  if (!answer.interrupted) {
    plain->in_worlds =
        sim::in_worlds(plain->simulation, std::move(answer), c.worlds, {{}, hooks.interrupt});
  }
  if (answer.interrupted || plain->in_worlds.interrupted) {
    c.partial = true;
    c.warnings.push_back(
        {"partial", "interrupted before plain decoding was simulated in the layout that is best for it"});
    return;
  }
  mark_extrapolated_prices(placed, *plain);
  c.plain_elsewhere = std::move(plain);
}

}  // namespace

Capacity capacity(const std::optional<Acceptance>& acceptance, const Cost& cost, const CapacityQuestion& question,
                  const core::RunHooks& hooks) {
  require_ranges(question);
  if (acceptance && acceptance->is_of_llamacpp() && !cost.draft.of_llamacpp)
    return capacity(acceptance, with_drafts_of_llamacpp(cost), question, hooks);
  if (!question.gpus) return capacity_in_layout(acceptance, cost, question, hooks);
  if (cost.draft.states_lookups() ||
      (cost::looks_up(cost.kind) && acceptance && acceptance->lookups && acceptance->lookups->hit_rate))
    throw QuestionError("--gpus is given, but does not go with hit rates, stated or counted");
  LayoutSearch search = search_layouts(acceptance, cost, question, {{}, hooks.interrupt});
  const Cost chosen = in_layout(cost, search.layouts[search.chosen].layout);
  Capacity c = capacity_in_layout(acceptance, chosen, question, hooks);
  c.layouts = std::move(search);
  warn_of_gpus(c);
  compare_with_plain_elsewhere(cost, hooks, c);
  return c;
}

std::size_t Capacity::drafting() const {
  std::size_t best = shown();
  if (!sim::is_plain(scenarios()[best].scenario)) return best;
  const auto rate = [this](std::size_t i) { return scenarios()[i].requests_per_second_per_replica.value; };
  for (std::size_t i = 0; i < scenarios().size(); ++i) {
    if (sim::is_plain(scenarios()[i].scenario)) continue;
    if (sim::is_plain(scenarios()[best].scenario) || rate(i) > rate(best)) best = i;
  }
  return best;
}

sim::GpuShares Capacity::gpus_against_plain() const {
  return sim::compare_gpus(in_worlds.scenarios.at(drafting()), of_plain().in_worlds.scenarios.at(of_plain().plain()),
                           in_worlds.alternatives());
}

Capacity::Compared Capacity::compared() const {
  const sim::ScenarioCapacity &ours = scenarios()[drafting()], &theirs = plain_scenario();
  if (!answers_largest_load() && ours.gpus != theirs.gpus) return Compared::gpus;
  return asks_for_load() && ours.meets_load && theirs.meets_load && ours.tpot_seconds ? Compared::times
                                                                                      : Compared::loads;
}

double Capacity::share() const {
  const Compared what = compared();
  if (what == Compared::gpus) return gpus_against_plain().fewer;
  const auto of = [what](const Capacity& answer, std::size_t i) -> const std::vector<double>& {
    const sim::ScenarioInWorlds& scenario = answer.in_worlds.scenarios.at(i);
    return what == Compared::times ? scenario.speeds : scenario.rates;
  };
  const std::vector<double>&ours = of(*this, drafting()), &theirs = of(of_plain(), of_plain().plain());
  const double each = what == Compared::times ? 1
                                              : static_cast<double>(of_plain().simulation.gpus_per_replica) /
                                                    static_cast<double>(simulation.gpus_per_replica);
  std::vector<double> speedups;
  // Where plain decoding takes nothing, anything is more.
  for (std::size_t w = 0; w < ours.size(); ++w)
    speedups.push_back(theirs[w] > 0 ? each * ours[w] / theirs[w] : ours[w] > 0 ? 2 : 1);
  return worlds::share_at_least(speedups, in_worlds.alternatives(), 1 + worlds::ChoiceOptions{}.min_gain);
}

std::optional<worlds::Certainty> Capacity::certainty() const {
  if (!answer().recommended) return std::nullopt;
  if (partial) return worlds::Certainty::open;
  if (sim::is_plain(scenarios()[drafting()].scenario)) return worlds::Certainty::no;
  return worlds::certainty_of(share());
}

std::int64_t Capacity::replicas_that_fit() const {
  return question.gpus.value_or(simulation.gpus_per_replica) / simulation.gpus_per_replica;
}

std::optional<double> Capacity::requests_per_second_together(std::size_t i) const {
  if (!question.gpus || asks_for_load()) return std::nullopt;
  return static_cast<double>(replicas_that_fit()) * scenarios()[i].requests_per_second_per_replica.value;
}

std::optional<BudgetGain> Capacity::budget_gain() const {
  const auto rate = [&](std::size_t i) {
    const sim::ScenarioCapacity& s = scenarios()[i];
    return s.at_clients > 0 ? s.at_requests_per_second : s.requests_per_second_per_replica.value;
  };
  std::optional<std::size_t> with, fixed;
  for (std::size_t i = 0; i < scenarios().size(); ++i) {
    const CapacityScenario& scenario = scenarios()[i].scenario;
    std::optional<std::size_t>& best = scenario.engine.verification_budget ? with : fixed;
    if (scenario.engine.verification_budget || gamma_of(scenario))
      if (!best || rate(i) > rate(*best)) best = i;
  }
  if (!with || !fixed || !(rate(*fixed) > 0)) return std::nullopt;
  return BudgetGain{*with, *fixed, rate(*with) / rate(*fixed) - 1};
}

std::optional<std::int64_t> gamma_of(const CapacityScenario& scenario) {
  const auto& schedule = scenario.engine.schedule;
  const std::int64_t gamma = schedule.front().gamma;
  const bool one = std::all_of(schedule.begin(), schedule.end(),
                               [gamma](const sim::GammaFrom& stretch) { return stretch.gamma == gamma; });
  return one ? std::optional(gamma) : std::nullopt;
}

std::optional<sim::CapacityDoubt> Capacity::doubt() const {
  auto found = sim::capacity_doubt(simulation, in_worlds, drafting());
  const bool is_done = found && found->source == sim::UncertaintySource::cost && calibrated.value_or(false);
  return is_done ? std::nullopt : found;
}

std::string benchmark_command(const Capacity& c, const sim::CapacityDoubt& doubt) {
  // Random prompts do not determine acceptance.
  std::optional<PromptLengths> lengths;
  const sim::Workload& workload = c.simulation.workload;
  if (doubt.source == sim::UncertaintySource::cost && workload.recorded.empty()) {
    lengths = PromptLengths{workload.prompt_tokens.mean, workload.output_tokens.mean};
  }
  return benchmark_command(c.engine, served_name(c.engine, c.served_model), doubt.next, lengths);
}

std::size_t Capacity::plain() const {
  std::size_t best = 0;
  for (std::size_t i = 0; i < scenarios().size(); ++i) {
    if (!sim::is_plain(scenarios()[i].scenario)) continue;
    const sim::ScenarioCapacity& a = scenarios()[i];
    const sim::ScenarioCapacity& b = scenarios()[best];
    const auto gpus = [](const sim::ScenarioCapacity& s) {
      return s.meets_load && s.gpus ? *s.gpus : std::numeric_limits<std::int64_t>::max();
    };
    const bool better = gpus(a) != gpus(b)
                            ? gpus(a) < gpus(b)
                            : a.requests_per_second_per_replica.value > b.requests_per_second_per_replica.value;
    if (better) best = i;
  }
  return best;
}

}  // namespace specdec::planner
