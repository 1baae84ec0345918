#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/serving/capacity.hpp"
#include "sim/serving/request_rounds.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// For questions that differ in cost, acceptance, scenarios and loads alone.
/// @throws as plan_capacity
RequestSets requests_of(const CapacityQuestion& question);

/// As those without `requests`, which are those of the question.
CapacityAnswer plan_capacity(const CapacityQuestion& question, const core::RunHooks& hooks, RequestSets& requests);
std::vector<ReplicaAtLoad> replica_at_loads(const CapacityQuestion& question, std::size_t scenario,
                                            std::span<const double> loads, RequestSets& requests);

}  // namespace specdec::sim
