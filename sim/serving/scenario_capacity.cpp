#include "sim/serving/scenario_capacity.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "sim/serving/load_search.hpp"
#include "sim/serving/replica_figures.hpp"
#include "sim/serving/sustainable_search.hpp"

namespace specdec::sim {
namespace {

using planning::CapacityLimit;

/// Without limits and a load, figures are for this share of the saturated rate.
constexpr double relaxed_load = 0.9;

ScenarioCapacity limited_capacity(const PlannedScenario& planned, const SimulatedValue& saturated, CapacityLimit by) {
  ScenarioCapacity result;
  result.scenario = planned.scenario();
  result.saturated_requests_per_second_per_replica = saturated;
  if (planned.saturation())
    result.saturated_over_expected = saturated.value / planned.saturation()->requests_per_second;
  result.limited_by = by;
  if (result.limited_by == CapacityLimit::none)
    result.limited_by = planned.saturation() ? planned.saturation()->limited_by : CapacityLimit::compute;
  return result;
}

void place(ScenarioCapacity& result, std::int64_t replicas, const CapacityQuestion& question) {
  result.replicas = replicas;
  result.gpus = replicas * question.gpus_per_replica;
}

/// @param idle_factor  accelerators' time of all replicas / what it would be if each served as much as this one, >= 1
void fill_figures(const ReplicaAtLoad& there, const CapacityQuestion& question, ScenarioCapacity& result,
                  double idle_factor = 1) {
  static_cast<ReplicaAtLoad&>(result) = there;
  result.gpu_seconds_per_token *= idle_factor;
  result.cost_per_million_tokens = cost_per_million_tokens(question, result.gpu_seconds_per_token);
}

/// Unless the queue grows there.
void fill_figures_at(ReplicaRuns& runs, const ReplicaLoad& load, ScenarioCapacity& result) {
  result.overloaded = load.requests_per_second > result.saturated_requests_per_second_per_replica.value * (1 + 1e-12);
  if (!result.overloaded) fill_figures(replica_at(runs, load), runs.question(), result);
}

/// Of a replica that meets the limits at no load: with the figures of figures_at, else with the times at the least
/// load.
ScenarioCapacity without_load(ReplicaRuns& runs, const ReplicaLoad& least, ScenarioCapacity result) {
  if (const auto& at = runs.question().figures_at) {
    result.at_clients = at->clients;
    fill_figures_at(runs, *at, result);
  } else if (runs.planned().saturation()) {
    const ReplicaAtLoad there = replica_at(runs, least);
    result.ttft_seconds = there.ttft_seconds;
    result.tpot_seconds = there.tpot_seconds;
  }
  return result;
}

ScenarioCapacity open_capacity(ReplicaRuns& runs, const SimulatedValue& saturated, const FoundLoad& found) {
  const CapacityQuestion& question = runs.question();
  ScenarioCapacity result = limited_capacity(runs.planned(), saturated, found.by);
  result.requests_per_second_per_replica = found.load;
  result.search_end = found.end;
  const double most = result.requests_per_second_per_replica.value;
  if (most <= 0) return without_load(runs, {least_load * saturated.value}, std::move(result));
  result.largest_mean_batch = runs.planned().decoding_at(most);

  const std::optional<double> asked = question.workload.requests_per_second;
  std::int64_t replicas = question.replicas.value_or(1);
  if (asked && !question.replicas) replicas = static_cast<std::int64_t>(std::ceil(*asked / most * (1 - 1e-12)));
  place(result, replicas, question);
  const double share = asked ? *asked / static_cast<double>(replicas) : 0;
  result.meets_load = share <= most * (1 + 1e-12);
  const double at = asked && result.meets_load ? share : is_limited(question.limits) ? most : relaxed_load * most;
  fill_figures_at(runs, question.figures_at.value_or(ReplicaLoad{at}), result);
  return result;
}

ScenarioCapacity closed_capacity(ReplicaRuns& runs, const SimulatedValue& saturated, const FoundClients& found) {
  const CapacityQuestion& question = runs.question();
  ScenarioCapacity result = limited_capacity(runs.planned(), saturated, found.by);
  result.clients_within_limits = found.most;
  if (found.most == 0 && !question.replicas) return without_load(runs, {.clients = 1}, std::move(result));
  const std::int64_t all = *question.workload.clients;
  const auto shared_by = [all](std::int64_t many) { return (all + many - 1) / many; };
  place(result, question.replicas ? *question.replicas : shared_by(found.most), question);
  const std::int64_t each = shared_by(*result.replicas);
  result.meets_load = each <= found.most;
  result.at_clients = question.figures_at ? question.figures_at->clients : each;
  const ReplicaAtLoad there = replica_at(runs, {.clients = result.at_clients});
  // Replicas with fewer clients than the fullest, or with none, serve less and cost as much.
  const double idle_factor =
      static_cast<double>(*result.replicas) * static_cast<double>(result.at_clients) / static_cast<double>(all);
  fill_figures(there, question, result, idle_factor);
  result.requests_per_second_per_replica = saturated;
  if (found.most == 0) {
    result.requests_per_second_per_replica = {};
  } else if (is_limited(question.limits)) {
    const ReplicaAtLoad most = result.at_clients == found.most ? there : replica_at(runs, {.clients = found.most});
    result.requests_per_second_per_replica = most.at_requests_per_second;
    result.largest_mean_batch = most.mean_batch.value;
  } else {
    // The largest rate is the saturated one, whatever the clients.
    const auto& full = runs.planned().saturation();
    result.largest_mean_batch = full ? full->state.mean_batch : there.mean_batch.value;
  }
  return result;
}

/// Where limits stop the rate, it only bounds the search: under another cost or acceptance the formulas are taken to be
/// off by the same share.
SimulatedValue saturated_rate(ReplicaRuns& runs, const ScenarioCapacity* like) {
  const auto& expected = runs.planned().saturation();
  const bool is_bound = like && like->search_end && like->saturated_over_expected && expected;
  if (!is_bound) return runs.saturated_rate();
  const double rate = *like->saturated_over_expected * expected->requests_per_second;
  return {rate, rate, rate};
}

}  // namespace

ScenarioCapacity capacity_of(ReplicaRuns& runs, const ScenarioCapacity* like) {
  const SimulatedValue saturated = saturated_rate(runs, like);
  SustainableSearch search(runs, like);
  return runs.question().workload.clients ? closed_capacity(runs, saturated, search.find_clients())
                                          : open_capacity(runs, saturated, search.find_load(saturated));
}

void compare_scenarios(CapacityAnswer& answer) {
  std::vector<std::size_t> order;
  for (std::size_t s = 0; s < answer.scenarios.size(); ++s) {
    if (answer.scenarios[s].meets_load) order.push_back(s);
  }
  if (order.empty()) return;
  const auto seconds = [&](std::size_t s) { return answer.scenarios[s].gpu_seconds_per_token; };
  const auto median = [&](std::size_t s) {
    const auto& tpot = answer.scenarios[s].tpot_seconds;
    return tpot ? tpot->p50.value : 0;
  };
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(seconds(a), median(a)) < std::pair(seconds(b), median(b));
  });
  answer.recommended = order.front();
  for (const std::size_t s : order) {
    if (answer.frontier.empty() || median(s) < median(answer.frontier.back())) answer.frontier.push_back(s);
  }
}

}  // namespace specdec::sim
