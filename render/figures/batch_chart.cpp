#include "render/figures/batch_chart.hpp"

#include <fmt/format.h>
#include <utility>

#include "analysis/planning/batch_curves.hpp"
#include "planner/question_error.hpp"
#include "render/figures/chart_words.hpp"
#include "render/text.hpp"

namespace specdec::render {

namespace {

using planning::BatchCurve;

struct Shown {
  const planner::Plan& plan;
  const std::vector<std::int64_t>& gammas;
  std::optional<double> context;
};

/// For single gammas, after those with a fixed colour.
constexpr int first_gamma_colour = 2;
constexpr std::string_view chosen_gamma = "recommended γ";

ChartAxis batch_axis() { return {"batch", "batch (sequences)", AxisScale::logarithmic}; }

ChartSeries line_of(const std::string& name, const BatchCurve& curve, const std::vector<double>& y, int colour) {
  return {.name = name, .x = curve.batch, .y = y, .colour = colour};
}

/// The recommended gamma's line, and behind it those of single gammas.
void add_lines(const Shown& in, const BatchCurve& best, std::vector<double> BatchCurve::*figure, bool in_seconds,
               ChartPanel& panel) {
  panel.series.push_back(line_of(std::string(chosen_gamma), best, best.*figure, chart_colours::speculation));
  panel.series.back().role = ChartRole::highlight;
  for (std::size_t i = 0; i < in.gammas.size(); ++i) {
    const BatchCurve curve = gamma_over_batches(in.plan.points(), in.context, in.gammas[i], in_seconds);
    if (curve.batch.empty()) continue;
    panel.series.push_back(
        line_of(fmt::format("γ = {}", in.gammas[i]), curve, curve.*figure, first_gamma_colour + static_cast<int>(i)));
  }
}

/// The speedups of runs beside plain ones, one series for each gamma.
void add_measured(const planning::BenchPlan& bench, const std::vector<std::int64_t>& gammas, ChartPanel& panel) {
  for (std::size_t i = 0; i < gammas.size(); ++i) {
    ChartSeries series{.name = fmt::format("γ = {}, measured, 95%", gammas[i]),
                       .mark = ChartMark::points,
                       .colour = first_gamma_colour + static_cast<int>(i)};
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

ChartPanel speedup_panel(const Shown& in, const BatchCurve& best, const std::optional<double>& crossover) {
  ChartPanel panel{.title = "over plain decoding", .x = batch_axis(), .y = {"speedup", "speedup (×)"}};
  if (best.batch.empty()) {
    panel.series.push_back(reference_line(ChartMark::horizontal, "plain decoding", {1}));
    return panel;
  }
  panel.series.push_back({.name = fmt::format("{}, {}", chosen_gamma, interval_name(in.plan.points())),
                          .mark = ChartMark::band,
                          .x = best.batch,
                          .low = best.speedup_low,
                          .high = best.speedup_high,
                          .colour = chart_colours::speculation});
  add_lines(in, best, &BatchCurve::speedup, in.plan.in_seconds, panel);
  if (in.plan.bench) add_measured(*in.plan.bench, in.gammas, panel);
  panel.series.push_back(reference_line(ChartMark::horizontal, "plain decoding", {1}));
  if (crossover) {
    panel.series.push_back(reference_line(ChartMark::vertical,
                                          fmt::format("gain below {}%", brief(100 * in.plan.min_gain)), {*crossover}));
  }
  return panel;
}

ChartPanel throughput_panel(const Shown& in, const std::optional<double>& crossover) {
  ChartPanel panel{.title = "of all sequences",
                   .x = batch_axis(),
                   .y = {"output_tokens_per_second", "output (tokens/s)", AxisScale::logarithmic}};
  add_lines(in, best_over_batches(in.plan.points(), in.context, true), &BatchCurve::output_tokens_per_second, true,
            panel);
  const BatchCurve plain = gamma_over_batches(in.plan.points(), in.context, 0, true);
  panel.series.push_back(
      {.name = "plain decoding", .x = plain.batch, .y = plain.output_tokens_per_second, .role = ChartRole::reference});
  if (crossover) panel.series.push_back(reference_line(ChartMark::vertical, "", {*crossover}));
  return panel;
}

/// The sentence if the gain at the largest batch suffices; batches that fall short of it, or whose intervals do, are
/// named.
std::string gain_up_to_the_end(const Shown& in, const BatchCurve& best) {
  const auto batches_below = [&](const std::vector<double>& speedup) {
    std::vector<std::string> below;
    for (std::size_t i = 0; i < speedup.size(); ++i) {
      if (speedup[i] < 1 + in.plan.min_gain) below.push_back(brief(best.batch[i]));
    }
    return below;
  };
  const auto listed = [](const std::vector<std::string>& batches) {
    return batches.size() == 1
               ? "batch " + batches.front()
               : fmt::format("{} batches from {} to {}", batches.size(), batches.front(), batches.back());
  };
  std::string text = fmt::format("The {} gains {}% or more up to the largest batch shown", chosen_gamma,
                                 brief(100 * in.plan.min_gain));
  const std::vector<std::string> short_of_it = batches_below(best.speedup), unsure = batches_below(best.speedup_low);
  if (!short_of_it.empty()) return text + fmt::format(", but not at {}.", listed(short_of_it));
  if (!unsure.empty())
    return text +
           fmt::format(", but its {} at {} does not bear that out.", interval_name(in.plan.points()), listed(unsure));
  return text + ".";
}

std::string caption_of(const Shown& in, const BatchCurve& best, const std::optional<double>& crossover) {
  const auto place = [&](std::size_t i) {
    if (best.gamma[i] == 0)
      return fmt::format("no γ beats plain decoding at batch {}", brief(best.batch[i]));
    const std::string low = brief(best.speedup_low[i], 3), high = brief(best.speedup_high[i], 3);
    return fmt::format("γ = {} decodes {}× as fast as plain decoding at batch {}{}", best.gamma[i],
                       brief(best.speedup[i], 3), brief(best.batch[i]),
                       low == high ? "" : fmt::format(" ({} {} to {})", interval_name(in.plan.points()), low, high));
  };
  std::string text = fmt::format("{}: {}", deployment_of(in.plan), place(0));
  if (best.batch.size() > 1) text += fmt::format(", and {}", place(best.batch.size() - 1));
  text += ". ";
  const std::string gain = brief(100 * in.plan.min_gain);
  if (crossover) {
    text += fmt::format("From batch {} on no γ gains {}%: there speculation stops paying.", brief(*crossover, 3), gain);
  } else if (best.speedup.back() >= 1 + in.plan.min_gain) {
    text += gain_up_to_the_end(in, best);
  } else {
    text += fmt::format("No γ gains {}% at any batch shown.", gain);
  }
  return text;
}

}  // namespace

Chart speedup_over_batch_chart(const planner::Plan& plan, const std::vector<std::int64_t>& gammas,
                               std::optional<double> context) {
  const Shown in{plan, gammas, context};
  const BatchCurve best = best_over_batches(plan.points(), in.context, plan.in_seconds);
  // The plan's schedule speaks of the first context alone.
  const std::optional<std::int64_t> scheduled =
      plan.bench || !has_several_contexts(plan) ? plan.shown_plan().crossover_batch : std::nullopt;
  const std::optional<double> crossover =
      scheduled ? std::optional<double>(*scheduled) : last_gain(best, 1 + plan.min_gain);
  Chart chart{.name = "speedup-over-batch",
              .title = "Where speculation pays: speedup and throughput over the batch",
              .caption = caption_of(in, best, crossover),
              .columns = 2};
  chart.assumptions.push_back({interval_name(plan.points()), plan.points().front().speedup_estimate.method, "default"});
  chart.panels.push_back(speedup_panel(in, best, crossover));
  if (plan.in_seconds) {
    chart.panels.push_back(throughput_panel(in, crossover));
  } else {
    chart.columns = 1;
    chart.warnings.push_back({"no_throughput", "costs are multiples of a target step, so that no tokens/s are shown"});
  }
  return chart;
}

}  // namespace specdec::render
