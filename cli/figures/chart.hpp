#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/figures/chart_panel.hpp"
#include "cli/options.hpp"
#include "cli/report.hpp"

/// A figure is data first: whoever makes it fills in a Chart, and whoever draws it, prints it as a table or writes it
/// as JSON knows nothing else. A builder calls the libraries and computes nothing itself.
namespace specdec::cli {

struct Chart {
  /// That of `specdec plot NAME`.
  std::string name = {};
  std::string title = {};
  /// One or two sentences: what is to be seen here, with its figures. Stands below the drawing, and is what a screen
  /// reader reads.
  std::string caption = {};
  std::vector<ChartPanel> panels = {};
  /// Panels side by side.
  int columns = 1;
  std::vector<Assumption> assumptions = {};
  std::vector<Warning> warnings = {};
  /// As in Report.
  std::vector<nlohmann::ordered_json> files = {};
  std::vector<nlohmann::ordered_json> presets = {};
};

/// Refuses a chart that cannot be drawn: no panel, a key that is empty or stands for both x and y, vectors of a series
/// that its mark does not use or whose lengths differ, cells that are no evenly spaced grid or have no z axis, places
/// outside an axis of categories, places that are not positive on a logarithmic one, an empty range.
/// @throws std::invalid_argument naming the chart, the panel and the series
void require_drawable(const Chart& chart);

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
std::vector<FigureKind> deployment_figures();
std::vector<FigureKind> validation_figures();

}  // namespace specdec::cli
