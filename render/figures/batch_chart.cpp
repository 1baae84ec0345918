#include "render/figures/batch_chart.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "analysis/planning/batch_curves.hpp"
#include "planner/question_error.hpp"
#include "render/figures/chart_words.hpp"
#include "render/plan.hpp"
#include "render/text.hpp"

namespace specdec::render {

namespace {

using planning::BatchCurve;

/// For single gammas, after those with a fixed colour.
constexpr int first_gamma_colour = 2;
constexpr std::string_view chosen_gamma = "recommended γ";

ChartAxis batch_axis() { return {"batch", "batch (sequences)", AxisScale::logarithmic}; }

ChartSeries line_of(const std::string& name, const BatchCurve& curve, const std::vector<double>& y, int colour) {
  ChartSeries series;
  series.name = name;
  series.x = curve.batch;
  series.y = y;
  series.colour = colour;
  return series;
}

/// The speedups of runs beside plain ones, one series for each gamma.
void add_measured(const planning::BenchPlan& bench, const std::vector<std::int64_t>& gammas, ChartPanel& panel) {
  for (std::size_t i = 0; i < gammas.size(); ++i) {
    ChartSeries series;
    series.name = fmt::format("γ = {}, measured, 95%", gammas[i]);
    series.mark = ChartMark::points;
    series.colour = first_gamma_colour + static_cast<int>(i);
    for (const planning::BenchSpeedup& speedup : bench.speedups) {
      const planning::BenchFigures& run = bench.runs[speedup.speculative];
      if (run.gamma != gammas[i]) continue;
      series.x.push_back(run.batch);
      series.y.push_back(speedup.speedup.value);
      series.low.push_back(speedup.speedup.ci95->lo);
      series.high.push_back(speedup.speedup.ci95->hi);
    }
    if (!series.x.empty()) panel.series.push_back(std::move(series));
  }
}

ChartPanel speedup_panel(const SpeedupOverBatchInputs& in, const BatchCurve& best,
                         const std::optional<double>& crossover) {
  ChartPanel panel;
  panel.title = "over plain decoding";
  panel.x = batch_axis();
  panel.y = {"speedup", "speedup (×)"};
  if (best.batch.empty()) {
    panel.series.push_back(reference_line(ChartMark::horizontal, "plain decoding", {1}));
    return panel;
  }
  ChartSeries band;
  band.name = fmt::format("{}, {}", chosen_gamma, interval_name(in.points));
  band.mark = ChartMark::band;
  band.x = best.batch;
  band.low = best.speedup_low;
  band.high = best.speedup_high;
  band.colour = chart_colours::speculation;
  panel.series.push_back(std::move(band));
  ChartSeries line = line_of(std::string(chosen_gamma), best, best.speedup, chart_colours::speculation);
  line.role = ChartRole::highlight;
  panel.series.push_back(std::move(line));
  for (std::size_t i = 0; i < in.gammas.size(); ++i) {
    const BatchCurve curve = gamma_over_batches(in.points, in.context, in.gammas[i], in.in_seconds);
    if (curve.batch.empty()) continue;
    panel.series.push_back(
        line_of(fmt::format("γ = {}", in.gammas[i]), curve, curve.speedup, first_gamma_colour + static_cast<int>(i)));
  }
  if (in.measured != nullptr) add_measured(*in.measured, in.gammas, panel);
  panel.series.push_back(reference_line(ChartMark::horizontal, "plain decoding", {1}));
  if (crossover) {
    panel.series.push_back(
        reference_line(ChartMark::vertical, fmt::format("gain below {}%", brief(100 * in.min_gain)), {*crossover}));
  }
  return panel;
}

ChartPanel throughput_panel(const SpeedupOverBatchInputs& in, const std::optional<double>& crossover) {
  ChartPanel panel;
  panel.title = "of all sequences";
  panel.x = batch_axis();
  panel.y = {"output_tokens_per_second", "output (tokens/s)", AxisScale::logarithmic};
  const BatchCurve best = best_over_batches(in.points, in.context, true);
  ChartSeries line =
      line_of(std::string(chosen_gamma), best, best.output_tokens_per_second, chart_colours::speculation);
  line.role = ChartRole::highlight;
  panel.series.push_back(std::move(line));
  for (std::size_t i = 0; i < in.gammas.size(); ++i) {
    const BatchCurve curve = gamma_over_batches(in.points, in.context, in.gammas[i], true);
    if (curve.batch.empty()) continue;
    panel.series.push_back(line_of(fmt::format("γ = {}", in.gammas[i]), curve, curve.output_tokens_per_second,
                                   first_gamma_colour + static_cast<int>(i)));
  }
  const BatchCurve plain = gamma_over_batches(in.points, in.context, 0, true);
  ChartSeries without = line_of("plain decoding", plain, plain.output_tokens_per_second, 0);
  without.colour.reset();
  without.role = ChartRole::reference;
  panel.series.push_back(std::move(without));
  if (crossover) panel.series.push_back(reference_line(ChartMark::vertical, "", {*crossover}));
  return panel;
}

/// The sentence if the gain at the largest batch suffices; batches that fall short of it, or whose intervals do, are
/// named.
std::string gain_up_to_the_end(const SpeedupOverBatchInputs& in, const BatchCurve& best) {
  const auto batches_below = [&](const std::vector<double>& speedup) {
    std::vector<std::string> below;
    for (std::size_t i = 0; i < speedup.size(); ++i) {
      if (speedup[i] < 1 + in.min_gain) below.push_back(brief(best.batch[i]));
    }
    return below;
  };
  const auto listed = [](const std::vector<std::string>& batches) {
    return batches.size() == 1
               ? "batch " + batches.front()
               : fmt::format("{} batches from {} to {}", batches.size(), batches.front(), batches.back());
  };
  std::string text =
      fmt::format("The {} gains {}% or more up to the largest batch shown", chosen_gamma, brief(100 * in.min_gain));
  const std::vector<std::string> short_of_it = batches_below(best.speedup), unsure = batches_below(best.speedup_low);
  if (!short_of_it.empty()) return text + fmt::format(", but not at {}.", listed(short_of_it));
  if (!unsure.empty())
    return text + fmt::format(", but its {} at {} does not bear that out.", interval_name(in.points), listed(unsure));
  return text + ".";
}

std::string caption_of(const SpeedupOverBatchInputs& in, const BatchCurve& best,
                       const std::optional<double>& crossover) {
  const auto place = [&](std::size_t i) {
    if (best.gamma[i] == 0)
      return fmt::format("no γ beats plain decoding at batch {}", brief(best.batch[i]));
    const std::string low = brief(best.speedup_low[i], 3), high = brief(best.speedup_high[i], 3);
    return fmt::format("γ = {} decodes {}× as fast as plain decoding at batch {}{}", best.gamma[i],
                       brief(best.speedup[i], 3), brief(best.batch[i]),
                       low == high ? "" : fmt::format(" ({} {} to {})", interval_name(in.points), low, high));
  };
  std::string text = fmt::format("{}: {}", in.who, place(0));
  if (best.batch.size() > 1) text += fmt::format(", and {}", place(best.batch.size() - 1));
  text += ". ";
  const std::string gain = brief(100 * in.min_gain);
  if (crossover) {
    text += fmt::format("From batch {} on no γ gains {}%: there speculation stops paying.", brief(*crossover, 3), gain);
  } else if (best.speedup.back() >= 1 + in.min_gain) {
    text += gain_up_to_the_end(in, best);
  } else {
    text += fmt::format("No γ gains {}% at any batch shown.", gain);
  }
  return text;
}

}  // namespace

Chart speedup_over_batch_chart(const SpeedupOverBatchInputs& in) {
  const BatchCurve best = best_over_batches(in.points, in.context, in.in_seconds);
  const std::optional<double> crossover = in.crossover ? in.crossover : last_gain(best, 1 + in.min_gain);
  Chart chart;
  chart.name = "speedup-over-batch";
  chart.title = "Where speculation pays: speedup and throughput over the batch";
  chart.caption = caption_of(in, best, crossover);
  chart.columns = 2;
  chart.assumptions.push_back({interval_name(in.points), in.points.front().speedup_estimate.method, "default"});
  chart.panels.push_back(speedup_panel(in, best, crossover));
  if (in.in_seconds) {
    chart.panels.push_back(throughput_panel(in, crossover));
  } else {
    chart.columns = 1;
    chart.warnings.push_back({"no_throughput", "costs are multiples of a target step, so that no tokens/s are shown"});
  }
  return chart;
}

}  // namespace specdec::render
