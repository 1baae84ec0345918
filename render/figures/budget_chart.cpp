#include "render/figures/budget_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "render/text.hpp"

namespace specdec::render {
namespace {

using planner::BatchBudgets;
using planner::BudgetPoint;

ChartAxis batch_axis_of_budgets() { return {"batch", "batch (requests)", AxisScale::logarithmic}; }

ChartSeries line_over_batch(const BatchBudgets& budgets, std::string name, double BudgetPoint::*value, int colour) {
  ChartSeries series;
  series.name = std::move(name);
  series.colour = colour;
  for (const BudgetPoint& point : budgets.points) {
    series.x.push_back(static_cast<double>(point.batch));
    series.y.push_back(point.*value);
  }
  return series;
}

ChartSeries points_over_batch(const BatchBudgets& budgets, std::string name, double BudgetPoint::*value, int colour) {
  ChartSeries series = line_over_batch(budgets, std::move(name), value, colour);
  series.mark = ChartMark::points;
  return series;
}

std::string fixed_name(const BatchBudgets& budgets) { return fmt::format("γ = {} for all", budgets.question.gamma); }

ChartPanel speedups_of_budgets(const BatchBudgets& budgets) {
  ChartPanel panel;
  panel.title = "over plain decoding";
  panel.x = batch_axis_of_budgets();
  panel.y = {"speedup", "speedup (×)"};
  ChartSeries best =
      line_over_batch(budgets, "budget, best number drafted", &BudgetPoint::best_budget, chart_colours::speculation);
  best.role = ChartRole::highlight;
  panel.series.push_back(std::move(best));
  panel.series.push_back(line_over_batch(budgets, fmt::format("budget, {} drafted", budgets.question.gamma),
                                         &BudgetPoint::budget, 6));
  panel.series.push_back(points_over_batch(budgets, "the same by counts, simulated", &BudgetPoint::counted, 4));
  panel.series.push_back(line_over_batch(budgets, "best γ for all", &BudgetPoint::best_fixed, 2));
  panel.series.push_back(line_over_batch(budgets, fixed_name(budgets), &BudgetPoint::at_gamma, 3));
  panel.series.push_back(
      points_over_batch(budgets, "moving average (SGLang), simulated", &BudgetPoint::moving_average, 5));
  panel.series.push_back(reference_line(ChartMark::horizontal, "plain decoding", {1}));
  return panel;
}

ChartPanel tokens_of_budgets(const BatchBudgets& budgets) {
  ChartPanel panel;
  panel.title = "of a request";
  panel.x = batch_axis_of_budgets();
  panel.y = {"per_step", "tokens or drafts per step"};
  ChartSeries budget =
      line_over_batch(budgets, "tokens, budget", &BudgetPoint::tokens_of_budget, chart_colours::speculation);
  budget.role = ChartRole::highlight;
  panel.series.push_back(std::move(budget));
  panel.series.push_back(
      line_over_batch(budgets, "tokens, " + fixed_name(budgets), &BudgetPoint::tokens_at_gamma, 3));
  panel.series.push_back(line_over_batch(budgets, "verified drafts, budget", &BudgetPoint::drafts_of_budget, 7));
  return panel;
}

std::string faster_or_slower(double ratio) {
  return fmt::format("{}% {}", brief(100 * std::abs(ratio - 1), 2), ratio < 1 ? "slower" : "faster");
}

/// Where a budget gains most against the better of plain decoding and the best gamma for all, and what it does at the
/// largest batch.
std::string caption_of_budgets(const BatchBudgets& budgets, const std::string& who) {
  const auto gain = [](const BudgetPoint& point) { return point.best_budget / point.best_fixed; };
  const auto most = std::max_element(budgets.points.begin(), budgets.points.end(),
                                     [&](const BudgetPoint& a, const BudgetPoint& b) { return gain(a) < gain(b); });
  const BudgetPoint& last = budgets.points.back();
  const std::int64_t gamma = budgets.question.gamma;
  return fmt::format(
      "{}: at batch {} a budget over {} drafted tokens each is {} than γ = {} for all, the best one. At batch {} a "
      "budget over {} makes {} tokens per step where γ = {} for all makes {}, and is {}.",
      who, most->batch, most->best_drafted, faster_or_slower(gain(*most)), most->best_gamma, last.batch, gamma,
      brief(last.tokens_of_budget, 3), gamma, brief(last.tokens_at_gamma, 3),
      faster_or_slower(last.budget / last.at_gamma));
}

}  // namespace

Chart verification_budget_chart(const BatchBudgets& budgets, const std::string& who) {
  Chart chart;
  chart.name = "verification-budget";
  chart.title = "Verification within a budget: drafts of a batch compete for the target's tokens";
  chart.caption = caption_of_budgets(budgets, who);
  chart.columns = 2;
  chart.assumptions.push_back({"requests' acceptance",
                               fmt::format("of their own, standard deviation {}", brief(budgets.alpha_spread, 3)),
                               budgets.spread_source});
  chart.panels = {speedups_of_budgets(budgets), tokens_of_budgets(budgets)};
  return chart;
}

}  // namespace specdec::render
