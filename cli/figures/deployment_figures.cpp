#include "cli/figures/chart.hpp"

namespace specdec::cli {

std::vector<FigureKind> deployment_figures() { return {}; }

}  // namespace specdec::cli
