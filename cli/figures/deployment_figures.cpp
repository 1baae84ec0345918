#include "cli/figures/figure_kind.hpp"

namespace specdec::cli {

std::vector<FigureKind> deployment_figures() {
  return {speedup_over_batch_figure(), speedup_over_context_figure(), cost_and_time_figure()};
}

}  // namespace specdec::cli
