#include "cli/figures/chart.hpp"

namespace specdec::cli {

std::vector<FigureKind> validation_figures() { return {}; }

}  // namespace specdec::cli
