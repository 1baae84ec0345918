#include <fmt/format.h>
#include <memory>
#include <utility>

#include "analysis/theory/acceptance_inversion.hpp"
#include "cli/figures/deployment_defaults.hpp"
#include "cli/figures/figure_kind.hpp"
#include "cli/files.hpp"
#include "cli/given_options.hpp"
#include "cli/plan_options.hpp"
#include "cli/planned.hpp"
#include "cli/stated_acceptance.hpp"
#include "cli/usage_error.hpp"
#include "render/figures/planning_charts.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

// Values for figures that show no particular deployment.
constexpr const char* usual_alpha = "0.7:0.8";
constexpr const char* usual_c_interval = "0.03:0.08";
constexpr double usual_c = 0.05;
constexpr std::int64_t usual_gamma_in_use = 8;

Assumption example(std::string name, nlohmann::ordered_json value) {
  return {std::move(name), std::move(value), "default"};
}

/// Where the acceptance rate lies, by the options of a plan's acceptance or by default.
struct RateOfPlan {
  estimate::Interval alpha;
  planning::RateInterval rates;
  /// The longest draft behind a rate that is pooled over depths.
  std::optional<std::int64_t> measured_at = {};
};

/// The rates that give the interval of the tokens per step of the longest draft that was typed or published.
RateOfPlan rate_of_lengths(const planner::Acceptance& acceptance, Chart& chart) {
  const std::int64_t gamma = acceptance.stated->typed->measured_at;
  const estimate::Interval tokens = acceptance.curve->tokens_per_step(gamma).ci95;
  const planning::RateInterval rates = {theory::alpha_from_acceptance_length(tokens.lo, gamma),
                                        theory::alpha_from_acceptance_length(tokens.hi, gamma)};
  append(chart.warnings, acceptance.warnings);
  chart.warnings.push_back(
      {"one_rate", fmt::format("the acceptance is taken as one rate, {} to {}, which gives {} to {} tokens per step at "
                               "gamma {}",
                               brief(rates.low.alpha(), 3), brief(rates.high.alpha(), 3), brief(tokens.lo, 3),
                               brief(tokens.hi, 3), gamma)});
  return {{rates.low.alpha(), rates.high.alpha()}, rates, gamma};
}

/// @throws UsageError where what is given knows no rate
RateOfPlan rate_of(const PlanOptions& o, Chart& chart) {
  require_consistent_acceptance(o);
  if (o.counters.empty() && o.trace.empty()) {
    const planner::Acceptance acceptance = stated_acceptance(o);
    const planner::StatedAcceptance& stated = *acceptance.stated;
    if (stated.typed && stated.typed->is_sampled) return rate_of_lengths(acceptance, chart);
    if (stated.published != nullptr) chart.assumptions.push_back(planner::assumption_of(*stated.published));
    const core::AcceptanceRate pooled = stated.rate;
    const planning::RateInterval rates = stated.interval.value_or(planning::RateInterval{pooled, pooled});
    if (stated.typed) {
      chart.warnings.push_back({"one_rate", fmt::format("the acceptance by position is taken as its pooled rate, {}",
                                                        brief(pooled.alpha()))});
    }
    return {{rates.low.alpha(), rates.high.alpha()}, rates, stated.typed ? std::optional(stated.typed->measured_at) : std::nullopt};
  }
  const planner::Acceptance measured = acceptance_of(o);
  chart.files = facts_of_each(measured.files);
  append(chart.warnings, measured.warnings);
  if (!measured.alpha && !measured.alpha_ci95) {
    throw UsageError(fmt::format("{} gives no acceptance rate; give --alpha LOW:HIGH", measured.text));
  }
  const estimate::Interval alpha =
      measured.alpha_ci95.value_or(estimate::Interval{measured.alpha.value_or(0), measured.alpha.value_or(0)});
  return {alpha, {core::AcceptanceRate(alpha.lo), core::AcceptanceRate(alpha.hi)}};
}

/// Fills in an example for acceptance that the options leave out.
void complete_acceptance(PlanOptions& o, std::vector<Assumption>& assumptions) {
  if (o.states_acceptance()) return;
  o.alpha = usual_alpha;
  assumptions.push_back(example("alpha", usual_alpha));
}

void add_cost_assumptions(const StepCostOptions& cost, Chart& chart) {
  for (const Assumption& assumption : cost.times().assumptions()) chart.assumptions.push_back(assumption);
  append(chart.warnings, cost.times().warnings());
}

// ---- speedup-map

struct SpeedupMapOptions {
  PlanOptions plan;
  std::optional<std::string> c_interval;
};

