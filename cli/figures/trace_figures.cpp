#include "cli/figures/chart.hpp"

namespace specdec::cli {

std::vector<FigureKind> trace_figures() { return {}; }

}  // namespace specdec::cli
