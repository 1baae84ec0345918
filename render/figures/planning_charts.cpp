#include "render/figures/planning_charts.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "analysis/planning/speedup_map.hpp"
#include "render/figures/chart_words.hpp"
#include "render/text.hpp"

namespace specdec::render {

namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();

/// `count` numbers from low to high, inclusive, at equal distances.
std::vector<double> evenly(double low, double high, int count) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(low + (high - low) * i / (count - 1));
  return values;
}

std::vector<double> evenly_in_logarithm(double low, double high, int count) {
  std::vector<double> values;
  for (const double x : evenly(std::log(low), std::log(high), count)) values.push_back(std::exp(x));
  return values;
}

std::string range_text(const estimate::Interval& interval) {
  return interval.lo == interval.hi ? brief(interval.lo)
                                    : fmt::format("{} to {}", brief(interval.lo), brief(interval.hi));
}

// ---- The map.

constexpr double lowest_c = 0.001;
constexpr double highest_c = 1;
constexpr double lowest_rate = 0.05;
constexpr double highest_rate = 0.95;
/// Lines closer together than these add nothing.
constexpr std::array<std::int64_t, 8> drawn_boundaries = {1, 2, 3, 4, 6, 8, 12, 24};

/// The lines one after the other with gaps between them, and the numbers on them.
std::vector<ChartSeries> boundary_series(const SpeedupMapInputs& inputs) {
  std::vector<std::int64_t> gammas;
  for (const std::int64_t gamma : drawn_boundaries) {
    if (gamma <= inputs.max_gamma) gammas.push_back(gamma);
  }
  const std::vector<double> rates = evenly(lowest_rate, highest_rate, 181);
  ChartSeries lines{.name = "boundary between best γ", .colour = 0};
  ChartSeries numbers{.name = "least γ below the boundary", .mark = ChartMark::text};
  for (const auto& boundary : planning::gamma_boundaries(rates, gammas, inputs.cost, inputs.max_gamma)) {
    std::vector<std::size_t> shown;
    for (std::size_t i = 0; i < rates.size(); ++i) {
      if (lowest_c <= boundary.c[i] && boundary.c[i] <= highest_c) shown.push_back(i);
    }
    if (shown.size() < 2) continue;
    if (!lines.x.empty()) {
      lines.x.push_back(chart_gap);
      lines.y.push_back(chart_gap);
    }
    for (const std::size_t i : shown) {
      lines.x.push_back(rates[i]);
      lines.y.push_back(boundary.c[i]);
    }
    const std::size_t middle = shown[shown.size() / 2];
    numbers.x.push_back(rates[middle]);
    numbers.y.push_back(boundary.c[middle]);
    numbers.labels.push_back(fmt::format("\u2265{}", boundary.gamma));
  }
  if (lines.x.empty()) return {};
  return {std::move(lines), std::move(numbers)};
}

std::string map_caption(const SpeedupMapInputs& inputs) {
  std::string caption = "Below a line this γ or a larger one is best; above the first line plain decoding is.";
  if (!inputs.alpha || !inputs.c) return caption;
  std::string best;
  for (const double alpha : {inputs.alpha->lo, inputs.alpha->hi}) {
    for (const double c : {inputs.c->hi, inputs.c->lo}) {
      const auto corner = planning::speedup_map({alpha}, {c}, inputs.cost, inputs.max_gamma);
      const std::string says =
          fmt::format("{}× by γ = {} at α = {}{}", brief(corner.speedup[0], 3), corner.gamma[0], brief(alpha),
                      inputs.c->lo == inputs.c->hi ? "" : fmt::format(", c = {}", brief(c)));
      if (best.find(says) == std::string::npos) best += (best.empty() ? "" : "; ") + says;
    }
  }
  const bool is_point = inputs.alpha->lo == inputs.alpha->hi && inputs.c->lo == inputs.c->hi;
  const std::string one_rate =
      inputs.measured_at ? fmt::format(
                               ", if every draft is accepted at that one rate; it was measured up to γ = {}, and a "
                               "plan takes rates beyond to fall",
                               *inputs.measured_at)
                         : "";
  return fmt::format("{}, α {} at c {}: {}{}. {}", is_point ? "The point" : "The box", range_text(*inputs.alpha),
                     range_text(*inputs.c), best, one_rate, caption);
}

