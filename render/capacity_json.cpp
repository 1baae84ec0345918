#include <fmt/format.h>

#include <string>

#include "render/capacity.hpp"
#include "render/json_values.hpp"
#include "render/plan.hpp"

namespace specdec::render {
namespace {

using planner::Capacity;

using nlohmann::ordered_json;
using sim::ScenarioCapacity;

/// The contributions to the intervals.
std::string method_of(const Capacity& r) {
  std::string method = "simulated";
  if (!r.in_worlds.interrupted) method += ", in all worlds";
  return method;
}

/// An upper end is null where a world does not carry the load, or worlds are missing.
ordered_json json_of(const sim::SimulatedValue& value, const Capacity& r, double factor = 1) {
  return {{"value", factor * value.value},
          {"ci95", {factor * value.lo, number_or_null(factor * value.hi)}},
          {"method", method_of(r)}};
}

/// Why upper ends of a scenario's figures are null; null where they are not.
ordered_json ends_note(const Capacity& r, std::size_t i) {
  if (r.in_worlds.interrupted) return "interrupted before all worlds were simulated, so that no figure has an interval";
  const sim::ScenarioInWorlds& scenario = r.in_worlds.scenarios[i];
  if (scenario.overloaded == 0) return nullptr;
  return fmt::format("in {} of {} simulated worlds the load is not carried: times and batch have no upper end",
                     scenario.overloaded, scenario.simulated.size());
}

ordered_json json_of(const std::optional<sim::SimulatedPercentiles>& percentiles, const Capacity& r) {
  if (!percentiles) return nullptr;
  return {{"p50", json_of(percentiles->p50, r)},
          {"p90", json_of(percentiles->p90, r)},
          {"p99", json_of(percentiles->p99, r)},
          {"mean", json_of(percentiles->mean, r)},
          {"asked", json_of(percentiles->asked, r)}};
}

ordered_json json_memory(const planner::ScenarioMemory& memory) {
  if (!memory.memory) return nullptr;
  const planning::KvMemory& m = *memory.memory;
  return {{"usable_bytes", m.usable_bytes},
          {"reserve_bytes", m.reserve_bytes},
          {"target_weight_bytes", m.target_weight_bytes},
          {"draft_weight_bytes", m.draft_weight_bytes},
          {"state_bytes", m.state_bytes},
          {"cache_bytes", m.cache_bytes},
          {"bytes_per_token", m.bytes_per_token}};
}

ordered_json json_schedule(const sim::CapacityScenario& scenario) {
  ordered_json schedule = ordered_json::array();
  for (const sim::GammaFrom& stretch : scenario.engine.schedule) {
    schedule.push_back({{"batch_low", stretch.batch_low}, {"gamma", stretch.gamma}});
  }
  return schedule;
}

ordered_json json_gpu_range(const std::optional<sim::GpuRange>& range) {
  if (!range) return nullptr;
  return {range->lo, range->some_never ? ordered_json() : ordered_json(range->hi)};
}

ordered_json json_saving(const Capacity& r) {
  if (r.acceptance.empty() || r.in_worlds.interrupted || r.answers_largest_load()) return nullptr;
  const sim::GpuShares gpus = r.gpus_against_plain();
  return {{"fewer", gpus.fewer}, {"more", gpus.more}};
}

ordered_json json_scenario(const Capacity& r, std::size_t i) {
  const ScenarioCapacity& s = r.scenarios()[i];
  const double per_gpu = 1 / static_cast<double>(r.simulation.gpus_per_replica);
  return {{"name", s.scenario.name},
          {"gamma", or_null(planner::gamma_of(s.scenario))},
          {"schedule", json_schedule(s.scenario)},
          {"price_extrapolated", r.rests_on_extrapolated(i)},
          {"max_num_seqs", s.scenario.engine.max_num_seqs},
          {"meets_load", s.meets_load},
          {"requests_per_second_per_replica", json_of(s.requests_per_second_per_replica, r)},
          {"saturated_requests_per_second_per_replica", json_of(s.saturated_requests_per_second_per_replica, r)},
          {"limited_by", planning::name_of(s.limited_by)},
          {"at_requests_per_second_per_replica", s.at_requests_per_second.value},
          {"at_clients_per_replica", s.at_clients > 0 ? ordered_json(s.at_clients) : ordered_json()},
          {"output_tokens_per_second_per_gpu", json_of(s.output_tokens_per_second, r, per_gpu)},
          {"mean_batch", json_of(s.mean_batch, r)},
          {"ttft_seconds", json_of(s.ttft_seconds, r)},
          {"tpot_seconds", json_of(s.tpot_seconds, r)},
          {"gap_seconds", json_of(s.gap_seconds, r)},
          {"ci95_note", ends_note(r, i)},
          {"preemptions_per_request", s.preemptions_per_request},
          {"kv_capacity_tokens", r.memory[i].tokens},
          {"kv_left_tokens", r.memory[i].left_tokens},
          {"memory_per_gpu", json_memory(r.memory[i])},
          {"gpus_per_replica", r.simulation.gpus_per_replica},
          {"replicas", or_null(s.replicas)},
          {"gpus", {{"value", or_null(s.gpus)}, {"ci95", json_gpu_range(r.in_worlds.scenarios[i].gpu_range)}}},
          {"requests_per_second_of_gpus", number_or_null(r.requests_per_second_together(i))},
          {"cost_per_million_tokens", number_or_null(s.cost_per_million_tokens)},
          {"verification_budget", s.scenario.engine.verification_budget}};
}

ordered_json json_place(const Capacity& r, std::size_t i) {
  const ScenarioCapacity& s = r.scenarios()[i];
  return {{"scenario", i},
          {"name", s.scenario.name},
          {"gamma", or_null(planner::gamma_of(s.scenario))},
          {"max_num_seqs", s.scenario.engine.max_num_seqs},
          {"gpus", or_null(s.gpus)},
          {"cost_per_million_tokens", number_or_null(s.cost_per_million_tokens)},
          {"tpot_seconds_p50", s.tpot_seconds ? ordered_json(s.tpot_seconds->p50.value) : ordered_json()}};
}

ordered_json json_point(const planner::LayoutSearch& search, const planner::LayoutPoint& point) {
  const planner::Layout& layout = search.layouts[point.layout].layout;
  return {{"tensor_parallel", layout.tensor_parallel},
          {"data_parallel", layout.data_parallel},
          {"expert_parallel", layout.expert_parallel},
          {"gpus_per_replica", layout.accelerators()},
          {"replicas", point.replicas},
          {"scenario", point.scenario},
          {"max_num_seqs", point.max_num_seqs},
          {"requests_per_second_per_replica", point.requests_per_second_per_replica},
          {"mean_batch", point.mean_batch},
          {"tpot_seconds_mean", point.tpot_seconds},
          {"gpu_seconds_per_token", point.gpu_seconds_per_token},
          {"cost_per_million_tokens", number_or_null(point.cost_per_million_tokens)}};
}

ordered_json json_layout(const planner::TriedLayout& tried) {
  const auto of = [](const std::optional<planner::LayoutPoint>& point, double planner::LayoutPoint::*member) {
    return point ? ordered_json((*point).*member) : ordered_json();
  };
  const auto& cheapest = tried.cheapest;
  return {{"tensor_parallel", tried.layout.tensor_parallel},
          {"data_parallel", tried.layout.data_parallel},
          {"expert_parallel", tried.layout.expert_parallel},
          {"gpus_per_replica", tried.layout.accelerators()},
          {"refused", tried.refusal.empty() ? ordered_json() : ordered_json(tried.refusal)},
          {"simulated_scenarios", tried.simulated},
          {"cheapest_scenario", cheapest ? ordered_json(cheapest->scenario) : ordered_json()},
          {"cheapest_replicas", cheapest ? ordered_json(cheapest->replicas) : ordered_json()},
          {"cheapest_gpu_seconds_per_token", of(cheapest, &planner::LayoutPoint::gpu_seconds_per_token)},
          {"cheapest_tpot_seconds_mean", of(cheapest, &planner::LayoutPoint::tpot_seconds)},
          {"fastest_gpu_seconds_per_token", of(tried.fastest, &planner::LayoutPoint::gpu_seconds_per_token)},
          {"fastest_tpot_seconds_mean", of(tried.fastest, &planner::LayoutPoint::tpot_seconds)}};
}

ordered_json json_layouts(const Capacity& r) {
  if (!r.layouts) return nullptr;
  ordered_json tried = ordered_json::array(), frontier = ordered_json::array();
  for (const planner::TriedLayout& layout : r.layouts->layouts) tried.push_back(json_layout(layout));
  for (const planner::LayoutPoint& point : r.layouts->frontier) frontier.push_back(json_point(*r.layouts, point));
  return {{"gpus", r.layouts->gpus},
          {"chosen", r.layouts->chosen},
          {"within_limits", r.layouts->is_within_limits},
          {"without_speculation", or_null(r.layouts->plain)},
          {"simulated", r.layouts->simulated()},
          {"tried", tried},
          {"frontier", frontier}};
}

ordered_json json_budget(const Capacity& r) {
  const std::optional<planner::BudgetGain> gain = r.budget_gain();
  if (!gain) return nullptr;
  return {{"budget", json_place(r, gain->budget)},
          {"best_fixed", json_place(r, gain->fixed)},
          {"relative_gain", gain->relative}};
}

ordered_json json_next(const Capacity& r) {
  const std::optional<sim::CapacityDoubt> doubt = r.doubt();
  if (!doubt) return nullptr;
  return {{"source", name_of(doubt->source)},
          {"gamma", doubt->next.gamma},
          {"batch", doubt->next.batch},
          {"context", doubt->next.context},
          {"with_baseline", doubt->next.with_baseline},
          {"command", benchmark_command(r, *doubt)}};
}

}  // namespace

ordered_json row_of_layout() { return json_layout({}); }

ordered_json row_of_layout_point() {
  planner::LayoutSearch search;
  search.layouts.resize(1);
  return json_point(search, {});
}

ordered_json json_of(const Capacity& r) {
  const sim::Workload& workload = r.simulation.workload;
  const char* const comparison = workload.clients    ? "equal concurrency"
                                 : r.asks_for_load() ? "equal arrival rate"
                                                     : "largest load of each";
  ordered_json json = {{"comparison", comparison},
                       {"requests_per_second", number_or_null(workload.requests_per_second)},
                       {"recorded_requests", workload.recorded.size()},
                       {"percentile", r.simulation.limits.percentile},
                       {"gpus_per_replica", r.simulation.gpus_per_replica},
                       {"acceptance", r.acceptance.empty() ? ordered_json() : ordered_json(r.acceptance)},
                       {"acceptance_laws", r.acceptance_laws},
                       {"calibrated", or_null(r.calibrated)},
                       {"worlds", r.in_worlds.worlds.size()}};
  ordered_json& scenarios = json["scenarios"] = ordered_json::array();
  for (std::size_t i = 0; i < r.scenarios().size(); ++i) scenarios.push_back(json_scenario(r, i));
  if (r.plain_elsewhere) scenarios.push_back(json_scenario(r.of_plain(), r.of_plain().plain()));
  json["partial"] = r.partial;
  json["recommended"] = r.answer().recommended ? json_place(r, *r.answer().recommended) : ordered_json();
  json["without_speculation"] = json_place(r.of_plain(), r.of_plain().plain());
  if (r.plain_elsewhere) json["without_speculation"]["scenario"] = r.scenarios().size();
  ordered_json& frontier = json["frontier"] = ordered_json::array();
  for (const std::size_t place : r.answer().frontier) frontier.push_back(json_place(r, place));
  json["gpus_in_worlds"] = json_saving(r);
  json["expected_regret"] = r.in_worlds.interrupted ? ordered_json() : ordered_json(r.in_worlds.regret);
  json["budget_gain"] = json_budget(r);
  json["layouts"] = json_layouts(r);
  json["next_measurement"] = json_next(r);
  return json;
}

}  // namespace specdec::render
