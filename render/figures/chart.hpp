#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/assumption.hpp"
#include "render/figures/chart_panel.hpp"
#include "traces/note.hpp"

/// A figure is data first: builders fill in a Chart; code that draws it, prints it as a table or writes it
/// as JSON uses nothing else. A builder calls the libraries and computes nothing itself.
namespace specdec::render {

struct Chart {
  /// The NAME in `specdec plot NAME`.
  std::string name = {};
  std::string title = {};
  /// One or two sentences: what the figure shows, with its numbers. Stands below the drawing, and is read aloud by
  /// screen readers.
  std::string caption = {};
  std::vector<ChartPanel> panels = {};
  /// Number of panels side by side.
  int columns = 1;
  std::vector<planner::Assumption> assumptions = {};
  std::vector<Note> warnings = {};
  /// The files behind it: "path", "size_bytes" and so on, as the caller identifies them.
  std::vector<nlohmann::ordered_json> files = {};
  std::vector<planner::UsedPreset> presets = {};
};

/// Refuses a chart that cannot be drawn: no panel, a key that is empty or used for both x and y, vectors of a series
/// that its mark does not use or whose lengths differ, cells that are not an evenly spaced grid or have no z axis,
/// places outside an axis of categories, nonpositive places on a logarithmic axis, an empty range.
/// @throws std::invalid_argument naming the chart, the panel and the series
void require_drawable(const Chart& chart);

}  // namespace specdec::render
