#include "render/plan_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <set>

#include "render/plan.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using planner::Plan;
using planning::BenchFigures;
using planning::BenchPrediction;
using planning::DeploymentRow;
using planning::PointPlan;

std::string gamma_cell(const PointPlan& point) {
  return fmt::format("{}", point.optimal().gamma);
}

/// The ends of a bracket, where a figure is known as one.
std::string bracket_cell(double value, const std::optional<estimate::Interval>& bracket) {
  return bracket && bracket->lo < bracket->hi ? fmt::format("{}..{}", in_column(bracket->lo), in_column(bracket->hi))
                                              : in_column(value);
}

/// What the best gamma takes or puts out at the ends of a bracket of its tokens per step, the smaller one first.
/// @param cell  of so many times the middle's tokens
template <class Cell>
std::string at_ends_of_tokens(const PointPlan& point, bool rises, const Cell& cell) {
  const auto& bracket = point.optimal().tokens_bounds;
  if (!bracket || bracket->lo == bracket->hi) return cell(1.0);
  const double few = bracket->lo / point.optimal().tokens_per_step,
               many = bracket->hi / point.optimal().tokens_per_step;
  return fmt::format("{}..{}", cell(rises ? few : many), cell(rises ? many : few));
}

std::string milliseconds_cell(const PointPlan& point) {
  return at_ends_of_tokens(
      point, false, [&](double tokens) { return milliseconds(point.seconds_per_output_token->speculative / tokens); });
}

std::string throughput_cell(const PointPlan& point) {
  return at_ends_of_tokens(point, true,
                           [&](double tokens) { return brief(tokens * point.output_tokens_per_second->speculative); });
}

std::string speedup_cell(const PointPlan& point) {
  return bracket_cell(point.speedup_estimate.value, point.optimal().speedup_bounds);
}

std::string interval_cell(const PointPlan& point) {
  return speedup_range(point.speedup_estimate.ci95);
}

std::string context_cell(double context) { return fixed(context, 0); }

