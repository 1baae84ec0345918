#include "analysis/planning/batch_curves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "analysis/core/checks.hpp"

namespace specdec::planning {
namespace {

void append(const PointPlan& point, const DeploymentRow& row, bool in_seconds, BatchCurve& curve) {
  curve.batch.push_back(point.batch);
  curve.gamma.push_back(row.gamma);
  curve.speedup.push_back(row.speedup);
  curve.speedup_low.push_back(row.speedup_ci95.lo);
  curve.speedup_high.push_back(row.speedup_ci95.hi);
  if (in_seconds) curve.output_tokens_per_second.push_back(point.batch * row.tokens_per_step / row.time.total());
}

}  // namespace

BatchCurve gamma_over_batches(std::span<const PointPlan> points, std::optional<double> context, std::int64_t gamma,
                              bool in_seconds) {
  BatchCurve curve;
  for (const PointPlan& point : points) {
    if (context && point.context != *context) continue;
    const auto row = std::find_if(point.rows.begin(), point.rows.end(),
                                  [gamma](const DeploymentRow& other) { return other.gamma == gamma; });
    if (row != point.rows.end()) append(point, *row, in_seconds, curve);
  }
  return curve;
}

BatchCurve best_over_batches(std::span<const PointPlan> points, std::optional<double> context, bool in_seconds) {
  BatchCurve curve;
  for (const PointPlan& point : points) {
    if (!context || point.context == *context) append(point, point.optimal(), in_seconds, curve);
  }
  return curve;
}

std::optional<double> last_gain(const BatchCurve& curve, double least) {
  core::require_in("last_gain", "least", least, std::numeric_limits<double>::min(), 1e12);
  std::size_t place = curve.batch.size();
  while (place > 0 && curve.speedup[place - 1] < least) --place;
  if (place == 0 || place == curve.batch.size()) return std::nullopt;
  const double above = std::log(curve.speedup[place - 1] / least), below = std::log(curve.speedup[place] / least);
  const double share = above / (above - below);
  return curve.batch[place - 1] * std::pow(curve.batch[place] / curve.batch[place - 1], share);
}

}  // namespace specdec::planning
