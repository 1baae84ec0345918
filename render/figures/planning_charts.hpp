#pragma once

#include <cstdint>
#include <optional>

#include "analysis/core/step_cost.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/planning/best_gamma.hpp"
#include "planner/plan.hpp"
#include "render/figures/chart.hpp"

/// Figures of a plan, for any caller that has one: `specdec plot` from its options, `specdec report` from the user's
/// answer. The assumptions and files of a chart are filled in by its caller.
namespace specdec::render {

/// The best speedup over acceptance rate and draft cost, boundaries between best gammas, and the user's values.
struct SpeedupMapInputs {
  /// v and overhead; its c is not used.
  core::StepCost cost = {};
  /// The user's acceptance rate and draft cost, each an interval; of zero length for a number.
  std::optional<estimate::Interval> alpha = {};
  std::optional<estimate::Interval> c = {};
  /// Set if the acceptance was measured by depth up to this gamma: the map's one rate for all drafts is then another
  /// assumption than a plan's.
  std::optional<std::int64_t> measured_at = {};
  /// The gammas compared, [1, planning::largest_mapped_gamma].
  std::int64_t max_gamma = 256;
  /// Number of cells along each axis, >= 2.
  int rates = 91;
  int costs = 61;
};
Chart speedup_map_chart(const SpeedupMapInputs& inputs);

/// Speedup against gamma at each point of the draft that a plan shows, one panel per point. Points beyond the sixth are
/// left out with a warning.
Chart speedup_over_gamma_chart(const planner::Plan& plan);

}  // namespace specdec::render
