#pragma once

#include "sim/serving/capacity.hpp"
#include "sim/serving/replica_runs.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The capacity of a scenario, its number of replicas, and its figures there.
/// @param like  the scenario under another cost or acceptance: where to look first; may be null
ScenarioCapacity capacity_of(ReplicaRuns& runs, const ScenarioCapacity* like);

/// Recommends one of the scenarios that meet the load, and finds those that no other beats.
void compare_scenarios(CapacityAnswer& answer);

}  // namespace specdec::sim
