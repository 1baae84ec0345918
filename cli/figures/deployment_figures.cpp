#include "cli/figures/figure_kind.hpp"

namespace specdec::cli {

std::vector<FigureKind> deployment_figures() {
  std::vector<FigureKind> figures = {speedup_over_batch_figure(), speedup_over_context_figure(),
                                     verification_budget_figure(), verification_cost_figure()};
  for (FigureKind& figure : load_figures()) figures.push_back(std::move(figure));
  figures.push_back(sweep_figure());
  return figures;
}

}  // namespace specdec::cli