std::string error_cell(const std::optional<double>& relative_error) {
  return relative_error ? fmt::format("{:+.1f}%", 100 * *relative_error) : "-";
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

// ---------------------------------------------------------------------------------------------------------- points

/// "measured 1.28" of runs with so many drafts at about this batch and context, the mean of their speedups over the plain
/// runs beside them; "measured" of a plain run and where there is none beside it; "" where none ran.
std::string measured_words(const Plan& d, std::int64_t gamma, const PointPlan& point) {
  const auto is_about = [](double a, double b) { return a < 1.1 * b && b < 1.1 * a; };
  if (!d.bench) return "";
  bool ran = false;
  double sum = 0;
  int speedups = 0;
  for (std::size_t i = 0; i < d.bench->runs.size(); ++i) {
    const BenchFigures& run = d.bench->runs[i];
    const bool same_context = !(run.context > 0 && point.context > 0) || is_about(run.context, point.context);
    if (run.gamma != gamma || run.tree || !same_context || !is_about(run.batch, point.batch)) continue;
    ran = true;
    for (const planning::BenchSpeedup& speedup : d.bench->speedups) {
      if (speedup.speculative != i) continue;
      sum += speedup.speedup.value;
      ++speedups;
    }
  }
  return speedups > 0 ? fmt::format("measured {}", brief(sum / speedups, 3)) : ran ? "measured" : "";
}

std::string notes_on(const Plan& d, const PointPlan& point, const DeploymentRow& row) {
  std::vector<std::string> words;
  if (point.deployed && point.deployed->gamma == row.gamma) words.push_back("in use");
  if (row.gamma == point.optimal().gamma) words.push_back("recommended");
  if (const std::string measured = measured_words(d, row.gamma, point); !measured.empty()) {
    words.push_back(measured);
  } else if (row.extrapolated) {
    words.push_back("not measured");
  }
  return joined(words);
}

/// The rows up to a few gammas behind the best one and that in use.
std::vector<DeploymentRow> relevant_rows(const PointPlan& point) {
  constexpr std::int64_t behind_best = 4, always = 8;
  const std::int64_t last = std::max({point.optimal().gamma + behind_best, always, point.deployed ? point.deployed->gamma : std::int64_t{0}});
  std::vector<DeploymentRow> rows;
  std::copy_if(point.rows.begin(), point.rows.end(), std::back_inserter(rows),
               [last](const DeploymentRow& row) { return row.gamma <= last; });
  return rows;
}

std::string near_cell(const PointPlan& point) {
  const auto& near = point.near_optimal_gammas;
  return near.empty() ? "-" : from_to(static_cast<double>(near.front()), static_cast<double>(near.back()));
}

std::string said_of_basis(planning::PriceBasis basis) {
  return basis == planning::PriceBasis::extrapolated ? "not measured" : "";
}

std::string share_cell(double share) {
  return fmt::format("{} ({:.0f}%)", worlds::name_of(worlds::certainty_of(share)), 100 * share);
}

// ------------------------------------------------------------------------------------------------------------ runs

/// "3", or "5-4-16" of a tree.
std::string shape_cell(const BenchFigures& run) {
  return run.tree ? fmt::format("{}-{}-{}", run.tree->depth, run.tree->top_k, run.tree->verified)
                  : fmt::format("{}", run.gamma);
}

std::string drift_cell(const BenchPrediction& held) {
  if (!held.reason.empty()) return held.reason;
  return held.drifted().empty() ? "" : fmt::format("drifted: {}", held.drifted());
}

// ---------------------------------------------------------------------------------------------------------- brief

constexpr std::size_t brief_rows = 6;

std::string speedup_with_range(const DeploymentRow& row) {
  const std::string speedup = brief(row.speedup, 3);
  return row.gamma > 0 && row.speedup_ci95.hi - row.speedup_ci95.lo > 1e-6
             ? fmt::format("{}  ({} to {})", speedup, brief(row.speedup_ci95.lo, 3), brief(row.speedup_ci95.hi, 3))
             : speedup;
}

/// Plain decoding, what is in use, recommended and measured, and the neighbours of the best draft.
Table brief_gammas(const Plan& d, const PointPlan& point) {
  std::vector<DeploymentRow> rows;
  std::set<std::size_t> shown = {0, point.drafting_row};
  if (point.deployed) {
    for (std::size_t i = 0; i < point.rows.size(); ++i)
      if (point.rows[i].gamma == point.deployed->gamma) shown.insert(i);
  }
  const auto is_measured = [&](std::size_t i) { return !measured_words(d, point.rows[i].gamma, point).empty(); };
  for (const bool measured : {true, false}) {
    for (std::size_t step = 1; step < point.rows.size(); ++step) {
      for (const std::size_t i : {point.drafting_row - step, point.drafting_row + step})
        if (shown.size() < brief_rows && i < point.rows.size() && is_measured(i) == measured) shown.insert(i);
    }
  }
  for (const std::size_t i : shown) rows.push_back(point.rows[i]);
  Table table =
      make_table(rows,
                 {{"draft tokens", [](const auto& row) { return fmt::format("{}", row.gamma); }},
                  {"tokens/step", [](const auto& row) { return brief(row.tokens_per_step, 3); }},
                  {"speedup (95%)", {Align::left}, speedup_with_range},
                  {"ms/token",
                   {.shown = d.in_seconds},
                   [&](const auto& row) { return brief(1000 * point.rows.front().time.total() / row.speedup, 3); }},
                  {"", {Align::left}, [&](const auto& row) { return notes_on(d, point, row); }}},
                 "", [&](const auto& row) { return row.gamma == point.optimal().gamma; });
  // What ran before what did not, in order of the drafts between it and the best.
  std::size_t row = 0;
  for (const std::size_t i : shown) {
    const std::size_t apart = i < point.drafting_row ? point.drafting_row - i : i - point.drafting_row;
    const bool in_use = point.deployed && rows[row].gamma == point.deployed->gamma;
    const bool is_told = in_use || apart == 0 || table.rows[row].is_marked;
    table.rows[row++].distance = is_told ? 0 : i == 0 ? 1 : is_measured(i) ? apart : apart + point.rows.size();
  }
  return table;
}

/// Points spread evenly, the first and the last among them.
Table brief_points(const Plan& d) {
  std::vector<PointPlan> rows;
  const std::size_t count = d.points().size(), shown = std::min(count, brief_rows);
  for (std::size_t i = 0; i < shown; ++i) rows.push_back(d.points()[i * (count - 1) / (shown - 1)]);
  const bool contexts = has_several_contexts(d);
  Table table = make_table(
      rows, {{"requests", [](const auto& point) { return brief(planning::whole_batch(point.batch), 6); }},
             {"context", {.shown = contexts}, [](const auto& point) { return context_cell(point.context); }},
             {"draft tokens", gamma_cell},
             {"speedup (95%)", {Align::left}, [](const auto& point) { return speedup_with_range(point.optimal()); }},
             {"sure", {Align::left}, [](const auto& point) { return share_cell(point.share); }},
             {"ms/token",
              {Align::left, d.in_seconds},
              [](const auto& point) {
                return fmt::format("{} -> {}", brief(1000 * point.seconds_per_output_token->baseline, 3),
                                   brief(1000 * point.seconds_per_output_token->speculative, 3));
              }},
             {"", {Align::left}, [&](const auto& point) {
                const bool is_told = !d.bench && !point.optimal().extrapolated;
                return is_told || !measured_words(d, point.optimal().gamma, point).empty() ? "" : "not measured";
              }}});
  // Of fewer rows the ends and the middle stay.
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t to_end = std::min(i, shown - 1 - i);
    table.rows[i].distance = to_end == 0 ? 0 : shown - to_end;
  }
  return table;
}

}  // namespace