/// The part of the map that is in question: a box, with points at its corners where it is too small to be seen.
/// @param alpha, c  within the map
std::vector<ChartSeries> in_question(const estimate::Interval& alpha, const estimate::Interval& c) {
  constexpr const char* name = "α and c in question";
  constexpr double visible_share = 0.01;
  const bool has_width = alpha.hi - alpha.lo >= visible_share * (highest_rate - lowest_rate);
  const bool has_height = std::log(c.hi / c.lo) >= visible_share * std::log(highest_c / lowest_c);
  std::vector<ChartSeries> series;
  if (alpha.lo < alpha.hi && c.lo < c.hi) {
    series.push_back({.name = name,
                      .mark = ChartMark::box,
                      .low = {c.lo},
                      .high = {c.hi},
                      .x_low = {alpha.lo},
                      .x_high = {alpha.hi},
                      .role = ChartRole::highlight});
    if (has_width && has_height) return series;
  }
  ChartSeries ends{.name = series.empty() ? name : "", .mark = ChartMark::points, .role = ChartRole::highlight};
  for (const double rate : {alpha.lo, alpha.hi}) {
    for (const double cost : {c.lo, c.hi}) {
      if (!ends.x.empty() && ends.x.back() == rate && ends.y.back() == cost) continue;
      ends.x.push_back(rate);
      ends.y.push_back(cost);
    }
  }
  if (alpha.lo == alpha.hi && c.lo == c.hi) {
    ends.x.resize(1);
    ends.y.resize(1);
  } else if (series.empty()) {
    series.push_back({.name = "", .mark = ChartMark::line, .x = ends.x, .y = ends.y, .role = ChartRole::highlight});
  }
  series.push_back(std::move(ends));
  return series;
}

// ---- Speedup over gamma.

constexpr std::size_t most_points = 6;

/// As many rows as are needed to show the rise and the fall.
std::size_t shown_rows(const planning::PointPlan& point) {
  std::size_t rows = std::max<std::size_t>(9, 2 * point.optimal_row + 3);
  for (const std::int64_t gamma : point.near_optimal_gammas) {
    rows = std::max(rows, static_cast<std::size_t>(gamma) + 3);
  }
  if (point.deployed) rows = std::max(rows, static_cast<std::size_t>(point.deployed->gamma) + 3);
  return std::min(rows, point.rows.size());
}

/// Consecutive gammas become one box.
ChartSeries near_optimal_boxes(const planning::PointPlan& point) {
  ChartSeries boxes{.name = "near-optimal γ", .mark = ChartMark::box, .role = ChartRole::reference};
  for (const std::int64_t gamma : point.near_optimal_gammas) {
    const auto place = static_cast<double>(gamma);
    if (!boxes.x_high.empty() && boxes.x_high.back() == place - 0.5) {
      boxes.x_high.back() = place + 0.5;
      continue;
    }
    boxes.x_low.push_back(place - 0.5);
    boxes.x_high.push_back(place + 0.5);
    boxes.low.push_back(-unbounded);
    boxes.high.push_back(unbounded);
  }
  return boxes;
}

ChartPanel speedup_panel(const planning::PointPlan& point) {
  ChartPanel panel{.title = point_words(point.batch, point.context),
                   .x = {.key = "gamma", .label = "γ (drafted tokens per step)"},
                   .y = {.key = "speedup", .label = "speedup over plain decoding (×)"}};
  ChartSeries near = near_optimal_boxes(point);
  if (!near.x_low.empty()) panel.series.push_back(std::move(near));
  ChartSeries band{.name = interval_name({&point, 1}), .mark = ChartMark::band, .colour = chart_colours::speculation};
  ChartSeries line{.name = "speedup", .role = ChartRole::highlight, .colour = chart_colours::speculation};
  bool has_width = false;
  for (std::size_t i = 0; i < shown_rows(point); ++i) {
    const planning::DeploymentRow& row = point.rows[i];
    band.x.push_back(static_cast<double>(row.gamma));
    band.low.push_back(row.speedup_ci95.lo);
    band.high.push_back(row.speedup_ci95.hi);
    line.x.push_back(static_cast<double>(row.gamma));
    line.y.push_back(row.speedup);
    has_width = has_width || row.speedup_ci95.lo < row.speedup_ci95.hi;
  }
  if (has_width) panel.series.push_back(std::move(band));
  panel.series.push_back(std::move(line));
  panel.series.push_back(
      {.name = "plain decoding", .mark = ChartMark::horizontal, .y = {1}, .role = ChartRole::reference});
  panel.series.push_back({.name = point.optimal().regret > 0 ? "recommended γ" : "best γ",
                          .mark = ChartMark::vertical,
                          .x = {static_cast<double>(point.optimal().gamma)},
                          .role = ChartRole::highlight,
                          .colour = chart_colours::speculation});
  if (point.deployed) {
    panel.series.push_back({.name = "γ in use",
                            .mark = ChartMark::vertical,
                            .x = {static_cast<double>(point.deployed->gamma)},
                            .role = ChartRole::highlight,
                            .colour = chart_colours::in_use});
  }
  return panel;
}

