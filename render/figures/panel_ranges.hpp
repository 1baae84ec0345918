#pragma once

#include <vector>

#include "render/figures/chart_panel.hpp"

/// The ranges of a panel's axes, and the room that bars and cells take on them.
namespace specdec::render {

struct AxisRange {
  double low;
  double high;
};

struct PanelRanges {
  AxisRange x;
  AxisRange y;
};

bool is_logarithmic(const ChartAxis& axis);

bool has_cells(const ChartPanel& panel);

/// The ranges stated for the axes, else those of the marks, with room at the ends of y; for an axis of categories all
/// of them, with half a place beyond the outer ones.
PanelRanges ranges_of(const ChartPanel& panel);

/// The range of the colours of cells: as stated for the axis, else that of the values.
AxisRange colour_range_of(const ChartAxis& z, const ChartSeries& cells);

/// An end of a mark within the panel: if it is infinite, or not positive on a logarithmic axis, the end of the axis.
double end_within(double value, const AxisRange& range, const ChartAxis& axis);

/// Bars of several series at one place stand side by side.
double bar_width(const ChartPanel& panel);

/// The distance from the place of a bar of `bars`, a series of this panel, to its middle.
double bar_shift(const ChartPanel& panel, const ChartSeries& bars);

/// Edges between cells, and half a cell beyond the outer ones' middles.
struct CellGrid {
  std::vector<double> x_edges;
  std::vector<double> y_edges;
};

CellGrid grid_of(const ChartPanel& panel, const ChartSeries& cells);

/// The range of an axis that counts cells, from 0 at the middle of the first one, that corresponds to `shown` on the
/// axis whose cells have these edges.
AxisRange counted_cells(const std::vector<double>& edges, AxisScale scale, const AxisRange& shown);

}  // namespace specdec::render
