#include "sim/serving/capacity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string_view>

#include "analysis/core/checks.hpp"
#include "sim/serving/capacity_runs.hpp"
#include "sim/serving/planned_scenario.hpp"
#include "sim/serving/replica_figures.hpp"
#include "sim/serving/replica_runs.hpp"
#include "sim/serving/run_lengths.hpp"
#include "sim/serving/scenario_capacity.hpp"
#include "sim/serving/simulated_workload.hpp"
#include "sim/serving/sustainable_search.hpp"

namespace specdec::sim {
namespace {

constexpr std::string_view capacity_function = "plan_capacity";

void require_positive(std::string_view name, const std::optional<double>& value) {
  if (value) core::require_in(capacity_function, name, *value, std::numeric_limits<double>::min(), 1e12);
}

void require_law(std::string_view name, const LengthLaw& law) {
  core::require_in(capacity_function, fmt::format("mean of {}", name), law.mean, 1, 1e7);
  core::require_in(capacity_function, fmt::format("variation of {}", name), law.variation, 0, 10);
  if (law.at_most) core::require_in(capacity_function, fmt::format("at_most of {}", name), *law.at_most, 1, 1 << 30);
}

void require_workload(const Workload& workload) {
  require_positive("requests_per_second", workload.requests_per_second);
  if (workload.clients) {
    core::require_in(capacity_function, "clients", *workload.clients, std::int64_t{1}, std::int64_t{1} << 30U);
    if (workload.requests_per_second)
      throw std::invalid_argument("plan_capacity: clients are given beside requests_per_second, but must be alone");
  }
  core::require_in(capacity_function, "outside_seconds", workload.outside_seconds, 0, 1e12);
  core::require_in(capacity_function, "requests", workload.open_requests(), std::int64_t{100}, std::int64_t{1'000'000});
  if (workload.recorded.empty()) {
    require_law("prompt_tokens", workload.prompt_tokens);
    require_law("output_tokens", workload.output_tokens);
    return;
  }
  const std::vector<SimulatedRequest>& recorded = workload.recorded;
  core::require_in(capacity_function, "recorded requests", static_cast<std::int64_t>(recorded.size()), std::int64_t{2},
                   std::numeric_limits<std::int64_t>::max());
  if (!(recorded.back().arrival_seconds > recorded.front().arrival_seconds)) {
    throw std::invalid_argument(
        "plan_capacity: recorded requests all arrive at one time, which gives no gaps to scale");
  }
}

void require_legal(const CapacityQuestion& question) {
  require_workload(question.workload);
  if (!question.cost) throw std::invalid_argument("plan_capacity: cost is null");
  if (question.scenarios.empty())
    throw std::invalid_argument("plan_capacity: scenarios are none, but must be one or more");
  require_positive("ttft_seconds", question.limits.ttft_seconds);
  require_positive("tpot_seconds", question.limits.tpot_seconds);
  require_positive("price_per_gpu_hour", question.price_per_gpu_hour);
  core::require_in(capacity_function, "percentile", question.limits.percentile, std::nextafter(0.0, 1.0),
                   std::nextafter(100.0, 0.0));
  core::require_in(capacity_function, "gpus_per_replica", question.gpus_per_replica, std::int64_t{1},
                   std::int64_t{1} << 20U);
  if (question.replicas)
    core::require_in(capacity_function, "replicas", *question.replicas, std::int64_t{1}, std::int64_t{1} << 30U);
  core::require_in(capacity_function, "replications", question.replications, std::int64_t{1}, std::int64_t{1000});
  core::require_in(capacity_function, "threads", question.threads, std::int64_t{1}, std::int64_t{1024});
}

/// plan_scenarios(), with the requests that runs of them take.
std::vector<PlannedScenario> plan_runs(const CapacityQuestion& question, RequestSets& requests) {
  const Workload& workload = question.workload;
  std::vector<PlannedScenario> planned = plan_scenarios(question, planned_requests(question, requests));
  std::int64_t longest = workload.clients ? requests_with_clients(workload, *workload.clients) : 0;
  for (const PlannedScenario& one : planned)
    longest = std::max({longest, requests_to_saturate(workload, one), most_requests(workload, one)});
  requests.extend_to(longest);
  return planned;
}

}  // namespace

std::vector<SimulatedRequest> planned_requests(const CapacityQuestion& question, RequestSets& requests) {
  const std::int64_t count = question.workload.open_requests();
  requests.extend_to(count);
  std::vector<SimulatedRequest> all;
  for (std::size_t r = 0; r < requests.replications(); ++r) {
    const auto& of_one = requests.requests(r);
    all.insert(all.end(), of_one.begin(), of_one.begin() + count);
  }
  return all;
}

RoundsToCover rounds_to_cover(const CapacityQuestion& question, const std::vector<SimulatedRequest>& requests) {
  const bool drafts = !question.acceptance.empty();
  return RoundsToCover(requests, drafts ? contexts_of(question.acceptance.front()) : std::vector<std::int64_t>());
}

std::vector<PlannedScenario> plan_scenarios(const CapacityQuestion& question,
                                            const std::vector<SimulatedRequest>& requests) {
  const RoundsToCover rounds = rounds_to_cover(question, requests);
  std::vector<PlannedScenario> planned;
  for (const CapacityScenario& scenario : question.scenarios) planned.emplace_back(question, scenario, requests, rounds);
  return planned;
}

double Workload::middle_context() const {
  if (recorded.empty()) return prompt_tokens.mean + output_tokens.mean / 2;
  double sum = 0;
  for (const SimulatedRequest& request : recorded)
    sum += static_cast<double>(request.prompt_tokens) + static_cast<double>(request.output_tokens) / 2;
  return sum / static_cast<double>(recorded.size());
}

RequestSets requests_of(const CapacityQuestion& question) {
  require_legal(question);
  return {question.workload, question.seed, question.replications};
}

std::vector<ScenarioFormulas> scenario_formulas(const CapacityQuestion& question) {
  RequestSets requests = requests_of(question);
  std::vector<ScenarioFormulas> formulas;
  for (const PlannedScenario& planned : plan_scenarios(question, planned_requests(question, requests)))
    formulas.push_back(planned.formulas());
  return formulas;
}

std::optional<planning::SteadyState> steady_at(const CapacityQuestion& question, std::size_t scenario,
                                               const ReplicaLoad& load) {
  CapacityQuestion alone = question;
  alone.scenarios = {question.scenarios.at(scenario)};
  ScenarioFormulas replica = scenario_formulas(alone).front();
  if (!replica.saturation || alone.scenarios.front().engine.verification_budget) return std::nullopt;
  replica.load.requests_per_second = load.requests_per_second;
  if (load.clients == 0) return planning::steady_state(*question.cost, replica);
  return planning::closed_steady_state(*question.cost, replica, load.clients, question.workload.outside_seconds);
}

CapacityAnswer plan_capacity(const CapacityQuestion& question, const core::RunHooks& hooks) {
  RequestSets requests = requests_of(question);
  return plan_capacity(question, hooks, requests, nullptr);
}

CapacityAnswer plan_capacity(const CapacityQuestion& question, const core::RunHooks& hooks, RequestSets& requests,
                             const ScenarioCapacity* like) {
  require_legal(question);
  const std::vector<PlannedScenario> scenarios = plan_runs(question, requests);
  CapacityAnswer answer;
  try {
    for (const PlannedScenario& planned : scenarios) {
      ReplicaRuns runs(question, planned, requests, hooks);
      answer.scenarios.push_back(capacity_of(runs, like));
      hooks.tell(static_cast<double>(answer.scenarios.size()) / static_cast<double>(scenarios.size()));
    }
  } catch (const Interrupted&) {
    answer.interrupted = true;
  }
  compare_scenarios(answer);
  return answer;
}

std::optional<SharedLoad> fewest_replicas(const CapacityQuestion& question, std::int64_t most,
                                          const core::RunHooks& hooks) {
  RequestSets requests = requests_of(question);
  const double load = question.workload.requests_per_second.value();
  const std::vector<PlannedScenario> planned = plan_runs(question, requests);
  ReplicaRuns runs(question, planned.front(), requests, hooks);
  try {
    const std::int64_t replicas = SustainableSearch(runs, nullptr).find_replicas(load, most);
    if (replicas == 0) return std::nullopt;
    const ReplicaAtLoad each = replica_at(runs, {load / static_cast<double>(replicas)});
    return SharedLoad{replicas, each.tpot_seconds ? each.tpot_seconds->p50.value : 0};
  } catch (const Interrupted&) {
    return std::nullopt;
  }
}

std::vector<ReplicaAtLoad> replica_at_loads(const CapacityQuestion& question, std::size_t scenario,
                                            std::span<const double> loads) {
  RequestSets requests = requests_of(question);
  return replica_at_loads(question, scenario, loads, requests);
}

std::vector<ReplicaAtLoad> replica_at_loads(const CapacityQuestion& question, std::size_t scenario,
                                            std::span<const double> loads, RequestSets& requests) {
  CapacityQuestion alone = question;
  alone.scenarios = {question.scenarios.at(scenario)};
  require_legal(alone);
  for (const double load : loads)
    core::require_in("replica_at_loads", "load", load, std::numeric_limits<double>::min(), 1e12);
  const std::vector<PlannedScenario> planned = plan_runs(alone, requests);
  const core::RunHooks hooks;
  ReplicaRuns runs(alone, planned.front(), requests, hooks);
  std::vector<ReplicaAtLoad> found;
  for (const double load : loads) found.push_back(replica_at(runs, {load}));
  return found;
}

bool is_plain(const CapacityScenario& scenario) { return largest_gamma_of(scenario.engine.schedule) == 0; }

}  // namespace specdec::sim
