#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// What a chart shows within one pair of axes.
namespace specdec::render {

enum class AxisScale { linear, logarithmic };

std::string_view name_of(AxisScale scale);

struct ChartAxis {
  /// Of the column of the data, snake_case with its unit: "time_per_token_ms". The ends of a mark are in the columns
  /// key_low and key_high.
  std::string key = {};
  /// Beside the axis, with the unit in parentheses where there is one: "time per token (ms)".
  std::string label = {};
  AxisScale scale = AxisScale::linear;
  /// The range shown; that of the data where missing.
  std::optional<double> low = {};
  std::optional<double> high = {};
  /// Names of the places 0, 1, 2, ... of an axis that has no numbers: tasks, methods.
  std::vector<std::string> categories = {};
};

/// What stands at the data's places, and which vectors of a ChartSeries it uses.
enum class ChartMark {
  line,        ///< x, y; not finite: a gap
  steps,       ///< x, y; constant from each x to the next
  points,      ///< x, y; low and high, where given, are the ends of an error bar along y
  bars,        ///< x, y; each from 0 to y; low and high as for points
  band,        ///< x, low, high: an area between two lines, an interval that goes with x
  box,         ///< x_low, x_high, low, high: rectangles, for instance the interval of what the user gave
  cells,       ///< x, y, z: one cell of a heat map for each; x and y run over a regular grid, x fastest
  vertical,    ///< x: lines across the panel, for instance a crossover
  horizontal,  ///< y: lines across the panel
  text         ///< x, y, labels: words at a place
};

std::string_view name_of(ChartMark mark);

/// How much a series matters, and so how it is drawn.
enum class ChartRole {
  data,       ///< one of the things compared; each has a colour, a dash and a point of its own
  reference,  ///< what the data are held against: thin, grey
  highlight   ///< what the figure is about: thick
};

std::string_view name_of(ChartRole role);

/// Colours that mean the same in every figure that has these things; lists of gammas and the like take them in turn.
/// Plain decoding, closed forms and limits, what data are held against, are references and so grey.
namespace chart_colours {
inline constexpr int speculation = 0;  ///< the draft, its accepted tokens, the best or recommended gamma
inline constexpr int target = 1;       ///< the target, its own tokens
inline constexpr int in_use = 2;       ///< the gamma in use
/// A colour's number with this added has the same colour, and another dash and point.
inline constexpr int count = 7;
}  // namespace chart_colours

/// All vectors that a mark uses have one length; the others are empty.
struct ChartSeries {
  /// In the legend and in the table; empty for what the legend leaves out. Series of the same name in several panels
  /// look alike.
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
  /// missing: the next one that is free.
  std::optional<int> colour = {};
};

/// One pair of axes.
struct ChartPanel {
  /// Above the panel where there are several; a task, a model.
  std::string title = {};
  ChartAxis x = {};
  ChartAxis y = {};
  /// Of cells: key, label and range of z.
  std::optional<ChartAxis> z = {};
  std::vector<ChartSeries> series = {};
};

/// Lines across the panel at some places, what the data are held against.
/// @param mark  horizontal or vertical
ChartSeries reference_line(ChartMark mark, std::string name, std::vector<double> places);

/// The vectors of a ChartSeries that a mark always uses.
std::vector<std::string_view> vectors_of(ChartMark mark);

}  // namespace specdec::render
