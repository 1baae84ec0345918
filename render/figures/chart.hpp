#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/assumption.hpp"
#include "render/figures/chart_panel.hpp"
#include "traces/note.hpp"

/// A figure is data first: whoever makes it fills in a Chart, and whoever draws it, prints it as a table or writes it
/// as JSON knows nothing else. A builder calls the libraries and computes nothing itself.
namespace specdec::render {

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
  std::vector<planner::Assumption> assumptions = {};
  std::vector<Note> warnings = {};
  /// Of the files behind it: "path", "size_bytes" and so on, as the caller identifies them.
  std::vector<nlohmann::ordered_json> files = {};
  std::vector<planner::UsedPreset> presets = {};
};

/// Refuses a chart that cannot be drawn: no panel, a key that is empty or stands for both x and y, vectors of a series
/// that its mark does not use or whose lengths differ, cells that are no evenly spaced grid or have no z axis, places
/// outside an axis of categories, places that are not positive on a logarithmic one, an empty range.
/// @throws std::invalid_argument naming the chart, the panel and the series
void require_drawable(const Chart& chart);

}  // namespace specdec::render
