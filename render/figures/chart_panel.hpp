#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/estimate/estimate.hpp"

/// Contents of a chart within one pair of axes.
namespace specdec::render {

enum class AxisScale { linear, logarithmic };

std::string_view name_of(AxisScale scale);

struct ChartAxis {
  /// The name of the data column, snake_case with its unit: "time_per_token_ms". The ends of a mark are in the columns
  /// key_low and key_high.
  std::string key = {};
  /// The text beside the axis, with the unit, if any, in parentheses: "time per token (ms)".
  std::string label = {};
  AxisScale scale = AxisScale::linear;
  /// The range shown; if empty, that of the data.
  std::optional<double> low = {};
  std::optional<double> high = {};
  /// Names of the places 0, 1, 2, ... of an axis without numbers: tasks, methods.
  std::vector<std::string> categories = {};
};

/// The kind of mark at the data's places, and the vectors of a ChartSeries that it uses.
enum class ChartMark {
  line,        ///< x, y; not finite: a gap
  steps,       ///< x, y; constant from each x to the next
  points,      ///< x, y; low and high, if given, are the ends of an error bar along y
  bars,        ///< x, y; each from 0 to y; low and high as for points
  band,        ///< x, low, high: an area between two lines, an interval that varies with x
  box,         ///< x_low, x_high, low, high: rectangles, for instance an interval that the user gave
  cells,       ///< x, y, z: one cell of a heat map for each; x and y run over a regular grid, x fastest
  vertical,    ///< x: lines across the panel, for instance a crossover
  horizontal,  ///< y: lines across the panel
  text         ///< x, y, labels: text at a place
};

std::string_view name_of(ChartMark mark);

/// The importance of a series, which determines how it is drawn.
enum class ChartRole {
  data,       ///< one of the things compared; each has a colour, a dash and a point of its own
  reference,  ///< the standard of comparison: thin, grey
  highlight   ///< the subject of the figure: thick
};

std::string_view name_of(ChartRole role);

/// Colours with a fixed meaning in all figures; lists of gammas and the like use them in turn.
/// Plain decoding, closed forms and limits, which data are compared with, are references and so grey.
namespace chart_colours {
inline constexpr int speculation = 0;  ///< the draft, its accepted tokens, the best or recommended gamma
inline constexpr int target = 1;       ///< the target, its own tokens
inline constexpr int in_use = 2;       ///< the gamma in use
/// A colour's number plus this constant has the same colour with another dash and point.
inline constexpr int count = 7;
}  // namespace chart_colours

/// All vectors that a mark uses have one length; the others are empty.
struct ChartSeries {
  /// The name in the legend and in the table; empty for a series that the legend leaves out. Series of the same name in
  /// several panels look alike.
  std::string name = {};
  ChartMark mark = ChartMark::line;
  std::vector<double> x = {};
  std::vector<double> y = {};
  std::vector<double> low = {};
  std::vector<double> high = {};
  std::vector<double> x_low = {};
  std::vector<double> x_high = {};
  std::vector<double> z = {};
  std::vector<std::string> labels = {};
  ChartRole role = ChartRole::data;
  /// Series of one panel with the same number have the same colour: a line and the band around it. Counted from 0;
  /// if empty, the next one that is free.
  std::optional<int> colour = {};
};

/// One pair of axes.
struct ChartPanel {
  /// The title above the panel if there are several; a task, a model.
  std::string title = {};
  ChartAxis x = {};
  ChartAxis y = {};
  /// For cells: key, label and range of z.
  std::optional<ChartAxis> z = {};
  std::vector<ChartSeries> series = {};
};

/// Reference lines across the panel at some places.
/// @param mark  horizontal or vertical
ChartSeries reference_line(ChartMark mark, std::string name, std::vector<double> places);

/// A place where a line or a band is interrupted.
inline constexpr double chart_gap = std::numeric_limits<double>::quiet_NaN();

/// Appends the ends of an interval to those of a series; a gap where there is none.
void add_ends(const std::optional<estimate::Interval>& interval, ChartSeries& series);

/// Number of marks of a series.
std::size_t length_of(const ChartSeries& s);

}  // namespace specdec::render