estimate::Interval interval_of_c(const std::string& text) {
  constexpr std::string_view option = "--c-interval";
  const auto ends = split(text, ':');
  if (ends.size() != 2) refuse(option, text, "LOW:HIGH");
  const estimate::Interval c = {parse_number(option, ends[0], {}), parse_number(option, ends[1], {})};
  if (!(c.lo <= c.hi)) refuse(option, text, "LOW:HIGH with LOW <= HIGH");
  return c;
}

Chart speedup_map_figure(SpeedupMapOptions o) {
  Chart given;
  if (o.plan.cost.c && o.c_interval) throw UsageError("--c-interval is given, but --c is too");
  const bool own_box = o.plan.states_acceptance() || o.plan.cost.c || o.c_interval;
  complete_acceptance(o.plan, given.assumptions);
  if (!own_box) {
    o.c_interval = usual_c_interval;
    given.assumptions.push_back(example("c", usual_c_interval));
  } else if (!o.plan.cost.c && !o.c_interval) {
    o.plan.cost.c = usual_c;
    given.assumptions.push_back(example("c", usual_c));
  }
  const RateOfPlan rate = rate_of(o.plan, given);
  SpeedupMapInputs inputs;
  inputs.alpha = rate.alpha;
  inputs.measured_at = rate.measured_at;
  inputs.c = o.c_interval ? interval_of_c(*o.c_interval) : estimate::Interval{*o.plan.cost.c, *o.plan.cost.c};
  inputs.cost = o.plan.cost.times().with_c(0);
  if (o.plan.question.max_gamma) inputs.max_gamma = *o.plan.question.max_gamma;
  add_cost_assumptions(o.plan.cost, given);
  Chart chart = speedup_map_chart(inputs);
  chart.assumptions = std::move(given.assumptions);
  chart.files = std::move(given.files);
  chart.warnings.insert(chart.warnings.begin(), given.warnings.begin(), given.warnings.end());
  return chart;
}

std::function<Chart()> set_up_speedup_map(Options& options) {
  const auto o = std::make_shared<SpeedupMapOptions>();
  declare_acceptance(options, o->plan);
  o->plan.cost.declare(options, "[--c-interval]");
  options.text("--c-interval", o->c_interval, "LOW:HIGH", "what c may be; the box's other side");
  options.group("Question");
  options.integer("--max-gamma", o->plan.question.max_gamma, {1, 4096}, "gammas compared [256]");
  return [o] { return speedup_map_figure(*o); };
}

// ---- speedup-over-gamma

Chart speedup_over_gamma_figure(PlanOptions o) {
  planner::PlanQuestion& q = o.question;
  std::vector<Assumption> assumptions;
  refuse_given({{"--emit-file", o.emit_file.has_value()},
                {"--tokens", o.question.tokens.has_value()},
                {"--c-hat", o.question.c_hat.has_value()}},
               "the figure does not show that");
  const bool has_acceptance =
      o.states_acceptance() || !o.drafts.empty() || !o.bench.empty() || o.leaves_acceptance_to_draft();
  const bool has_cost = o.states_cost() || !o.drafts.empty() || !o.bench.empty();
  if (!has_acceptance) complete_acceptance(o, assumptions);
  if (!has_cost) {
    o.cost.c = usual_c;
    assumptions.push_back(example("c", usual_c));
  }
  if (!has_acceptance && !has_cost && !q.gamma && q.schedule.empty() &&
      q.max_gamma.value_or(32) >= usual_gamma_in_use) {
    q.gamma = usual_gamma_in_use;
    assumptions.push_back(example("gamma in use", usual_gamma_in_use));
  }
  // The one point of the closed forms does not say what is in use, those of a batch do.
  if (o.is_closed_form() && q.gamma) q.batch = {1};
  require_consistent(o);
  const planner::Plan plan = planned(o);
  return resting_on(plan, plan.files, std::move(assumptions), speedup_over_gamma_chart(plan));
}

std::function<Chart()> set_up_speedup_over_gamma(Options& options) {
  const auto o = std::make_shared<PlanOptions>();
  declare(options, *o);
  options.footer("Every option of specdec plan.");
  return [o] { return speedup_over_gamma_figure(*o); };
}

}  // namespace

std::vector<FigureKind> planning_figures() {
  return {{"speedup-map", "best speedup over acceptance rate and draft cost, and where which gamma is best",
           set_up_speedup_map},
          {"speedup-over-gamma", "speedup against gamma with its interval, near-optimal gammas and the one in use",
           set_up_speedup_over_gamma}};
}

}  // namespace specdec::cli
