#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analysis/planning/deployment_plan.hpp"
#include "sim/serving/capacity.hpp"

/// What the errors of the cost and of the acceptance do to a capacity answer.
namespace specdec::sim {

/// Fewest and most accelerators over the versions that were planned.
struct GpuRange {
  std::int64_t lo = 0, hi = 0;
  /// In some version no number of them meets the load.
  bool some_never = false;
};

/// An answer whose intervals hold, besides the simulation's own error, those of the cost and of the acceptance.
struct CapacityRange {
  /// lo and hi of every figure cover what it is in all versions that were run.
  CapacityAnswer answer;
  /// [scenario]; nothing where no load is asked for, or no version sustains any.
  std::vector<std::optional<GpuRange>> gpus;
  /// [scenario][version]: the same in each version, in one order for all scenarios; the answer's own comes first.
  std::vector<std::vector<std::optional<std::int64_t>>> gpus_by_version;
  /// [scenario][version]: requests/s that a replica sustains, in the same order: the answer's own, those with each of
  /// the replicates, those with each of the acceptances.
  std::vector<std::vector<double>> rates_by_version;
  /// Places of the replicates that were run; empty where the cost is taken as exact.
  std::vector<std::size_t> replicates;
};

/// Plans anew with the replicates of the cost that price the answer's iterations at 2.5% and 97.5% of all replicates,
/// those of the first scenario and of the recommended one at their mean batch, and with each of the other acceptances.
/// Replicates that price an iteration at nothing are left out. Figures of a version are those of as many replicas as
/// the answer has, at the load asked for or, where they do not take it, at the most they do; requests and random
/// numbers stay the same.
/// @param answer       to the question
/// @param acceptances  the ends of the acceptance's interval; empty where it is taken as exact
/// @param progress     called with the share of the versions that are done, where it is not empty
/// @throws std::invalid_argument unless the answer has as many scenarios as the question
CapacityRange over_versions(const CapacityQuestion& question, CapacityAnswer answer,
                            std::span<const std::vector<RequestAcceptance>> acceptances,
                            const std::function<void(double share)>& progress = {});

/// The most versions that over_versions plans, without the answer's own.
std::size_t most_versions(const CapacityQuestion& question,
                          std::span<const std::vector<RequestAcceptance>> acceptances);

/// In how many of the versions one scenario needs fewer accelerators than another, and in how many more; a version that
/// no number of them serves counts as more than any number.
struct GpuComparison {
  std::size_t fewer = 0, more = 0, versions = 0;
};

/// @param scenario, other  places in range.gpus_by_version; that many versions of both
/// @throws std::out_of_range, std::invalid_argument if they are not
GpuComparison compare_gpus(const CapacityRange& range, std::size_t scenario, std::size_t other);

/// What most of the uncertainty of a scenario's capacity is, and the run that would tell.
struct CapacityDoubt {
  planning::UncertaintySource source = planning::UncertaintySource::cost;
  planning::NextMeasurement next;
};

/// Compares how far ln(requests/s per replica) reaches over the versions of the cost and over those of the acceptance,
/// the answer's own among both; a scenario that is extrapolated has extrapolation for its source. The run is one of the
/// scenario's largest gamma at its mean batch, with plain decoding beside it where the cost is asked for.
/// @param scenario  place in range.answer.scenarios
/// @return nothing where no version differs
/// @throws std::out_of_range if there is no such scenario
std::optional<CapacityDoubt> capacity_doubt(const CapacityQuestion& question, const CapacityRange& range,
                                            std::size_t scenario);

/// replica_at_loads(), its intervals widened to what the same figures are with each of the replicates of the cost and
/// each of the acceptances. Where a version does not take a load, its queue grows and its times are those of this run.
/// @param replicates   places of replicates of the cost, as CapacityRange has them
/// @param acceptances  as in over_versions
/// @throws as replica_at_loads
std::vector<ReplicaAtLoad> replica_over_versions(const CapacityQuestion& question, std::size_t scenario,
                                                 std::span<const double> loads, std::span<const std::size_t> replicates,
                                                 std::span<const std::vector<RequestAcceptance>> acceptances);

/// Loads above this one, up to the next one of a list, need so many accelerators.
struct GpusFrom {
  /// Requests/s of all replicas, >= 0.
  double requests_per_second = 0;
  std::int64_t gpus = 0;
};

/// What loads need, by the rate that a replica sustains: gpus(load) = ceil(load / rate) accelerators of a replica, one
/// replica at least.
/// @param requests_per_second_per_replica  > 0
/// @param gpus_per_replica  >= 1
/// @param up_to  the largest load asked for, >= 0, at most 10^6 times the rate
/// @return rising, the first one at load 0, the last one below `up_to`
/// @throws std::domain_error if a value is outside its range
std::vector<GpusFrom> gpus_by_load(double requests_per_second_per_replica, std::int64_t gpus_per_replica, double up_to);

}  // namespace specdec::sim