Table points_table(const Plan& d) {
  const bool contexts = has_several_contexts(d) || d.points().front().context > 0;
  // Seconds leave no room for the tokens.
  const auto of_seconds = [&d](std::string title) {
    return ColumnLook{.shown = d.in_seconds, .title = std::move(title)};
  };
  return make_table(
      d.points(),
      {{"batch", [](const auto& point) { return whole_or_brief(point.batch); }},
       {"context", {.shown = contexts}, [](const auto& point) { return context_cell(point.context); }},
       {"gamma", gamma_cell},
       {"speedup", speedup_cell},
       {"95% interval", interval_cell},
       {"ms/token", of_seconds("ms/token"), milliseconds_cell},
       {"plain", of_seconds("ms/token, plain"),
        [](const auto& point) { return milliseconds(point.seconds_per_output_token->baseline); }},
       {"tokens/s", of_seconds("tokens/s"), throughput_cell},
       {"plain", of_seconds("tokens/s, plain"),
        [](const auto& point) { return brief(point.output_tokens_per_second->baseline); }},
       {"tokens", {.shown = !d.in_seconds, .title = "Tokens per step"}, [](const auto& point) {
          return bracket_cell(point.optimal().tokens_per_step, point.optimal().tokens_bounds);
        }},
       {"near-best", {.shown = !d.in_seconds, .title = "Near-best gammas"}, near_cell},
       {"sure", {Align::left}, [](const auto& point) { return share_cell(point.share); }},
       {"bound", {.align = Align::left, .shown = d.has_roofline()}, [&d](const auto& point) {
          return std::string(bound_of(d, point, point.optimal().gamma).value_or("-"));
        }}},
      "Best gamma at each batch and context");
}

Table gammas_table(const Plan& d, const PointPlan& point) {
  return make_table(relevant_rows(point),
                    {{"gamma", [](const auto& row) { return fmt::format("{}", row.gamma); }},
                     {"tokens",
                      {.title = "Tokens per step"},
                      [](const auto& row) { return bracket_cell(row.tokens_per_step, row.tokens_bounds); }},
                     {"round ms",
                      {.shown = d.in_seconds, .title = "Round, ms", .page_only = true},
                      [](const auto& row) { return milliseconds(row.time.total()); }},
                     {"round",
                      {.title = "Round, plain steps"},
                      [](const auto& row) { return in_column(row.tokens_per_step / row.speedup); }},
                     {"speedup", [](const auto& row) { return bracket_cell(row.speedup, row.speedup_bounds); }},
                     {"95% interval", [](const auto& row) { return speedup_range(row.speedup_ci95); }},
                     {"regret", [&](const auto& row) { return percent(row.regret); }},
                     {"bound",
                      {.align = Align::left, .shown = d.has_roofline()},
                      [&](const auto& row) { return std::string(bound_of(d, point, row.gamma).value_or("-")); }},
                     {"", {Align::left}, [&](const auto& row) { return notes_on(d, point, row); }}},
                    fmt::format("Every gamma at {}; the best one is marked", point_words(point.batch, point.context)),
                    [&](const auto& row) { return row.gamma == point.optimal().gamma; });
}

Table schedule_table(const Plan& d) {
  return make_table(
      d.shown_plan().schedule,
      {{"from batch", [](const auto& stretch) { return fmt::format("{}", stretch.batch_low); }},
       {"to batch", [](const auto& stretch) { return fmt::format("{}", stretch.batch_high); }},
       {"gamma", [](const auto& stretch) { return fmt::format("{}", stretch.gamma); }},
       {"speedup", [](const auto& stretch) { return in_column(stretch.speedup); }},
       {"sure", {Align::left}, [](const auto& stretch) { return share_cell(stretch.share); }},
       {"", {Align::left}, [](const auto& stretch) { return said_of_basis(stretch.basis); }}},
      "Schedule: gamma by batch");
}

