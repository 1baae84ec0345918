#include "planner/load/asked_capacity.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <utility>

#include "planner/draft_pairs.hpp"
#include "planner/lookup_drafts.hpp"
#include "planner/model_names.hpp"
#include "planner/number_text.hpp"

namespace specdec::planner {
namespace {

using sim::CapacityScenario;

constexpr auto largest_served_gamma = static_cast<std::int64_t>(capacity_ranges.gamma.hi);
constexpr std::int64_t usual_largest_gamma = 8;
constexpr std::size_t most_scenarios = 256;

/// Tokens per block of the cache, as engines have it unless told otherwise.
constexpr std::int64_t cache_block_tokens = 16;
/// Requests of a run at most, where nobody says how many.
constexpr std::int64_t most_requests = 8000;

void require_rising(std::string_view option, const std::vector<std::int64_t>& values, LegalRange range) {
  for (const std::int64_t value : values) {
    require_in(option, value, range);
    range.lo = static_cast<double>(value + 1);
  }
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
      scenario.engine.shared_prefixes = q.shared_prefixes;
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

std::int64_t max_gamma_of(const CapacityScenario& scenario) { return sim::largest_gamma_of(scenario.engine.schedule); }

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
  const auto& joined = placed.hardware.gpus_per_node;
  std::string remedy = "no number of GPUs up to 1024 has room";
  if (enough) {
    const bool in_one_node = !joined || static_cast<double>(*enough) <= joined->value;
    remedy = fmt::format("divided over {} GPUs they leave room{}; {}", *enough, without_link(placed.hardware),
                         in_one_node ? std::string("--gpus finds the best layout of those that you have")
                                     : fmt::format("--tp {} prices several nodes as if their GPUs had one link", *enough));
  }
  const cost::ModelSpec& model = placed.target.model;
  if (!placed.target.weight_type && !model.weight_type && !model.weight_bytes)
    remedy += ", and --weight-dtype fp8 halves the weights";
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
  if (q.activation_reserve_gb) holds.reserve_bytes_per_gpu = *q.activation_reserve_gb * bytes_per_gigabyte;
  holds.target = placed.target;
  if (!sim::is_plain(scenario)) holds.draft = placed.draft;
  holds.block_size = cache_block_tokens;
  holds.max_num_seqs = scenario.engine.max_num_seqs;
  holds.max_num_batched_tokens = scenario.engine.max_num_batched_tokens;
  const planning::KvMemory memory = planning::kv_memory(holds);
  if (q.activation_reserve_gb && memory.usable_bytes <= 0) {
    refuse("--activation-reserve-gb", brief(*q.activation_reserve_gb),
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
  c.simulation.cost = cost::iterations_of(cost.rounds, q.prefill_tokens_per_second);
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
  take_sources(cost, c);
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
         : c.asks_for_load() ? "at equal arrival rate, where they take it"
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
           fmt::format("{}, {}{}", c.acceptance,
                       c.acceptance_laws > 1 ? "of their own, kept from the first token to the last" : "one for all",
                       follows_context(c) ? ", changing as their contexts grow" : ""),
           q.alpha_spread.has_value());
  }
  const CapacityQuestion usual;
  if (by_hardware) {
    assume(c, "gpu_memory_utilization", q.gpu_memory_utilization,
           q.gpu_memory_utilization != usual.gpu_memory_utilization);
    assume(c, "activation_reserve_gb",
           std::round(c.memory.front().memory->reserve_bytes / bytes_per_gigabyte * 100) / 100,
           q.activation_reserve_gb.has_value());
  }
  assume(c, "max_num_seqs", fmt::format("{}", fmt::join(q.max_num_seqs, ",")), q.max_num_seqs != usual.max_num_seqs);
  assume(c, "max_num_batched_tokens", q.max_num_batched_tokens,
         q.max_num_batched_tokens != usual.max_num_batched_tokens);
  if (q.prefix_cache_hit_rate > 0)
    assume(c, "found prefixes in memory",
           q.shared_prefixes ? fmt::format("{} distinct ones, each held once", *q.shared_prefixes)
                             : "each request holds its own (--shared-prefixes)",
           q.shared_prefixes.has_value());
  if (q.prefill_first) assume(c, "iterations", "prompts alone, before rounds", true);
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

}  // namespace

void require_ranges(const CapacityQuestion& q) {
  constexpr const CapacityRanges& legal = capacity_ranges;
  require_in("--arrival-rate", q.arrival_rate, legal.arrival_rate);
  require_in("--concurrency", q.concurrency, legal.concurrency);
  require_in("--outside-ms", q.outside_ms, legal.outside_ms);
  require_in("--prefix-cache-hit-rate", q.prefix_cache_hit_rate, legal.prefix_cache_hit_rate);
  require_in("--shared-prefixes", q.shared_prefixes, legal.shared_prefixes);
  if (q.shared_prefixes && q.prefix_cache_hit_rate == 0)
    throw QuestionError(
        "--shared-prefixes is given, but needs --prefix-cache-hit-rate, the share that they are found with");
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

void take_sources(const Provenance& from, Capacity& c) {
  c.files.insert(c.files.end(), from.files.begin(), from.files.end());
  append_new(c.presets, from.presets);
  append_new(c.assumptions, from.assumptions);
  append(c.warnings, from.warnings);
}

std::int64_t CapacityQuestion::largest_gamma(bool has_acceptance) const {
  const std::vector<std::int64_t> gammas = gammas_of(*this, has_acceptance);
  std::int64_t largest = gammas.empty() ? 0 : gammas.back();
  for (const planning::ScheduleStretch& stretch : schedule) largest = std::max(largest, stretch.gamma);
  return largest;
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

Capacity asked_capacity(const std::optional<Acceptance>& acceptance, const Cost& cost,
                        const CapacityQuestion& question) {
  std::optional<Acceptance> found = acceptance;
  Cost of_found = acceptance && acceptance->is_of_llamacpp() ? with_drafts_of_llamacpp(cost) : cost;
  take_draft(found ? &*found : nullptr, of_found);
  return asked_of_found(found, of_found, question);
}

}  // namespace specdec::planner
