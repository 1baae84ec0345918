#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>

#include "analysis/core/step_cost.hpp"
#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/estimate.hpp"
#include "sim/validation/compare.hpp"
#include "sim/validation/method_decoder.hpp"

namespace specdec::validation {

/// The cluster of a sequence that continues one of the prompts in turn: its prompt; with a single one, itself.
inline std::uint64_t cluster_of(std::size_t sequence, std::size_t prompts) {
  return prompts > 1 ? sequence % prompts : sequence;
}

/// A ratio of sums over clusters.
class RatioByCluster {
 public:
  void add(std::uint64_t cluster, double numerator, double denominator);
  /// Without the clusters whose denominator is 0; empty if that leaves none.
  std::optional<estimate::Estimate> value() const;

 private:
  std::map<std::uint64_t, estimate::RatioTerm> sums_;
};

/// A sequence that was decoded or replayed; `run` must outlive it.
struct FinishedSequence {
  std::uint64_t cluster = 0;
  const MethodRun* run = nullptr;
};

/// What holds for decoded and replayed sequences alike: the counts, what follows from them, acceptance and speedup.
/// @param sequences  at least one
MethodResult summary_of(const Method& method, const std::string& task, std::span<const FinishedSequence> sequences,
                        const std::optional<core::StepCost>& cost);

}  // namespace specdec::validation
