#include "cli/capacity_question.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "analysis/planning/request_laws.hpp"
#include "cli/files.hpp"
#include "cli/plan_acceptance.hpp"
#include "cli/plan_deployment.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "sim/serving/recorded_workload.hpp"
#include "traces/formats/request_trace.hpp"

namespace specdec::cli {
namespace {

constexpr std::int64_t largest_gamma = 64;
constexpr std::int64_t usual_largest_gamma = 8;
constexpr std::size_t most_scenarios = 256;
constexpr double gigabyte = 1e9;

/// "1000" or "1000:0.5".
sim::LengthLaw parse_lengths(std::string_view option, const std::string& text) {
  const auto parts = split(text, ':');
  if (parts.size() > 2) refuse(option, text, "MEAN or MEAN:CV");
  sim::LengthLaw law;
  law.mean = parse_number(option, parts[0], {1.0, 1e7});
  if (parts.size() == 2) law.variation = parse_number(fmt::format("CV of {}", option), parts[1], {0.0, 10.0});
  return law;
}

/// "0,1,3" or "1-8", rising.
std::vector<std::int64_t> parse_gammas(const CapacityOptions& o) {
  constexpr std::string_view option = "--gamma";
  std::vector<std::int64_t> gammas;
  if (!o.gamma) {
    const std::int64_t last = o.knows_acceptance() && !o.schedule ? usual_largest_gamma : 0;
    for (std::int64_t gamma = 1; gamma <= last; ++gamma) gammas.push_back(gamma);
    return gammas;
  }
  for (const std::string_view part : split(*o.gamma, ',')) {
    const auto ends = split(part, '-');
    if (ends.size() > 2) refuse(option, part, "a number or LOW-HIGH");
    const std::int64_t low = parse_integer(option, ends.front(), 0, largest_gamma);
    const std::int64_t high = parse_integer(option, ends.back(), low, largest_gamma);
    for (std::int64_t gamma = low; gamma <= high; ++gamma) {
      if (!gammas.empty() && gamma <= gammas.back()) refuse(option, *o.gamma, "a rising list");
      gammas.push_back(gamma);
    }
  }
  gammas.erase(std::remove(gammas.begin(), gammas.end(), 0), gammas.end());
  if (!gammas.empty() && !o.knows_acceptance()) {
    refuse(option, *o.gamma, "0 without an acceptance: one of --alpha, --counters, --trace, ... is needed");
  }
  return gammas;
}

std::vector<std::int64_t> parse_num_seqs(const CapacityOptions& o) {
  std::vector<std::int64_t> found;
  for (const std::string_view part : split(o.max_num_seqs, ',')) {
    found.push_back(parse_integer("--max-num-seqs", part, 1, 1 << 20));
    if (found.size() > 1 && found.back() <= found[found.size() - 2]) {
      refuse("--max-num-seqs", o.max_num_seqs, "a rising list");
    }
  }
  return found;
}

std::vector<sim::GammaFrom> engine_schedule(const std::string& text) {
  std::vector<sim::GammaFrom> schedule;
  for (const planning::ScheduleStretch& stretch : parse_schedule(text)) {
    if (stretch.gamma > largest_gamma) refuse("--schedule", text, fmt::format("of gammas up to {}", largest_gamma));
    schedule.push_back({stretch.batch_low, stretch.gamma});
  }
  return schedule;
}

/// Plain decoding first; no cache yet.
std::vector<sim::CapacityScenario> scenarios_of(const CapacityOptions& o) {
  std::vector<sim::CapacityScenario> kinds = {{"plain", {}}};
  for (const std::int64_t gamma : parse_gammas(o)) {
    kinds.push_back({fmt::format("gamma {}", gamma), {}});
    kinds.back().engine.schedule = {{1, gamma}};
  }
  if (o.schedule) {
    kinds.push_back({"schedule", {}});
    kinds.back().engine.schedule = engine_schedule(*o.schedule);
  }
  std::vector<sim::CapacityScenario> scenarios;
  for (const sim::CapacityScenario& kind : kinds) {
    for (const std::int64_t num_seqs : parse_num_seqs(o)) {
      sim::CapacityScenario& scenario = scenarios.emplace_back(kind);
      scenario.engine.max_num_seqs = num_seqs;
      scenario.engine.max_num_batched_tokens = o.max_num_batched_tokens;
      scenario.engine.block_size = o.block_size;
      scenario.engine.prefix_cache_hit_rate = o.prefix_cache_hit_rate;
      scenario.engine.decode_only = o.decode_only;
    }
  }
  if (scenarios.size() > most_scenarios) {
    throw UsageError(fmt::format("--gamma and --max-num-seqs give {} scenarios, but must give at most {}",
                                 scenarios.size(), most_scenarios));
  }
  return scenarios;
}

std::int64_t max_gamma_of(const sim::CapacityScenario& scenario) {
  std::int64_t largest = 0;
  for (const sim::GammaFrom& stretch : scenario.engine.schedule) largest = std::max(largest, stretch.gamma);
  return largest;
}

std::int64_t max_gamma_of(const std::vector<sim::CapacityScenario>& scenarios) {
  std::int64_t largest = 0;
  for (const sim::CapacityScenario& scenario : scenarios) largest = std::max(largest, max_gamma_of(scenario));
  return largest;
}

/// The laws of requests at the estimate and at the ends of its interval.
struct AcceptanceLaws {
  std::vector<sim::RequestAcceptance> laws;
  std::vector<std::vector<sim::RequestAcceptance>> ends;
};

std::vector<sim::RequestAcceptance> request_acceptances(const std::vector<planning::ConditionalRates>& laws) {
  std::vector<sim::RequestAcceptance> acceptances;
  for (const planning::ConditionalRates& law : laws) acceptances.push_back({law});
  return acceptances;
}

bool is_one_rate(const PlannedAcceptance& acceptance) {
  return acceptance.stated && acceptance.stated->profile.measured_positions() == 0;
}

AcceptanceLaws laws_of(const CapacityOptions& o, const PlannedAcceptance& acceptance, std::int64_t max_gamma) {
  std::vector<planning::RequestRate> rates = acceptance.request_rates;
  if (o.alpha_spread) {
    if (rates.size() > 1) throw UsageError("--alpha-spread is given, but the files hold the rates of single requests");
    const double alpha = acceptance.alpha.value_or(0);
    if (!(alpha > 0 && alpha < 1 && *o.alpha_spread * *o.alpha_spread < alpha * (1 - alpha))) {
      refuse("--alpha-spread", fmt::format("{}", *o.alpha_spread),
             fmt::format("below {}, the largest that a rate of {} can have",
                         brief(std::sqrt(std::max(0.0, alpha * (1 - alpha)))), brief(alpha)));
    }
    rates = planning::beta_rates(alpha, *o.alpha_spread, max_gamma);
  }
  const auto laws_at = [&](planning::CurveEnd end) {
    const planning::ConditionalRates pooled = planning::pooled_conditionals(*acceptance.curve, max_gamma, end);
    if (rates.size() < 2) return request_acceptances({pooled});
    if (is_one_rate(acceptance)) {
      std::vector<planning::ConditionalRates> constant;
      for (const planning::RequestRate& rate : planning::beta_rates(pooled.front(), *o.alpha_spread, max_gamma)) {
        constant.push_back({rate.rate});
      }
      return request_acceptances(constant);
    }
    return request_acceptances(planning::laws_by_request(rates, pooled));
  };
  AcceptanceLaws laws = {laws_at(planning::CurveEnd::value), {}};
  const estimate::TokensPerStep tokens = acceptance.curve->tokens_per_step(max_gamma);
  if (tokens.ci95.lo < tokens.value) laws.ends.push_back(laws_at(planning::CurveEnd::low));
  if (tokens.ci95.hi > tokens.value) laws.ends.push_back(laws_at(planning::CurveEnd::high));
  return laws;
}

PlannedAcceptance acceptance_of(const CapacityOptions& o, std::int64_t max_gamma) {
  const PlanOptions& s = o.shared;
  if (s.counters.empty() && s.trace.empty()) return planned(stated_acceptance(s), s.acceptance);
  AcceptanceSource source = acceptance_source(s, max_gamma);
  // Here --model names what is priced.
  source.model.reset();
  source.by_request = true;
  return acceptance_from(source);
}

/// The acceptance of benchmark runs, with the runs' costs.
struct RunsOf {
  std::shared_ptr<const cost::RoundCost> cost;
  std::optional<PlannedAcceptance> acceptance;
};

RunsOf runs_of(const CapacityOptions& o, CapacityInputs& inputs) {
  const Deployment d = planned_deployment(o.shared);
  inputs.files.insert(inputs.files.end(), d.files.begin(), d.files.end());
  for (const Warning& warning : d.warnings) inputs.warnings.push_back(warning);
  RunsOf runs;
  runs.cost = d.bench->cost;
  runs.acceptance.emplace();
  runs.acceptance->curve = d.bench->acceptance;
  runs.acceptance->text = fmt::format("{} benchmark runs", d.bench->runs.size());
  return runs;
}

sim::Workload workload_of(const CapacityOptions& o, CapacityInputs& inputs) {
  sim::Workload workload;
  if (o.requests) {
    workload = sim::recorded_workload(traces::read_request_trace(*o.requests));
    inputs.files.push_back(*o.requests);
  } else {
    workload.prompt_tokens = parse_lengths("--prompt-tokens", *o.prompt_tokens);
    workload.output_tokens = parse_lengths("--output-tokens", *o.output_tokens);
  }
  if (o.arrival_rate) workload.requests_per_second = o.arrival_rate;
  workload.requests = o.num_requests;
  return workload;
}

void assume(CapacityInputs& inputs, std::string name, nlohmann::ordered_json value, bool by_user) {
  inputs.assumptions.push_back({std::move(name), std::move(value), by_user ? "user" : "default"});
}

/// The costs, the memory of each scenario and the GPUs of a replica, by whatever knows them.
class Deployed {
 public:
  Deployed(const CapacityOptions& o, CapacityReport& r, CapacityInputs& inputs) : o_(o), r_(r), inputs_(inputs) {}

