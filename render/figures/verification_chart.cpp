#include "render/figures/verification_chart.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "planner/question_error.hpp"
#include "render/text.hpp"

namespace specdec::render {

namespace {

/// 1, 2, 3, 4, 6, 8, 12, ... up to the last.
std::vector<std::int64_t> positions_up_to(std::int64_t last) {
  std::vector<std::int64_t> positions;
  for (std::int64_t power = 1; power < last; power *= 2) {
    positions.push_back(power);
    if (power > 1 && power / 2 * 3 < last) positions.push_back(power / 2 * 3);
  }
  positions.push_back(last);
  return positions;
}

/// Half of the shortest time, ignoring the separate times of the parts.
double lowest_shown(const ChartPanel& panel) {
  double lowest = std::numeric_limits<double>::infinity();
  for (const ChartSeries& series : panel.series) {
    if (series.role == ChartRole::reference) continue;
    for (const auto* values : {&series.y, &series.low}) {
      for (const double value : *values) lowest = std::min(lowest, value);
    }
  }
  return lowest / 2;
}

void add_roofline(const VerificationCostInputs& in, ChartPanel& panel) {
  ChartSeries band, verifying, decoding, reading, multiplying;
  band.name = "one sequence, 95%";
  band.mark = ChartMark::band;
  band.colour = 0;
  verifying.name = "γ + 1 tokens of one sequence";
  verifying.role = ChartRole::highlight;
  verifying.colour = 0;
  decoding.name = "one token of each sequence";
  decoding.colour = 1;
  reading.name = "reading weights alone";
  multiplying.name = "multiplying alone";
  reading.role = multiplying.role = ChartRole::reference;
  for (const std::int64_t n : positions_up_to(in.up_to)) {
    const auto positions = static_cast<double>(n);
    const cost::RoundPoint one = {n - 1, 1, in.context, 0}, each = {0, positions, in.context, 0};
    const cost::Range range = cost::central_range(*in.roofline, one);
    const cost::PassSeconds parts = in.roofline->target_pass(1, positions, in.context);
    const auto add = [&](ChartSeries& series, double seconds) {
      series.x.push_back(positions);
      series.y.push_back(milliseconds_per_second * seconds);
    };
    band.x.push_back(positions);
    band.low.push_back(milliseconds_per_second * range.lo);
    band.high.push_back(milliseconds_per_second * range.hi);
    add(verifying, in.roofline->round(one).total());
    add(decoding, in.roofline->round(each).total());
    add(reading, parts.weights);
    add(multiplying, parts.weight_products);
  }
  if (in.roofline->replicates() > 0) panel.series.push_back(std::move(band));
  for (ChartSeries* series : {&verifying, &decoding, &reading, &multiplying}) {
    panel.series.push_back(std::move(*series));
  }
}

/// Passes with several tokens of a sequence, and those with one token of each of several. Error bars are standard
/// deviations of one repetition, if all passes have them.
void add_points(const VerificationCostInputs& in, ChartPanel& panel) {
  ChartSeries own, own_batches, others, other_batches;
  own.name = "measured, one sequence";
  own_batches.name = "measured, one token each";
  others.name = "published, one sequence";
  other_batches.name = "published, one token each";
  others.colour = 2;
  own.colour = 3;
  own_batches.colour = 4;
  other_batches.colour = 5;
  const auto add = [](ChartSeries& series, double positions, double seconds) {
    series.x.push_back(positions);
    series.y.push_back(milliseconds_per_second * seconds);
  };
  const bool has_errors = std::all_of(in.measured.begin(), in.measured.end(),
                                      [](const traces::TimedPass& pass) { return pass.stddev_seconds.has_value(); });
  for (const traces::TimedPass& pass : in.measured) {
    ChartSeries& series = pass.batch > 1 ? own_batches : own;
    add(series, pass.batch * pass.tokens, pass.seconds);
    if (!has_errors) continue;
    series.low.push_back(milliseconds_per_second * std::max(pass.seconds - *pass.stddev_seconds, pass.seconds / 10));
    series.high.push_back(milliseconds_per_second * (pass.seconds + *pass.stddev_seconds));
  }
  for (const cost::PublishedTiming& timing : in.published) {
    if (timing.drafted) continue;
    add(timing.point.batch > 1 ? other_batches : others,
        timing.point.batch * static_cast<double>(timing.point.gamma + 1), timing.seconds);
  }
  for (ChartSeries* series : {&own, &own_batches, &others, &other_batches}) {
    series->mark = ChartMark::points;
    series->role = ChartRole::highlight;
    if (!series->x.empty()) panel.series.push_back(std::move(*series));
  }
}

/// The number of passes within the roofline's range at their own points, in words.
std::string held_text(const VerificationCostInputs& in) {
  std::size_t held = 0;
  const auto count = [&](const cost::RoundPoint& point, double seconds) {
    held += cost::central_range(*in.roofline, point).contains(seconds) ? 1 : 0;
  };
  for (const cost::PublishedTiming& timing : in.published) count(timing.point, timing.seconds);
  for (const traces::TimedPass& pass : in.measured) {
    count({std::llround(pass.tokens) - 1, pass.batch, pass.context, 0}, pass.seconds);
  }
  const std::size_t points = in.published.size() + in.measured.size();
  return fmt::format("Of {} measured passes {} {} within the roofline's 95%.", points, held, held == 1 ? "is" : "are");
}

std::string caption_of(const VerificationCostInputs& in) {
  std::string text = fmt::format("{}: ", in.who);
  const std::size_t points = in.measured.size() + in.published.size();
  if (in.roofline == nullptr) return text + fmt::format("{} measured passes.", points);
  const auto at = [&](std::int64_t positions) { return in.roofline->round({positions - 1, 1, in.context, 0}).total(); };
  text += fmt::format("verifying 8 tokens takes {} ms where one takes {}, and {} take {}. ",
                      brief(milliseconds_per_second * at(8), 3), brief(milliseconds_per_second * at(1), 3), in.up_to,
                      brief(milliseconds_per_second * at(in.up_to), 3));
  const std::optional<double> knee = in.roofline->knee_positions();
  text += knee ? fmt::format("Up to the knee at {} tokens reading the weights takes longer than their products.",
                             brief(*knee, 3))
               : std::string("Reading the weights takes longer than their products at any number of tokens.");
  if (points > 0) text += " " + held_text(in);
  return text;
}

}  // namespace

Chart verification_cost_chart(const VerificationCostInputs& in) {
  Chart chart;
  chart.name = "verification-cost";
  chart.title = "What a pass costs over the tokens it verifies";
  chart.caption = caption_of(in);
  ChartPanel& panel = chart.panels.emplace_back();
  panel.x = {"tokens", "tokens in the pass", AxisScale::logarithmic};
  panel.y = {"time_ms", "time of the pass (ms)", AxisScale::logarithmic};
  if (in.roofline != nullptr) {
    add_roofline(in, panel);
    chart.assumptions.push_back(
        {"95% intervals", "central 95% of passes with losses drawn from their ranges", "default"});
  }
  add_points(in, panel);
  panel.y.low = lowest_shown(panel);
  if (in.roofline != nullptr) {
    const std::optional<double> knee = in.roofline->knee_positions();
    if (knee && *knee > 1 && *knee < static_cast<double>(in.up_to)) {
      panel.series.push_back(reference_line(ChartMark::vertical, "knee", {*knee}));
    }
  }
  return chart;
}

}  // namespace specdec::render
