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

/// Refuses a chart without anything to draw, in one of its panels or series, or with places at or below 0 on a
/// logarithmic axis.
/// @throws std::invalid_argument naming the chart
void require_drawable(const Chart& chart);

}  // namespace specdec::render