  void by_roofline(bool drafts) {
    const cost::DraftKind kind = kind_named("--draft-kind", o_.shared.draft_kind.value_or("model"));
    RooflineModels models;
    models.target = o_.shared.model;
    models.drafts = drafts;
    models.kind = kind;
    models.draft = o_.shared.draft_model;
    PricedRoofline priced = roofline_from(o_.roofline, models);
    inputs_.files.insert(inputs_.files.end(), priced.files.begin(), priced.files.end());
    inputs_.presets = std::move(priced.presets);
    for (Assumption& assumption : priced.assumptions) inputs_.assumptions.push_back(std::move(assumption));
    for (Warning& warning : priced.warnings) inputs_.warnings.push_back(std::move(warning));
    const cost::RooflineOptions& placed = priced.cost->options();
    r_.calibrated = priced.cost->is_calibrated();
    r_.served_model = served_name(placed.target.model, *o_.shared.model);
    warn_of_length(placed.target.model);
    r_.question.cost = priced.cost;
    r_.question.gpus_per_replica = placed.target.tensor_parallel;
    for (sim::CapacityScenario& scenario : r_.question.scenarios) take_memory(placed, scenario);
    take_power(placed.hardware);
  }

  void by_rounds(const std::shared_ptr<const cost::RoundCost>& rounds) {
    if (!rounds->in_seconds()) throw UsageError("--cost: times are no seconds");
    r_.question.cost = cost::iterations_of(rounds, {o_.prefill_tokens_per_second});
    r_.question.gpus_per_replica = o_.roofline.tensor_parallel.value_or(1);
    for (sim::CapacityScenario& scenario : r_.question.scenarios) {
      scenario.engine.cache_blocks = std::max<std::int64_t>(1, *o_.kv_cache_tokens / o_.block_size);
      remember(scenario, *o_.kv_cache_tokens, std::nullopt);
    }
    r_.question.watts_per_gpu = o_.watts_per_gpu;
    const bool stated = o_.prefill_tokens_per_second.has_value();
    assume(inputs_, "prompts", stated ? "priced by their own speed" : "priced as further positions of the same pass",
           stated);
  }

