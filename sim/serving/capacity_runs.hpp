#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/serving/capacity.hpp"
#include "sim/serving/planned_scenario.hpp"
#include "sim/serving/request_rounds.hpp"
#include "sim/serving/simulated_workload.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// For questions that differ in cost, acceptance, scenarios and loads alone.
/// @throws as plan_capacity
RequestSets requests_of(const CapacityQuestion& question);

/// Those whose statistics the formulas are given: the first of every replication. Makes as many.
std::vector<SimulatedRequest> planned_requests(const CapacityQuestion& question, RequestSets& requests);
/// The rounds of the formulas by the question's acceptance. @param requests  planned_requests()
RoundsToCover rounds_to_cover(const CapacityQuestion& question, const std::vector<SimulatedRequest>& requests);
/// The scenarios of the question with the predictions of the formulas. @param requests  planned_requests()
std::vector<PlannedScenario> plan_scenarios(const CapacityQuestion& question,
                                            const std::vector<SimulatedRequest>& requests);

/// As those without `requests`, which are those of the question.
/// @param like  the question's only scenario under another cost or acceptance, near whose load the search begins; null
///              if there is none
CapacityAnswer plan_capacity(const CapacityQuestion& question, const core::RunHooks& hooks, RequestSets& requests,
                             const ScenarioCapacity* like);
std::vector<ReplicaAtLoad> replica_at_loads(const CapacityQuestion& question, std::size_t scenario,
                                            std::span<const double> loads, RequestSets& requests);

}  // namespace specdec::sim
