#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/planning/deployment_plan.hpp"

namespace specdec::planning {

/// One gamma, or the best one of each batch, over the batches of a plan at one context. Shape: all (batches), except
/// output_tokens_per_second if times are not seconds.
struct BatchCurve {
  std::vector<double> batch;
  std::vector<std::int64_t> gamma;
  /// Speedup over plain decoding at the same batch, with its 95% interval.
  std::vector<double> speedup, speedup_low, speedup_high;
  /// Total of all sequences: batch tokens per step / seconds of the round.
  std::vector<double> output_tokens_per_second;
};

/// A gamma over the points of one context, or of all contexts if it is empty, in their order; points without that gamma
/// are left out.
/// @param in_seconds  the plan's times are seconds
BatchCurve gamma_over_batches(std::span<const PointPlan> points, std::optional<double> context, std::int64_t gamma,
                              bool in_seconds);

/// The best gamma at each point that has one.
BatchCurve best_over_batches(std::span<const PointPlan> points, std::optional<double> context, bool in_seconds);

/// The batch from which on the speedup stays below `least`: beyond the last batch with at least that speedup, with
/// ln(speedup) interpolated linearly in ln(batch) up to the next batch of the curve.
/// @param curve  batches in increasing order
/// @param least  > 0
/// @return empty if the speedup is below `least` at every batch, or is not below it at the largest one
std::optional<double> last_gain(const BatchCurve& curve, double least);

}  // namespace specdec::planning