 private:
  void warn_of_length(const cost::ModelSpec& model) {
    const sim::Workload& workload = r_.question.workload;
    double longest = workload.prompt_tokens.mean + workload.output_tokens.mean;
    if (!workload.recorded.empty()) longest = 0;
    for (const sim::SimulatedRequest& request : workload.recorded) {
      longest = std::max(longest, static_cast<double>(request.prompt_tokens + request.output_tokens));
    }
    if (!model.max_context || longest <= static_cast<double>(*model.max_context)) return;
    inputs_.warnings.push_back(
        {"context_beyond_model",
         fmt::format("{} {} tokens with its answer, but {} reads {} at most",
                     workload.recorded.empty() ? "the mean request has" : "the longest request has", brief(longest, 7),
                     model.name.empty() ? "the model" : model.name, *model.max_context)});
  }

  void take_memory(const cost::RooflineOptions& placed, sim::CapacityScenario& scenario) {
    planning::ReplicaHolds holds;
    holds.memory_bytes_per_gpu = placed.hardware.memory_bytes.value;
    holds.utilization = o_.gpu_memory_utilization;
    holds.reserve_bytes_per_gpu = o_.activation_reserve_gb * gigabyte;
    holds.target = placed.target;
    if (!sim::is_plain(scenario)) holds.draft = placed.draft;
    holds.block_size = o_.block_size;
    holds.max_num_seqs = scenario.engine.max_num_seqs;
    const planning::KvMemory memory = planning::kv_memory(holds);
    if (memory.usable_bytes <= 0) {
      refuse("--activation-reserve-gb", brief(o_.activation_reserve_gb),
             fmt::format("below {:.1f}, the share of {} that --gpu-memory-utilization takes",
                         holds.memory_bytes_per_gpu * holds.utilization / gigabyte, placed.hardware.name));
    }
    if (memory.blocks == 0) refuse_memory(placed, holds, memory, scenario);
    scenario.engine.cache_blocks = memory.blocks;
    remember(scenario, memory.tokens, memory);
  }

