#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/planning/deployment_plan.hpp"

namespace specdec::planning {

/// A gamma, or the best one of each batch, over the batches of a plan at one context. Shape: all (batches), but for
/// output_tokens_per_second where times are no seconds.
struct BatchCurve {
  std::vector<double> batch;
  std::vector<std::int64_t> gamma;
  /// Of plain decoding at the same batch, with its 95% interval.
  std::vector<double> speedup, speedup_low, speedup_high;
  /// Of all sequences: batch tokens per step / seconds of the round.
  std::vector<double> output_tokens_per_second;
};

/// A gamma over the points of one context, or of all where it is nothing, in their order; points that do not know it
/// are left out.
/// @param in_seconds  the plan's times are seconds
BatchCurve gamma_over_batches(std::span<const PointPlan> points, std::optional<double> context, std::int64_t gamma,
                              bool in_seconds);

/// The best gamma of each point that has one.
BatchCurve best_over_batches(std::span<const PointPlan> points, std::optional<double> context, bool in_seconds);

/// Where a speedup falls below `least` for good: the batch beyond the last one with at least that speedup, ln(speedup)
/// taken as linear in ln(batch) up to the next batch of the curve.
/// @param curve  batches rising
/// @param least  > 0
/// @return nothing where the speedup is below `least` at every batch, or is not at the largest one
std::optional<double> last_gain(const BatchCurve& curve, double least);

}  // namespace specdec::planning
