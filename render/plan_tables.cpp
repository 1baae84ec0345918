#include "render/plan_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <string_view>

#include "render/plan.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using planner::Plan;
using planning::BenchFigures;
using planning::BenchPrediction;
using planning::DeploymentRow;
using planning::PlanRow;
using planning::PointPlan;

std::string gamma_cell(const PointPlan& point) {
  return point.optimal_row ? fmt::format("{}", point.optimal()->gamma) : "-";
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
  const auto& bracket = point.optimal()->tokens_bracket;
  if (!bracket || bracket->lo == bracket->hi) return cell(1.0);
  const double few = bracket->lo / point.optimal()->tokens_per_step,
               many = bracket->hi / point.optimal()->tokens_per_step;
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
  return point.speedup_estimate ? bracket_cell(point.speedup_estimate->value, point.optimal()->speedup_bracket) : "-";
}

std::string interval_cell(const PointPlan& point) {
  return point.speedup_estimate ? speedup_range(point.speedup_estimate->ci95) : "-";
}

std::string context_cell(double context) { return fixed(context, 0); }

std::string error_cell(const std::optional<double>& relative_error) {
  return relative_error ? fmt::format("{:+.1f}%", 100 * *relative_error) : "-";
}

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, ", ")); }

// ---------------------------------------------------------------------------------------------------- closed forms

std::string range_cell(const std::optional<estimate::Interval>& range) {
  return range ? fmt::format("{:.2f} to {:.2f}", range->lo, range->hi) : "-";
}

std::string notes_on(const Plan& d, const PlanRow& row) {
  const planning::Plan& plan = d.closed_form->plan;
  const auto is_near = [&](const theory::GammaRange& r) { return r.first <= row.gamma && row.gamma <= r.last; };
  std::vector<std::string> words;
  const bool is_other = plan.prefers_measured() || d.sure_row() != nullptr;
  if (is_other && recommends(d, row.gamma)) words.push_back("recommended");
  if (plan.best_row && row.gamma == plan.best_row->gamma) {
    words.push_back("best");
  } else if (std::any_of(plan.near_best.begin(), plan.near_best.end(), is_near)) {
    words.push_back("near-best");
  }
  if (plan.basis == planning::Basis::minimax_regret && row.gamma == plan.recommended->gamma) words.push_back("minimax");
  if (plan.deployed && row.gamma == plan.deployed->gamma) words.push_back("in use");
  if (row.extrapolated) words.push_back("extrapolated");
  return joined(words);
}

// ---------------------------------------------------------------------------------------------------------- points

std::string notes_on(const PointPlan& point, const DeploymentRow& row) {
  std::vector<std::string> words;
  const auto& near = point.near_optimal_gammas;
  if (point.optimal_row && row.gamma == point.optimal()->gamma) {
    words.push_back(row.regret > 0 || row.speedup_bracket ? "recommended" : "best");
  } else if (point.optimal_row && point.optimal()->regret > 0 && row.regret == 0 && !row.speedup_bracket) {
    words.push_back("fastest");
  } else if (std::find(near.begin(), near.end(), row.gamma) != near.end()) {
    words.push_back("near-best");
  }
  if (point.deployed && point.deployed->gamma == row.gamma) words.push_back("in use");
  if (row.extrapolated) words.push_back("extrapolated");
  return joined(words);
}

/// The rows up to a few gammas behind the best one and that in use.
std::vector<DeploymentRow> relevant_rows(const PointPlan& point) {
  constexpr std::int64_t behind_best = 4, always = 8;
  const std::int64_t last = std::max({point.optimal_row ? point.optimal()->gamma + behind_best : std::int64_t{0},
                                      always, point.deployed ? point.deployed->gamma : std::int64_t{0}});
  std::vector<DeploymentRow> rows;
  std::copy_if(point.rows.begin(), point.rows.end(), std::back_inserter(rows),
               [last](const DeploymentRow& row) { return row.gamma <= last; });
  return rows;
}

std::string near_cell(const PointPlan& point) {
  const auto& near = point.near_optimal_gammas;
  return near.empty() ? "-" : from_to(static_cast<double>(near.front()), static_cast<double>(near.back()));
}

std::string said_of_basis(const Plan& d, planning::PriceBasis basis) {
  if (basis == planning::PriceBasis::not_priced) return "no price tells whether drafts pay";
  if (basis != planning::PriceBasis::extrapolated) return "";
  return d.extrapolates() ? "extrapolated" : "extrapolated, not decided";
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

}  // namespace

Table closed_form_table(const Plan& d) {
  const planning::Plan& plan = d.closed_form->plan;
  const planner::Acceptance& acceptance = d.drafts.front().acceptance;
  const bool has_interval = plan.interval.has_value();
  return make_table(
      plan.rows,
      {{"gamma", [](const auto& row) { return fmt::format("{}", row.gamma); }},
       {"tokens", {.title = "Tokens per step"}, [](const auto& row) { return in_column(row.expected_tokens); }},
       {"speedup", [](const auto& row) { return in_column(row.speedup); }},
       {interval_heading(d),
        {.shown = acceptance.stated->typed || has_interval},
        [&](const auto& row) { return range_cell(planner::speedup_interval(acceptance, row)); }},
       {"operations", {.title = "Operations factor"}, [](const auto& row) { return in_column(row.operations_factor); }},
       {"memory",
        {.title = "Memory access factor"},
        [](const auto& row) { return in_column(row.memory_access_factor); }},
       {"finite",
        {.shown = d.question.tokens.has_value(), .title = "Speedup, finite"},
        [](const auto& row) { return row.finite_speedup ? in_column(*row.finite_speedup) : "-"; }},
       {"max regret",
        {.shown = has_interval, .title = "Largest regret"},
        [](const auto& row) { return row.worst_regret ? percent(*row.worst_regret) : "-"; }},
       {"", {Align::left}, [&](const auto& row) { return notes_on(d, row); }}},
      "Every gamma; the recommended one is marked", [&](const auto& row) { return recommends(d, row.gamma); });
}

