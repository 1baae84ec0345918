#include "cli/figures/batch_figure.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <utility>

#include "analysis/planning/batch_curves.hpp"
#include "cli/figures/deployment_defaults.hpp"
#include "cli/files.hpp"
#include "cli/given_options.hpp"
#include "cli/plan_deployment.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"

namespace specdec::cli {
namespace {

using planning::BatchCurve;

/// Of single gammas, beside what has a colour of its own.
constexpr int first_gamma_colour = 2;

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
    series.name = fmt::format("γ = {}, measured", gammas[i]);
    series.mark = ChartMark::points;
    series.colour = first_gamma_colour + static_cast<int>(i);
    for (const planning::BenchSpeedup& speedup : bench.speedups) {
      const planning::BenchFigures& run = bench.runs[speedup.speculative];
      if (run.gamma != gammas[i]) continue;
      series.x.push_back(run.batch);
      series.y.push_back(speedup.speedup.value);
      const estimate::Interval ci95 =
          speedup.speedup.ci95.value_or(estimate::Interval{speedup.speedup.value, speedup.speedup.value});
      series.low.push_back(ci95.lo);
      series.high.push_back(ci95.hi);
    }
    if (!series.x.empty()) panel.series.push_back(std::move(series));
  }
}

ChartPanel speedup_panel(const BatchFigureInputs& in, const BatchCurve& best, const std::optional<double>& crossover) {
  ChartPanel panel;
  panel.title = "over plain decoding";
  panel.x = batch_axis();
  panel.y = {"speedup", "speedup (×)"};
  ChartSeries band;
  band.name = "best γ, 95%";
  band.mark = ChartMark::band;
  band.x = best.batch;
  band.low = best.speedup_low;
  band.high = best.speedup_high;
  band.colour = chart_colours::speculation;
  panel.series.push_back(std::move(band));
  ChartSeries line = line_of("best γ", best, best.speedup, chart_colours::speculation);
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

ChartPanel throughput_panel(const BatchFigureInputs& in, const std::optional<double>& crossover) {
  ChartPanel panel;
  panel.title = "of all sequences";
  panel.x = batch_axis();
  panel.y = {"output_tokens_per_second", "output (tokens/s)", AxisScale::logarithmic};
  const BatchCurve best = best_over_batches(in.points, in.context, true);
  ChartSeries line = line_of("best γ", best, best.output_tokens_per_second, chart_colours::speculation);
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

std::string caption_of(const BatchFigureInputs& in, const BatchCurve& best, const std::optional<double>& crossover) {
  const auto place = [&](std::size_t i) {
    return best.gamma[i] == 0 ? fmt::format("no γ beats plain decoding at batch {}", brief(best.batch[i]))
                              : fmt::format("γ = {} decodes {}× as fast as plain decoding at batch {} (95% {} to {})",
                                            best.gamma[i], brief(best.speedup[i], 3), brief(best.batch[i]),
                                            brief(best.speedup_low[i], 3), brief(best.speedup_high[i], 3));
  };
  std::string text = fmt::format("{}: {}", in.who, place(0));
  if (best.batch.size() > 1) text += fmt::format(", and {}", place(best.batch.size() - 1));
  text += ". ";
  const std::string gain = brief(100 * in.min_gain);
  if (crossover) {
    text += fmt::format("Above batch {} no γ gains {}%: there speculation stops paying.", brief(*crossover, 3), gain);
  } else if (best.speedup.back() >= 1 + in.min_gain) {
    text += fmt::format("The best γ gains {}% or more up to the largest batch shown.", gain);
  } else {
    text += fmt::format("No γ gains {}% at any batch shown.", gain);
  }
  return text;
}

struct BatchFigureOptions {
  PlanOptions plan;
  std::string gammas = "1,3,5";
};

/// Steps of about a factor of the square root of 2, to where the usual engine stops.
constexpr const char* usual_figure_batches = "1,1.5,2,3,4,6,8,12,16,24,32,48,64,96,128,192,256,384,512";
constexpr const char* usual_figure_context = "1000";

Chart from_options(BatchFigureOptions o) {
  std::vector<Assumption> assumptions = default_deployment(o.plan, o.plan.roofline);
  require_consistent(o.plan);
  BatchFigureInputs inputs;
  for (const double gamma : rising_list("--gamma", o.gammas, {1, static_cast<double>(largest_max_gamma)})) {
    if (gamma != static_cast<double>(static_cast<std::int64_t>(gamma))) refuse("--gamma", o.gammas, "whole numbers");
    inputs.gammas.push_back(static_cast<std::int64_t>(gamma));
  }
  const bool by_runs = !o.plan.bench.empty();
  if (!by_runs && !o.plan.batch) o.plan.batch = usual_figure_batches;
  if (!by_runs && !o.plan.context) {
    o.plan.context = usual_figure_context;
    assumptions.push_back({"context", 1000, "default"});
  }
  o.plan.max_gamma = std::max<std::int64_t>(inputs.gammas.back(), 8);
  const Deployment d = planned_deployment(o.plan);
  inputs.points = d.points();
  if (!by_runs) inputs.context = d.points().front().context;
  inputs.in_seconds = d.in_seconds;
  inputs.min_gain = d.min_gain;
  if (d.bench) inputs.measured = &*d.bench;
  inputs.who = by_runs ? d.target_model : deployment_text(o.plan, o.plan.roofline);
  Chart chart = speedup_over_batch(inputs);
  chart.assumptions = with_defaults(with_defaults(std::move(assumptions), d.cost_assumptions), chart.assumptions);
  chart.warnings.insert(chart.warnings.end(), d.warnings.begin(), d.warnings.end());
  chart.presets = d.presets;
  for (const std::string& file : d.files) chart.files.push_back(file_facts("FILE", file));
  return chart;
}

std::function<Chart()> set_up_batch_figure(Options& options) {
  const auto chosen = std::make_shared<BatchFigureOptions>();
  PlanOptions& o = chosen->plan;
  options.group("Acceptance (at most one of)");
  options.text("--alpha", o.alpha, "A|LOW:HIGH", "acceptance rate, or an interval of it");
  options.text("--acceptance-length", o.acceptance_length, "L|G:L,...", "tokens per step, bonus token included");
  options.text("--acceptance-per-position", o.acceptance_per_position, "P1,P2,...",
               "rate at which draft 1, 2, ... is accepted");
  options.texts("--counters", o.counters, "FILE", "what a server counted");
  options.texts("--trace", o.trace, "FILE", "a recording");
  options.integer("--at", o.at, {1, largest_max_gamma}, "gamma at which it was measured");
  declare(options, o.roofline);
  options.group("Models [llama-3.3-70b with its EAGLE-3 head on 4 H100]");
  options.text("--model", o.model, "NAME|FILE", "target: a preset or a configuration");
  options.text("--draft-model", o.draft_model, "NAME|FILE", "draft, the same");
  options.choice("--draft-kind", o.draft_kind, {"model", "eagle", "mtp", "parallel", "ngram"},
                 "how drafts are made [model]");
  options.group("Benchmark runs (instead of --hardware)");
  options.texts("--bench", o.bench, "FILE", "results with and without speculation, as in specdec plan");
  options.group("What is shown");
  options.text("-k,--gamma,--num-speculative-tokens", chosen->gammas, "G1,G2,...",
               "lines beside that of the best gamma");
  options.text("--batch,--concurrency", o.batch, "B1,B2,...", "rising [1 to 512, or those of the runs]");
  options.text("--context", o.context, "N", "tokens in the cache per sequence [1000, or those of the runs]");
  options.number("--min-gain", o.min_gain, {}, "speculation must be 1 + X times as fast to be worth it [0.05]");
  return [chosen] { return from_options(*chosen); };
}

}  // namespace

Chart speedup_over_batch(const BatchFigureInputs& in) {
  const BatchCurve best = best_over_batches(in.points, in.context, in.in_seconds);
  const std::optional<double> crossover = last_gain(best, 1 + in.min_gain);
  Chart chart;
  chart.name = "speedup-over-batch";
  chart.title = "Where speculation pays: speedup and throughput over the batch";
  chart.caption = caption_of(in, best, crossover);
  chart.columns = 2;
  if (!in.points.empty())
    chart.assumptions.push_back({"95% intervals", in.points.front().speedup_estimate.method, "default"});
  chart.panels.push_back(speedup_panel(in, best, crossover));
  if (in.in_seconds) {
    chart.panels.push_back(throughput_panel(in, crossover));
  } else {
    chart.columns = 1;
    chart.warnings.push_back({"no_throughput", "costs are multiples of a target step, so that no tokens/s are shown"});
  }
  return chart;
}

FigureKind speedup_over_batch_figure() {
  return {"speedup-over-batch", "speedup and throughput over the batch, and where speculation stops paying",
          set_up_batch_figure};
}

}  // namespace specdec::cli
