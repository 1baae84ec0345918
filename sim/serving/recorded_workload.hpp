#pragma once

#include "sim/serving/capacity.hpp"
#include "traces/formats/request_trace.hpp"

namespace specdec::sim {

/// The requests of a trace, and their arrival rate:
///
///   requests_per_second = (n - 1) / (last arrival - first arrival)
///
/// @throws std::invalid_argument for fewer than two requests, or if all arrived at one time
Workload recorded_workload(const traces::RequestTrace& trace);

}  // namespace specdec::sim