std::string speedup_words(const planning::PointPlan& point) {
  const planning::DeploymentRow& best = point.optimal();
  estimate::Estimate speedup{best.speedup, best.speedup_ci95, ""};
  // A half-width that would be printed as 0.00 is none.
  if (!(best.speedup_ci95.hi - best.speedup_ci95.lo >= 0.01)) speedup.ci95.reset();
  std::string range;
  if (speedup.ci95 && best.speedup_bounds) {
    range = fmt::format(" ({:.2f}× to {:.2f}×)", speedup.ci95->lo, speedup.ci95->hi);
    speedup.ci95.reset();
  }
  const bool is_largest = std::none_of(point.rows.begin(), point.rows.end(),
                                       [&](const planning::DeploymentRow& row) { return row.speedup > best.speedup; });
  std::string words = best.gamma == 0
                          ? fmt::format("plain decoding is {}", is_largest ? "fastest" : "recommended")
                          : fmt::format("γ = {} is {}, {}× as fast as plain decoding{}", best.gamma,
                                        is_largest ? "best" : "recommended", estimate_label(speedup, 2), range);
  if (point.deployed) {
    words += fmt::format("; γ = {}, in use, gives {}×, a regret of {}", point.deployed->gamma,
                         brief(point.deployed->speedup, 3), percent(point.deployed->regret));
  }
  return words + ".";
}

}  // namespace

Chart speedup_map_chart(const SpeedupMapInputs& inputs) {
  Chart chart{.name = "speedup-map", .title = "Best speedup over acceptance rate and draft cost"};
  ChartPanel panel{
      .x = {.key = "alpha", .label = "acceptance rate α", .low = 0.045, .high = 0.955},
      .y = {.key = "c",
            .label = "c (draft step / target step time)",
            .scale = AxisScale::logarithmic,
            .low = lowest_c,
            .high = highest_c},
      .z = ChartAxis{.key = "speedup", .label = "best speedup (×)", .scale = AxisScale::logarithmic, .low = 1}};
  const std::vector<double> rates = evenly(lowest_rate, highest_rate, inputs.rates);
  const std::vector<double> costs = evenly_in_logarithm(lowest_c, highest_c, inputs.costs);
  ChartSeries cells{.name = "best speedup", .mark = ChartMark::cells};
  cells.z = planning::speedup_map(rates, costs, inputs.cost, inputs.max_gamma).speedup;
  for (const double c : costs) {
    for (const double rate : rates) {
      cells.x.push_back(rate);
      cells.y.push_back(c);
    }
  }
  panel.series.push_back(std::move(cells));
  for (ChartSeries& line : boundary_series(inputs)) panel.series.push_back(std::move(line));
  if (inputs.alpha && inputs.c) {
    const auto shown = [](const estimate::Interval& interval, double low, double high) {
      return low <= interval.hi && interval.lo <= high;
    };
    if (shown(*inputs.alpha, lowest_rate, highest_rate) && shown(*inputs.c, lowest_c, highest_c)) {
      const auto within = [](const estimate::Interval& interval, double low, double high) {
        return estimate::Interval{std::max(interval.lo, low), std::min(interval.hi, high)};
      };
      for (ChartSeries& mark :
           in_question(within(*inputs.alpha, lowest_rate, highest_rate), within(*inputs.c, lowest_c, highest_c))) {
        panel.series.push_back(std::move(mark));
      }
    } else {
      chart.warnings.push_back({"outside_map", fmt::format("α {} at c {} lies outside the map, which shows α "
                                                           "from {} to {} and c from {} to {}",
                                                           range_text(*inputs.alpha), range_text(*inputs.c),
                                                           lowest_rate, highest_rate, lowest_c, highest_c)});
    }
  }
  chart.caption = map_caption(inputs);
  chart.panels.push_back(std::move(panel));
  return chart;
}

Chart speedup_over_gamma_chart(const planner::Plan& plan) {
  const std::vector<planning::PointPlan>& points = plan.points();
  Chart chart{.name = "speedup-over-gamma", .title = "Speedup against drafted tokens per step"};
  const std::size_t shown = std::min(points.size(), most_points);
  chart.columns = shown == 1 ? 1 : shown == 4 ? 2 : static_cast<int>(std::min<std::size_t>(shown, 3));
  for (std::size_t i = 0; i < shown; ++i) chart.panels.push_back(speedup_panel(points[i]));
  if (shown == 1) chart.panels.front().title.clear();
  if (shown < points.size()) {
    chart.warnings.push_back(
        {"points_left_out", fmt::format("the first {} of {} points are shown", shown, points.size())});
  }
  chart.caption =
      fmt::format("With {}: ",
                  plan.drafts.empty() ? "benchmark runs" : acceptance_words(plan.drafts[plan.shown()].acceptance, "α"));
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string words = speedup_words(points[i]);
    chart.caption += shown == 1 ? words : fmt::format("{}: {} ", chart.panels[i].title, words);
  }
  const planning::PointPlan& first = points.front();
  if (!first.near_optimal_gammas.empty()) {
    chart.caption += fmt::format("{}Shaded: expected to lose at most {} to the best.",
                                 chart.caption.back() == ' ' ? "" : " ", percent(worlds::alike_regrets));
  }
  if (first.optimal().speedup_ci95.lo < first.optimal().speedup_ci95.hi) {
    chart.caption +=
        fmt::format(" Shown is a {}: {}.", interval_name({&first, 1}), first.speedup_estimate.method);
  }
  return chart;
}

}  // namespace specdec::render