Table drafts_table(const Plan& d) {
  struct DraftAtPoint {
    std::string name, acceptance;
    const PointPlan& point;
    std::string note;
  };
  const bool of_runs = d.drafts.empty();
  std::vector<DraftAtPoint> rows;
  for (std::size_t i = 0; i < d.deployment.drafts.size(); ++i) {
    const planning::DraftPlan& draft = d.deployment.drafts[i];
    for (std::size_t j = 0; j < draft.points.size(); ++j) {
      const std::string note = d.deployment.best_draft[j] == i ? "fastest"
                               : is_passed_over(d, i)          ? "not served"
                                                               : "";
      rows.push_back({draft.name, of_runs ? "of its runs" : d.drafts[i].acceptance.text, draft.points[j], note});
    }
  }
  constexpr std::size_t widest_acceptance = 24;
  return make_table(rows,
                    {{"draft", {Align::left}, &DraftAtPoint::name},
                     {"acceptance", {.align = Align::left, .widest = widest_acceptance}, &DraftAtPoint::acceptance},
                     {"batch", [](const auto& row) { return whole_or_brief(row.point.batch); }},
                     {"context", [](const auto& row) { return context_cell(row.point.context); }},
                     {"gamma", [](const auto& row) { return gamma_cell(row.point); }},
                     {"speedup", [](const auto& row) { return speedup_cell(row.point); }},
                     {"95% interval", [](const auto& row) { return interval_cell(row.point); }},
                     {"", {Align::left}, &DraftAtPoint::note}},
                    "Drafts", [](const auto& row) { return row.note == "fastest"; });
}

Table runs_table(const planning::BenchPlan& bench) {
  struct Run {
    const BenchFigures& figures;
    const BenchPrediction& prediction;
    std::optional<double> speedup;
  };
  std::vector<Run> runs;
  for (std::size_t i = 0; i < bench.runs.size(); ++i) {
    runs.push_back({bench.runs[i], bench.leave_one_out[i], std::nullopt});
    for (const planning::BenchSpeedup& speedup : bench.speedups)
      if (speedup.speculative == i) runs.back().speedup = speedup.speedup.value;
  }
  return make_table(
      runs,
      {{"file", {.align = Align::left, .page_only = true}, [](const auto& run) { return run.figures.file.string(); }},
       {"concurrency",
        [](const auto& run) { return run.figures.max_concurrency ? brief(*run.figures.max_concurrency) : "-"; }},
       {"batch", [](const auto& run) { return brief(run.figures.batch, 3); }},
       {"context", [](const auto& run) { return context_cell(run.figures.context); }},
       {"gamma", [](const auto& run) { return shape_cell(run.figures); }},
       {"tokens", {.title = "Tokens per step"}, [](const auto& run) { return in_column(run.figures.tokens_per_step); }},
       {"round ms", {.title = "Round, ms"}, [](const auto& run) { return milliseconds(run.figures.round_seconds); }},
       {"ms/token",
        {.title = "ms/token"},
        [](const auto& run) { return milliseconds(run.figures.seconds_per_output_token); }},
       {"measured",
        {.title = "Measured speedup"},
        [](const auto& run) {
          return run.speedup ? factor_text(*run.speedup) : std::string(run.figures.gamma == 0 ? "" : "-");
        }},
       {"predicted", {.title = "Error"}, [](const auto& run) { return error_cell(run.prediction.relative_error); }}},
      "Benchmark runs");
}

Table held_out_table(const planning::BenchPlan& bench) {
  return make_table(
      bench.backtest,
      {{"file", {Align::left}, [](const auto& held) { return held.file.string(); }},
       {"predicted",
        {.title = "Predicted, ms/token"},
        [](const auto& held) { return held.predicted ? milliseconds(*held.predicted) : "-"; }},
       {"95% interval",
        [](const auto& held) {
          return held.ci95 ? fmt::format("{} to {}", milliseconds(held.ci95->lo), milliseconds(held.ci95->hi)) : "-";
        }},
       {"measured", {.title = "Measured, ms/token"}, [](const auto& held) { return milliseconds(held.measured); }},
       {"error", [](const auto& held) { return error_cell(held.relative_error); }},
       {"", {Align::left}, drift_cell}},
      "Runs held out: used for nothing but this comparison");
}

Table brief_table(const Plan& d) {
  const bool one = d.points().size() == 1;
  return one ? brief_gammas(d, d.points().front()) : brief_points(d);
}

}  // namespace specdec::render
