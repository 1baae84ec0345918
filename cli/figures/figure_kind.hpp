#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/report.hpp"
#include "render/figures/chart.hpp"

namespace specdec::cli {

using render::Chart;

/// A figure of `specdec plot`: `set_up` declares its options, each with a default that needs nothing but what comes
/// with the program, and returns what makes the chart once they are parsed.
struct FigureKind {
  /// Words joined by "-": "speedup-over-gamma".
  std::string name;
  /// One line for the help text.
  std::string summary;
  std::function<Chart()> (*set_up)(Options& options);
};

/// The figures by what they answer, each list from a file of its own: cli/figures/paper_figures.cpp and so on.
std::vector<FigureKind> paper_figures();
std::vector<FigureKind> planning_figures();
std::vector<FigureKind> trace_figures();

/// Figures of deployments.
FigureKind speedup_over_batch_figure();
FigureKind speedup_over_context_figure();
FigureKind cost_and_time_figure();

}  // namespace specdec::cli
