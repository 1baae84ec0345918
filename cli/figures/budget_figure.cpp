#include <memory>
#include <utility>

#include "cli/figures/deployment_defaults.hpp"
#include "cli/figures/figure_kind.hpp"
#include "cli/files.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/planned.hpp"
#include "cli/usage_error.hpp"
#include "render/figures/budget_chart.hpp"

namespace specdec::cli {

using namespace render;
namespace {

struct BudgetFigureOptions {
  PlanOptions plan;
  planner::BudgetQuestion asked;
  std::optional<double> context;
};

constexpr double usual_budget_context = 1000;

Chart from_options(BudgetFigureOptions o) {
  std::vector<Assumption> assumptions = default_deployment(o.plan, o.plan.roofline);
  require_consistent(o.plan);
  const planner::Acceptance acceptance = acceptance_of(o.plan, {.max_gamma = o.asked.gamma, .by_request = true});
  const planner::Cost cost = cost_of(o.plan, draft_words(o.plan));
  if (o.plan.batch) o.asked.batch = rising_list("--batch", *o.plan.batch, {1, 4096});
  o.asked.context = o.context.value_or(usual_budget_context);
  if (!o.context) assumptions.push_back({"context", usual_budget_context, "default"});
  const planner::BatchBudgets budgets = planner::batch_budgets(acceptance, cost, o.asked);
  Chart chart = verification_budget_chart(budgets, deployment_text(o.plan, o.plan.roofline));
  std::vector<Assumption> of_both = acceptance.assumptions;
  planner::append_new(of_both, cost.assumptions);
  chart.assumptions = with_defaults(with_defaults(std::move(assumptions), of_both), chart.assumptions);
  chart.warnings = acceptance.warnings;
  chart.warnings.insert(chart.warnings.end(), cost.warnings.begin(), cost.warnings.end());
  chart.presets = cost.presets;
  for (const std::string& file : acceptance.files) chart.files.push_back(file_facts("FILE", file));
  for (const std::string& file : cost.files) chart.files.push_back(file_facts("FILE", file));
  return chart;
}

std::function<Chart()> set_up_budget_figure(Options& options) {
  const auto chosen = std::make_shared<BudgetFigureOptions>();
  PlanOptions& o = chosen->plan;
  declare_one_acceptance(options, o, "A", "acceptance rate");
  options.number("--alpha-spread", chosen->asked.alpha_spread, {.lo = 1e-4, .hi = 0.5},
                 "standard deviation of a Beta law of the rate over\nrequests [that of the file's requests, else 0.1]");
  declare_deployment(options, o);
  options.group("What is shown");
  options.integer("-k,--gamma,--num-speculative-tokens", chosen->asked.gamma, {1, 64},
                  "tokens drafted for each request");
  options.text("--batch,--concurrency", o.batch, "B1,B2,...", "rising [1 to 256]");
  options.number("--context", chosen->context, {.lo = 0, .hi = planner::largest_context},
                 "tokens in the cache per request [1000]");
  return [chosen] { return from_options(*chosen); };
}

}  // namespace

FigureKind verification_budget_figure() {
  return {"verification-budget", "what the drafts of a batch gain if they compete for the tokens that are verified",
          set_up_budget_figure};
}

}  // namespace specdec::cli
