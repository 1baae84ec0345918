#include "cli/figures/chart.hpp"

namespace specdec::cli {

std::vector<FigureKind> planning_figures() { return {}; }

}  // namespace specdec::cli
