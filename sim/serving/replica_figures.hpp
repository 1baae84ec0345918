#pragma once

#include <optional>

#include "sim/serving/capacity.hpp"
#include "sim/serving/replica_runs.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The figures of a replica at a load, from all replications.
ReplicaAtLoad replica_at(ReplicaRuns& runs, const ReplicaLoad& load);

/// Cost at so many seconds of an accelerator per token; empty without a price.
std::optional<double> cost_per_million_tokens(const CapacityQuestion& question, double gpu_seconds_per_token);

}  // namespace specdec::sim