  [[noreturn]] static void refuse_memory(const cost::RooflineOptions& placed, const planning::ReplicaHolds& holds,
                                         const planning::KvMemory& memory, const sim::CapacityScenario& scenario) {
    const auto gigabytes = [](double bytes) { return fmt::format("{:.1f} GB", bytes / gigabyte); };
    const std::string draft =
        holds.draft ? fmt::format(" and {} of the draft", gigabytes(memory.draft_weight_bytes)) : "";
    const std::string states =
        memory.state_bytes > 0 ? fmt::format(" beside {} of states", gigabytes(memory.state_bytes)) : "";
    const auto enough = planning::gpus_that_hold(holds);
    const std::string remedy = enough ? fmt::format("divided over {} GPUs they leave room", *enough)
                                      : std::string("no number of GPUs up to 1024 has room");
    throw UsageError(fmt::format(
        "--tensor-parallel-size is {}, but {} of target weights per GPU{}{} leave no room for a cache in the {} that "
        "{} has to give to {}; {}",
        placed.target.tensor_parallel, gigabytes(memory.target_weight_bytes), draft, states,
        gigabytes(memory.usable_bytes), placed.hardware.name, scenario.name, remedy));
  }

  void remember(const sim::CapacityScenario& scenario, std::int64_t tokens,
                const std::optional<planning::KvMemory>& memory) {
    const std::int64_t ahead = planning::lookahead_tokens(scenario.engine.max_num_seqs, max_gamma_of(scenario));
    r_.memory.push_back({tokens, std::max<std::int64_t>(0, tokens - ahead), memory});
  }

  void take_power(const cost::HardwareSpec& hardware) {
    if (o_.watts_per_gpu) {
      r_.question.watts_per_gpu = o_.watts_per_gpu;
    } else if (hardware.watts) {
      r_.question.watts_per_gpu = hardware.watts->value;
      inputs_.assumptions.push_back(
          {"watts_per_gpu", hardware.watts->value, hardware.watts->source.empty() ? "file" : "preset"});
    }
  }

