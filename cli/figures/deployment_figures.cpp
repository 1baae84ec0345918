#include "cli/figures/batch_figure.hpp"
#include "cli/figures/chart.hpp"
#include "cli/figures/load_figures.hpp"
#include "cli/figures/verification_figure.hpp"

namespace specdec::cli {

std::vector<FigureKind> deployment_figures() {
  std::vector<FigureKind> figures = {speedup_over_batch_figure(), verification_cost_figure()};
  for (FigureKind& figure : load_figures()) figures.push_back(std::move(figure));
  return figures;
}

}  // namespace specdec::cli
