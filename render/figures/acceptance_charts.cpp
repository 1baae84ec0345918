#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "planner/question_error.hpp"
#include "render/figures/chart_words.hpp"
#include "render/figures/trace_charts.hpp"
#include "render/text.hpp"
#include "traces/acceptance_rules.hpp"

/// Part of trace_charts.hpp: a recording's acceptance along its text.
namespace specdec::render {

namespace {

constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

// ---- Histogram of beta.

constexpr std::size_t most_task_panels = 9;

std::string rate_label(const estimate::AcceptanceEstimate& rate) {
  if (!rate.value) return fmt::format("{:.3f} to {:.3f}", rate.bounds.lo, rate.bounds.hi);
  return estimate_label({*rate.value, rate.ci95, ""}, 3);
}

/// Counts as shares of all of them, at the middles of their bins.
void put_shares(const std::vector<std::int64_t>& counts, ChartSeries& series) {
  std::int64_t sum = 0;
  for (const std::int64_t count : counts) sum += count;
  const auto bins = static_cast<double>(counts.size());
  for (std::size_t bin = 0; bin < counts.size(); ++bin) {
    series.x.push_back((static_cast<double>(bin) + 0.5) / bins);
    series.y.push_back(static_cast<double>(counts[bin]) / static_cast<double>(sum));
  }
}

ChartPanel histogram_panel(const std::string& name, const estimate::BetaSummary::Histogram& histogram,
                           const std::optional<estimate::AcceptanceEstimate>& mean) {
  ChartPanel panel{.title = name,
                   .x = {.key = "beta", .label = "acceptance β of a prefix", .low = 0, .high = 1},
                   .y = {.key = "share_of_positions", .label = "share of positions", .low = 0}};
  const bool exact = histogram.lower == histogram.upper;
  ChartSeries bars{.name = exact ? "positions" : "positions, lower ends", .mark = ChartMark::bars, .colour = 0};
  put_shares(histogram.lower, bars);
  panel.series.push_back(std::move(bars));
  if (!exact) {
    ChartSeries upper{.name = "positions, upper ends", .colour = 1};
    put_shares(histogram.upper, upper);
    panel.series.push_back(std::move(upper));
  }
  if (mean && mean->value) {
    panel.series.push_back(
        {.name = "mean", .mark = ChartMark::vertical, .x = {*mean->value}, .role = ChartRole::highlight, .colour = 2});
  }
  if (mean) panel.title += (name.empty() ? "mean " : ": ") + rate_label(*mean);
  return panel;
}

// ---- Acceptance by position.

/// The single rate as a line with its interval around it.
void add_rate(const estimate::AcceptanceEstimate& alpha, const std::vector<double>& x, ChartPanel& panel) {
  if (!alpha.value) return;
  if (alpha.ci95) {
    panel.series.push_back({.name = "i.i.d. at α, 95% interval",
                            .mark = ChartMark::band,
                            .x = x,
                            .low = std::vector<double>(x.size(), alpha.ci95->lo),
                            .high = std::vector<double>(x.size(), alpha.ci95->hi),
                            .role = ChartRole::reference,
                            .colour = 0});
  }
  panel.series.push_back({.name = "i.i.d. at α",
                          .x = x,
                          .y = std::vector<double>(x.size(), *alpha.value),
                          .role = ChartRole::reference,
                          .colour = 0});
}

/// For acceptance that is known exactly.
ChartSeries observed_points(const std::vector<planning::PositionAcceptance>& positions, const std::vector<double>& x) {
  ChartSeries points{.name = "observed", .mark = ChartMark::points, .x = x, .role = ChartRole::highlight, .colour = 0};
  bool any_interval = false;
  for (const planning::PositionAcceptance& row : positions) {
    points.y.push_back(row.conditional ? row.conditional->lo : no_value);
    points.low.push_back(row.conditional_ci95 ? row.conditional_ci95->lo : no_value);
    points.high.push_back(row.conditional_ci95 ? row.conditional_ci95->hi : no_value);
    any_interval = any_interval || row.conditional_ci95;
  }
  if (any_interval) {
    points.name = "observed, with 95% interval";
  } else {
    points.low.clear();
    points.high.clear();
  }
  return points;
}

ChartSeries observed_brackets(const std::vector<planning::PositionAcceptance>& positions,
                              const std::vector<double>& x) {
  ChartSeries band{.name = "observed, within brackets", .mark = ChartMark::band, .x = x, .colour = 0};
  for (const planning::PositionAcceptance& row : positions) {
    band.low.push_back(row.conditional ? row.conditional->lo : no_value);
    band.high.push_back(row.conditional ? row.conditional->hi : no_value);
  }
  return band;
}

void warn_of_gaps(const planning::TraceAnalysis& analysis, Chart& chart) {
  const auto& positions = analysis.replay->positions;
  const auto lacks = [&](auto of_row) { return std::any_of(positions.begin(), positions.end(), of_row); };
  if (lacks([](const auto& row) { return !row.conditional; })) {
    chart.warnings.push_back({"position_not_reached", "no draft was looked at in the last positions, which are gaps"});
  }
  if (lacks([](const auto& row) { return row.conditional && !row.conditional_ci95; })) {
    chart.warnings.push_back(
        {"no_interval", fmt::format("{} of sequences determine{} no interval where all accept alike",
                                    analysis.sequences, analysis.sequences == 1 ? "s" : "")});
  }
  if (!analysis.replay->upper && lacks([](const auto& row) { return !row.two_state; })) {
    chart.warnings.push_back(
        {"no_markov_chain",
         "no two-state chain is likelier than one rate: acceptance does not rise with the position"});
  }
}

}  // namespace

std::string name_of_recording(const std::vector<std::string>& files) {
  if (files.empty()) return "a recording in memory";
  if (files.size() > 1) return fmt::format("{} files", files.size());
  const std::filesystem::path file = files.front();
  // A folder may end in a slash.
  return (file.has_filename() ? file : file.parent_path()).filename().string();
}

Chart beta_histogram_chart(const TraceChartInputs& inputs) {
  const planning::TraceAnalysis& analysis = inputs.analysis;
  if (analysis.law.histogram_lower.empty()) {
    throw planner::QuestionError(
        "the recording says nothing of beta, the mean acceptance at a prefix: it has neither rows nor "
        "overlaps");
  }
  Chart chart{.name = "beta-histogram", .title = "Acceptance by prefix"};
  std::vector<const planning::TaskAnalysis*> tasks;
  for (const planning::TaskAnalysis& task : analysis.tasks) {
    if (!task.beta_histogram.lower.empty()) tasks.push_back(&task);
  }
  if (tasks.size() > most_task_panels) {
    std::stable_sort(tasks.begin(), tasks.end(),
                     [](const auto* a, const auto* b) { return a->positions > b->positions; });
    chart.warnings.push_back(
        {"tasks_left_out", fmt::format("the {} largest of {} tasks are shown", most_task_panels, tasks.size())});
    tasks.resize(most_task_panels);
  }
  for (const planning::TaskAnalysis* task : tasks) {
    chart.panels.push_back(
        histogram_panel(task->name.empty() ? "no task" : task->name, task->beta_histogram, task->alpha));
  }
  if (chart.panels.empty()) {
    chart.panels.push_back(
        histogram_panel("", {analysis.law.histogram_lower, analysis.law.histogram_upper}, analysis.alpha));
  }
  chart.columns = static_cast<int>(std::min<std::size_t>(3, chart.panels.size()));
  double highest = 0;
  for (const ChartPanel& panel : chart.panels) {
    for (const ChartSeries& series : panel.series) {
      for (const double share : series.y) highest = std::max(highest, share);
    }
  }
  for (ChartPanel& panel : chart.panels) panel.y.high = 1.05 * highest;
  if (analysis.alpha) {
    chart.caption = fmt::format("α {} over {}", rate_label(*analysis.alpha), inputs.recording);
    if (!analysis.law.quantiles.empty()) {
      const auto quantile = [&](double probability) {
        for (const auto& q : analysis.law.quantiles) {
          if (q.probability == probability) return brief((q.bounds.lo + q.bounds.hi) / 2, 2);
        }
        return std::string("?");
      };
      chart.caption += fmt::format(": one prefix in ten accepts less than {} of the drafts, one in ten more than {}",
                                   quantile(0.1), quantile(0.9));
    }
    chart.caption += fmt::format(". Intervals of means: 95%, {}.", analysis.alpha->method);
  }
  if (!analysis.alpha || !analysis.alpha->value) {
    chart.warnings.push_back({"bracketed", "beta is known within brackets only: both of their ends are shown"});
  }
  return chart;
}

Chart position_acceptance_chart(const TraceChartInputs& inputs) {
  const planning::TraceAnalysis& analysis = inputs.analysis;
  if (!analysis.replay)
    throw planner::QuestionError("the recording cannot be replayed, so nothing is known by position");
  const auto& positions = analysis.replay->positions;
  Chart chart{.name = "position-acceptance", .title = "Acceptance by position in the round"};
  ChartPanel panel{.x = {.key = "position",
                         .label = "position of the draft in its round",
                         .low = 0.5,
                         .high = static_cast<double>(positions.size()) + 0.5},
                   .y = {.key = "acceptance", .label = "accepted, given all before it"}};
  std::vector<double> x;
  for (const auto& row : positions) x.push_back(static_cast<double>(row.position));
  const estimate::AcceptanceEstimate* const alpha = analysis.best_alpha();
  if (alpha) add_rate(*alpha, x, panel);
  const bool bracketed = analysis.replay->upper.has_value();
  ChartSeries markov{.name = "two-state Markov chain", .x = x, .colour = 2};
  for (const auto& row : positions) markov.y.push_back(row.two_state.value_or(no_value));
  if (!std::all_of(markov.y.begin(), markov.y.end(), [](double y) { return std::isnan(y); })) {
    panel.series.push_back(std::move(markov));
  }
  panel.series.push_back(bracketed ? observed_brackets(positions, x) : observed_points(positions, x));
  chart.caption = fmt::format("Replay of {} at γ = {}", inputs.recording, positions.size());
  if (!bracketed && positions.front().conditional) {
    const auto last =
        std::find_if(positions.rbegin(), positions.rend(), [](const auto& row) { return row.conditional; });
    chart.caption += fmt::format(": {} at position 1, {} at {}", brief(positions.front().conditional->lo, 3),
                                 brief(last->conditional->lo, 3), last->position);
    if (alpha && alpha->value) {
      chart.caption += fmt::format("; one rate for all would be {}", brief(*alpha->value, 3));
      const auto& first = positions.front().conditional_ci95;
      if (first && alpha->ci95 && first->hi < alpha->ci95->lo) {
        chart.caption += ", more than at position 1, since rounds start after rejections, in harder text";
      }
    }
  }
  chart.caption += ".";
  if (!bracketed && panel.series.back().low.size() > 0) {
    const std::string clusters = alpha ? counted(alpha->clusters, alpha->prompts ? "prompt" : "sequence")
                                       : counted(analysis.sequences, "sequence");
    chart.caption += fmt::format(" Intervals: 95%, ratio of sums over {}, Student's t.", clusters);
  }
  warn_of_gaps(analysis, chart);
  if (bracketed) chart.warnings.push_back({"bracketed", "acceptance is known within brackets only"});
  chart.panels.push_back(std::move(panel));
  return chart;
}

Chart autocorrelation_chart(const TraceChartInputs& inputs) {
  const estimate::BetaSummary& law = inputs.analysis.law;
  const std::string_view rule = traces::name_of(inputs.analysis.rule);
  if (law.positions == 0) {
    throw planner::QuestionError(
        fmt::format("under {} the recording says nothing of beta, the mean acceptance at a prefix: it has neither rows "
                    "nor, of rejection, overlaps",
                    rule));
  }
  if (law.autocorrelation.empty()) {
    throw planner::QuestionError(
        fmt::format("under {} beta is known within brackets only, which have no autocorrelation; rows tell it", rule));
  }
  Chart chart{.name = "autocorrelation", .title = "Autocorrelation of acceptance along the text"};
  ChartPanel panel{.x = {.key = "lag", .label = "distance in tokens"},
                   .y = {.key = "correlation", .label = "correlation of β"}};
  ChartSeries band{
      .name = "independent positions, 95%", .mark = ChartMark::band, .role = ChartRole::reference, .colour = 0};
  ChartSeries points{.name = "correlation", .mark = ChartMark::points, .role = ChartRole::highlight, .colour = 0};
  bool gaps = false;
  for (std::size_t lag = 0; lag < law.autocorrelation.size(); ++lag) {
    const std::int64_t pairs = law.autocorrelation_pairs[lag];
    const auto& value = law.autocorrelation[lag];
    const double bound = value ? estimate::independence_bound(pairs) : no_value;
    points.x.push_back(static_cast<double>(lag + 1));
    points.y.push_back(value.value_or(no_value));
    band.x.push_back(static_cast<double>(lag + 1));
    band.low.push_back(-bound);
    band.high.push_back(bound);
    gaps = gaps || !value;
  }
  if (std::all_of(points.y.begin(), points.y.end(), [](double y) { return std::isnan(y); })) {
    throw planner::QuestionError(
        "beta is the same at every position or sequences are single positions: there is no "
        "autocorrelation");
  }
  if (gaps) {
    chart.warnings.push_back({"lag_without_pairs",
                              "the sequences are too short for the largest distances, which are "
                              "gaps"});
  }
  const auto is_beyond = [&](std::size_t lag) { return std::abs(points.y[lag]) > band.high[lag]; };
  std::size_t far = 0;
  while (far < points.y.size() && is_beyond(far)) ++far;
  chart.caption = fmt::format(
      "Correlation {} between neighbours, {}: easy and hard stretches last {}. Of independent "
      "positions 95% stay within {} (1.96 / √pairs).",
      brief(points.y[0], 2), inputs.recording,
      far == 0   ? std::string("less than a token")
      : far == 1 ? std::string("a token")
                 : fmt::format("{} tokens and more", far),
      brief(band.high[0], 2));
  panel.x.low = 0.5;
  panel.x.high = static_cast<double>(points.x.size()) + 0.5;
  panel.series.push_back(std::move(band));
  panel.series.push_back(reference_line(ChartMark::horizontal, "", {0}));
  panel.series.push_back(std::move(points));
  chart.panels.push_back(std::move(panel));
  return chart;
}

}  // namespace specdec::render