  const CapacityOptions& o_;
  CapacityReport& r_;
  CapacityInputs& inputs_;
};

void mark_extrapolated(const estimate::AcceptanceCurve& acceptance, CapacityReport& r) {
  r.measured_gamma = max_gamma_of(r.question.scenarios);
  while (r.measured_gamma > 0 && acceptance.tokens_per_step(r.measured_gamma).extrapolated) --r.measured_gamma;
  for (sim::CapacityScenario& scenario : r.question.scenarios) {
    scenario.extrapolated = max_gamma_of(scenario) > r.measured_gamma;
  }
}

void add_assumptions(const CapacityOptions& o, const CapacityReport& r, CapacityInputs& inputs) {
  assume(inputs, "scenarios compared", r.asks_for_load() ? "at equal arrival rate" : "at the largest load of each",
         false);
  assume(inputs, "arrivals", o.requests ? "as recorded" : "Poisson", o.requests.has_value());
  if (o.requests && o.arrival_rate) assume(inputs, "gaps between arrivals", "scaled to --arrival-rate", true);
  if (!r.acceptance.empty()) {
    assume(inputs, "requests' acceptance",
           r.acceptance_laws > 1 ? "of their own, kept from the first token to the last" : "one for all",
           o.alpha_spread.has_value());
  }
  if (o.roofline.hardware) {
    assume(inputs, "gpu_memory_utilization", o.gpu_memory_utilization, o.gpu_memory_utilization != 0.9);
    assume(inputs, "activation_reserve_gb", o.activation_reserve_gb, o.activation_reserve_gb > 0);
  }
  assume(inputs, "max_num_seqs", o.max_num_seqs, o.max_num_seqs != "256");
  assume(inputs, "max_num_batched_tokens", o.max_num_batched_tokens, o.max_num_batched_tokens != 8192);
}

}  // namespace

CapacityReport asked_capacity(const CapacityOptions& o, CapacityInputs& inputs) {
  require_consistent(o);
  CapacityReport r{o, {}, {}, {}, {}, {}, 0, 0, std::nullopt, {}, {}, std::nullopt};
  r.question.workload = workload_of(o, inputs);
  r.question.scenarios = scenarios_of(o);
  r.question.limits.percentile = o.percentile;
  if (o.ttft_ms) r.question.limits.ttft_seconds = *o.ttft_ms / 1000;
  if (o.tpot_ms) r.question.limits.tpot_seconds = *o.tpot_ms / 1000;
  r.question.replicas = o.replicas;
  r.question.price_per_gpu_hour = o.price;
  r.question.replications = o.replications;
  r.question.seed = static_cast<std::uint64_t>(o.seed);
  r.question.threads = o.threads;

  const std::int64_t max_gamma = max_gamma_of(r.question.scenarios);
  r.served_model = o.shared.model.value_or("");
  Deployed deployed(o, r, inputs);
  std::optional<PlannedAcceptance> acceptance;
  if (!o.shared.bench.empty()) {
    const RunsOf runs = runs_of(o, inputs);
    deployed.by_rounds(runs.cost);
    acceptance = runs.acceptance;
  } else {
    if (o.knows_acceptance()) acceptance = acceptance_of(o, std::max<std::int64_t>(1, max_gamma));
    if (o.roofline.hardware) {
      deployed.by_roofline(max_gamma > 0);
    } else {
      Deployment d;
      const cost::DraftKind kind =
          max_gamma > 0 ? kind_named("--draft-kind", o.shared.draft_kind.value_or("model")) : cost::DraftKind::ngram;
      deployed.by_rounds(priced_rounds(o.shared, kind, d));
      inputs.files.insert(inputs.files.end(), d.files.begin(), d.files.end());
      for (const Warning& warning : d.warnings) inputs.warnings.push_back(warning);
    }
  }
  if (acceptance && max_gamma > 0) {
    AcceptanceLaws laws = laws_of(o, *acceptance, max_gamma);
    r.acceptance = acceptance->text;
    r.engine = acceptance->engine.value_or("");
    r.acceptance_laws = laws.laws.size();
    r.question.acceptance = std::move(laws.laws);
    r.acceptance_ends = std::move(laws.ends);
    mark_extrapolated(*acceptance->curve, r);
    inputs.files.insert(inputs.files.end(), acceptance->files.begin(), acceptance->files.end());
    for (const Warning& warning : acceptance->warnings) inputs.warnings.push_back(warning);
  }
  if (o.concurrency) {
    r.rate_of_concurrency = sim::rate_in_flight(r.question, *o.concurrency);
    r.question.workload.requests_per_second = r.rate_of_concurrency->value;
  }
  add_assumptions(o, r, inputs);
  return r;
}

std::vector<nlohmann::ordered_json> file_facts_of(const CapacityInputs& inputs) {
  std::vector<nlohmann::ordered_json> facts;
  for (const std::string& file : std::set<std::string>(inputs.files.begin(), inputs.files.end())) {
    facts.push_back(file_facts("FILE", file));
  }
  return facts;
}

}  // namespace specdec::cli