Table points_table(const Plan& d) {
  const bool contexts = has_several_contexts(d) || d.points().front().context > 0;
  const auto of_best = [](const auto& cell) {
    return [cell](const PointPlan& point) { return point.optimal_row ? cell(point) : std::string("-"); };
  };
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
       {interval_heading(d), interval_cell},
       {"ms/token", of_seconds("ms/token"), of_best(milliseconds_cell)},
       {"plain", of_seconds("ms/token, plain"),
        of_best([](const auto& point) { return milliseconds(point.seconds_per_output_token->baseline); })},
       {"tokens/s", of_seconds("tokens/s"), of_best(throughput_cell)},
       {"plain", of_seconds("tokens/s, plain"),
        of_best([](const auto& point) { return brief(point.output_tokens_per_second->baseline); })},
       {"tokens", {.shown = !d.in_seconds, .title = "Tokens per step"}, of_best([](const auto& point) {
          return bracket_cell(point.optimal()->tokens_per_step, point.optimal()->tokens_bracket);
        })},
       {"near-best", {.shown = !d.in_seconds, .title = "Near-best gammas"}, of_best(near_cell)},
       {"verdict",
        {Align::left},
        [](const auto& point) {
          return point.verdict == planning::Verdict::do_not_speculate ? "do not" : std::string(name_of(point.verdict));
        }},
       {"bound", {.align = Align::left, .shown = d.has_roofline()}, of_best([&d](const auto& point) {
          return std::string(bound_of(d, point, point.optimal()->gamma).value_or("-"));
        })}},
      "Best gamma at each batch and context");
}

Table gammas_table(const Plan& d, const PointPlan& point) {
  return make_table(relevant_rows(point),
                    {{"gamma", [](const auto& row) { return fmt::format("{}", row.gamma); }},
                     {"tokens",
                      {.title = "Tokens per step"},
                      [](const auto& row) { return bracket_cell(row.tokens_per_step, row.tokens_bracket); }},
                     {"round ms",
                      {.shown = d.in_seconds, .title = "Round, ms", .page_only = true},
                      [](const auto& row) { return milliseconds(row.time.total()); }},
                     {"round",
                      {.title = "Round, plain steps"},
                      [](const auto& row) { return in_column(row.tokens_per_step / row.speedup); }},
                     {"speedup", [](const auto& row) { return bracket_cell(row.speedup, row.speedup_bracket); }},
                     {interval_heading(d), [](const auto& row) { return speedup_range(row.speedup_ci95); }},
                     {best_at_ends(point) ? "most regret" : "regret",
                      [&](const auto& row) { return point.optimal_row ? percent(loss_at_ends(point, row)) : "-"; }},
                     {"bound",
                      {.align = Align::left, .shown = d.has_roofline()},
                      [&](const auto& row) { return std::string(bound_of(d, point, row.gamma).value_or("-")); }},
                     {"", {Align::left}, [&](const auto& row) { return notes_on(point, row); }}},
                    fmt::format("Every gamma at {}; the best one is marked", point_words(point.batch, point.context)),
                    [&](const auto& row) { return point.optimal_row && row.gamma == point.optimal()->gamma; });
}

Table schedule_table(const Plan& d) {
  return make_table(
      d.shown_plan().schedule,
      {{"from batch", [](const auto& stretch) { return fmt::format("{}", stretch.batch_low); }},
       {"to batch", [](const auto& stretch) { return fmt::format("{}", stretch.batch_high); }},
       {"gamma", [](const auto& stretch) { return stretch.gamma ? fmt::format("{}", *stretch.gamma) : "-"; }},
       {"verdict", {Align::left}, [](const auto& stretch) { return std::string(name_of(stretch.verdict)); }},
       {"", {Align::left}, [&](const auto& stretch) { return said_of_basis(d, stretch.basis); }}},
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
      const bool is_run = !of_runs || planning::decides(draft.points[j].basis, d.extrapolates());
      const std::string note = d.deployment.best_draft[j] == i ? "fastest"
                               : is_passed_over(d, i)          ? "not served"
                               : is_run                        ? ""
                                                               : "not run there";
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
                     {interval_heading_of_drafts(d), [](const auto& row) { return interval_cell(row.point); }},
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

Table relative_table(const planning::BenchPlan& bench) {
  return make_table(
      bench.relative,
      {{"batch", [](const auto& row) { return whole_or_brief(row.batch); }},
       {"context", [](const auto& row) { return context_cell(row.context); }},
       {"gamma", [](const auto& row) { return fmt::format("{}", row.gamma); }},
       {"tokens", {.title = "Tokens per step"}, [](const auto& row) { return in_column(row.tokens_per_step); }},
       {"ms/token", {.title = "ms/token"}, [](const auto& row) { return milliseconds(row.seconds_per_output_token); }},
       {"over fastest",
        {.title = "ms/token over that of the fastest"},
        [](const auto& row) { return in_column(row.slower.value); }},
       {"95% interval", [](const auto& row) { return speedup_range(row.slower.ci95); }},
       {"", {Align::left}, [](const auto& row) { return row.fastest ? "fastest" : ""; }}},
      "Gammas compared with each other", [](const auto& row) { return row.fastest; });
}

}  // namespace specdec::render
