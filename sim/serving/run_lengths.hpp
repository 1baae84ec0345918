#pragma once

#include <cstdint>

#include "sim/serving/capacity.hpp"
#include "sim/serving/planned_scenario.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The requests of a run, and the share of them at either end that is not counted.
struct RunLength {
  std::int64_t requests = 0;
  double warm_up = 0;
};

/// Length of a run of a scenario's replica at a load: a batch fills before requests count.
RunLength run_length(const Workload& workload, const PlannedScenario& planned, const ReplicaLoad& load);

/// Requests of a run with so many clients.
std::int64_t requests_with_clients(const Workload& workload, std::int64_t clients);

/// Requests of a run that shows at what rate a replica is saturated: enough for a few generations of the largest batch
/// and a hundred iterations, as long as that is not excessive.
std::int64_t requests_to_saturate(const Workload& workload, const PlannedScenario& planned);

/// Requests of the longest run of a scenario without clients.
std::int64_t most_requests(const Workload& workload, const PlannedScenario& planned);

}  // namespace specdec::sim
