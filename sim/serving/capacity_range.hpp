#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

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
/// @throws std::invalid_argument unless the answer has as many scenarios as the question
CapacityRange over_versions(const CapacityQuestion& question, CapacityAnswer answer,
                            std::span<const std::vector<RequestAcceptance>> acceptances);

}  // namespace specdec::sim
