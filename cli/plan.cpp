#include "cli/plan.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <set>
#include <stdexcept>
#include <utility>

#include "cli/files.hpp"
#include "cli/plan_answer.hpp"
#include "cli/plan_deployment.hpp"
#include "cli/text.hpp"
#include "cli/usage_error.hpp"

namespace specdec::cli {
namespace {

planning::PlanQuestion question_of(const PlanOptions& o, const Acceptance& acceptance) {
  const std::optional<core::StepCost> cost = o.cost.cost();
  if (!cost) throw UsageError("--c is missing: the time of one draft step / one target step, a number in [0, inf)");
  if (o.gamma && o.max_gamma && *o.gamma > *o.max_gamma) {
    refuse("--gamma", fmt::format("{}", *o.gamma), fmt::format("at most --max-gamma, {}", *o.max_gamma));
  }
  planning::PlanQuestion question{acceptance.profile};
  question.measured_at = acceptance.measured_at;
  question.monotone = acceptance.monotone;
  const std::int64_t known = planning::largest_known_gamma(question);
  if (o.gamma && *o.gamma > known) {
    refuse("--gamma", fmt::format("{}", *o.gamma),
           fmt::format("at most {}: the measured acceptance gives no rate to go on with", known));
  }
  question.space.cost = *cost;
  if (o.max_gamma) question.space.max_gamma = *o.max_gamma;
  question.c_hat = o.c_hat.value_or(cost->c);
  question.tolerance = o.tolerance;
  question.deployed = o.gamma;
  question.max_regret = o.max_regret;
  question.tokens = o.tokens;
  question.interval = acceptance.interval;
  return question;
}

std::vector<Assumption> assumptions_of(const Answer& a) {
  const PlanOptions& o = a.options;
  std::vector<Assumption> assumptions = {{"acceptances", "independent", "default"}};
  if (a.acceptance.interval) {
    const core::AcceptanceRate middle = planning::pooled_rate(a.question.acceptance);
    assumptions.push_back({"middle of the interval", o.alpha ? middle.alpha() : middle.rejection(), "default"});
  }
  for (const Assumption& assumption : o.cost.assumptions()) assumptions.push_back(assumption);
  assumptions.push_back({"c_hat", a.question.c_hat, o.c_hat ? "user" : "default"});
  assumptions.push_back({"generations", "long", "default"});
  return assumptions;
}

std::vector<Warning> warnings_of(const Answer& a) {
  const planning::Plan& plan = a.plan;
  std::vector<Warning> warnings;
  const auto warn = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message)});
  };
  const auto explain_null = [&](std::string code, std::string message) {
    warnings.push_back({std::move(code), std::move(message), true});
  };
  if (!a.acceptance.monotone) {
    warn("non_monotone_survival",
         "the chance that a draft is reached and accepted must not grow with its position, but does so in the input; "
         "the nearest legal values are used" +
             std::string(a.options.acceptance_per_position ? "; did you mean --conditional?" : ""));
  }
  const std::int64_t known = planning::largest_known_gamma(a.question);
  if (known < planning::no_max_gamma) {
    warn("not_extrapolated", fmt::format("the measured acceptance gives no rate to go on with, so gammas above {} are "
                                         "neither recommended nor shown",
                                         known));
  }
  if (planning::beyond_measured(a.question, plan.rows.back().gamma)) {
    warn("extrapolated",
         fmt::format("gammas above {} hold the {} acceptance rate, {}", a.measured(),
                     a.is_one_rate() ? "fitted" : "last conditional", brief(a.question.acceptance.tail().alpha())));
  }
  if (a.question.space.cost.extrapolates(plan.rows.back().gamma)) {
    warn("verify_factor_extrapolated", fmt::format("scoring more than {} tokens goes on along the last straight line",
                                                   a.question.space.cost.verification.points().back().tokens));
  }
  if (!plan.worth_it) warn("not_worth_it", "no gamma is faster than plain decoding");
  if (plan.interval && plan.worth_it && plan.interval->best_at_low == 0) {
    warn("break_even_inside_interval", "at the low end of the interval no gamma is faster than plain decoding");
  }
  if (!plan.break_even) warn("no_break_even", "no acceptance rate below 1 makes any gamma pay");
  if (plan.best.kind == theory::OptimumKind::unbounded) {
    warn("no_finite_optimum", "the speedup grows with every larger gamma, so no gamma is optimal");
  }
  if (plan.best.kind == theory::OptimumKind::too_large) {
    warn("no_finite_optimum", "the optimal gamma exceeds 2^53, which is unbounded in practice; limit stays null");
  }
  if (plan.best.attained() && plan.best.gamma != plan.unrestricted.gamma) {
    warn("max_gamma_binds",
         fmt::format("{}without --max-gamma {} would reach {}x", plan.interval ? "at the middle of the interval, " : "",
                     plan.unrestricted.attained() ? fmt::format("gamma {}", plan.unrestricted.gamma)
                                                  : std::string("ever larger gammas"),
                     brief(plan.unrestricted.speedup)));
  }
  std::int64_t near_best = 0;
  for (const theory::GammaRange& range : plan.near_best) {
    near_best += std::min<std::int64_t>(range.last - range.first, listed_gammas) + 1;
  }
  if (near_best > listed_gammas) {
    explain_null("near_optimal_list_cut", "near_optimal_gammas stops early; near_optimal_ranges is complete");
  }
  if (plan.interval && !plan.interval->all_listed) {
    warn("optimal_gammas_cut", fmt::format("only the first {} gammas that are optimal in the interval are listed",
                                           plan.interval->best.size()));
  }
  if (a.options.tokens && (!plan.finite || !plan.finite->complete)) {
    warn("finite_not_computed", "long generations with large gammas are left out, since they take too long to compute");
  }
  if (a.regret_too_large()) {
    warn("max_regret_exceeded",
         fmt::format("the {}regret of gamma {} is {}, above --max-regret {}", plan.interval ? "worst " : "",
                     plan.deployed->gamma, brief(plan.deployed->largest_regret()), *a.options.max_regret));
  }
  if (!plan.gamma_real) {
    explain_null("no_gamma_real", "gamma_real exists for one rate below 1, c > 0, verify factor 1 and no overhead");
  }
  if (!plan.oracle_speedup) {
    explain_null("no_oracle",
                 "the oracle's speedup is known for verify factor 1, no overhead and acceptance that goes on");
  }
  if (plan.oracle_speedup && std::isinf(*plan.oracle_speedup)) {
    explain_null("oracle_unbounded", "the oracle's speedup has no bound");
  }
  return warnings;
}

/// What the closed forms answer about one rate and --c.
Answer closed_form(const PlanOptions& options) {
  const Acceptance acceptance = stated_acceptance(options);
  const planning::PlanQuestion question = question_of(options, acceptance);
  return {options, acceptance, question, planning::plan(question)};
}

void add_deployment(const std::shared_ptr<const Deployment>& deployment, bool has_closed_form, Report& report) {
  const Deployment& d = *deployment;
  report.more_json = [deployment, has_closed_form](nlohmann::ordered_json& json) {
    put_deployment(*deployment, has_closed_form, json);
  };
  for (const std::string& file : std::set<std::string>(d.files.begin(), d.files.end())) {
    if (file != "-") report.files.push_back(file_facts("FILE", file));
  }
  report.presets = d.presets;
  for (const Warning& warning : d.warnings) {
    // A file that is read for its acceptance and for its times is warned of once.
    const auto same = [&](const Warning& said) { return said.code == warning.code && said.message == warning.message; };
    if (std::none_of(report.warnings.begin(), report.warnings.end(), same)) report.warnings.push_back(warning);
  }
  if (d.plan.exceeds_max_regret) report.exit_code = check_failed;
}

/// What --max-regret complains about.
void warn_of_regret(const PlanOptions& o, const Deployment& d, Report& report) {
  if (!d.plan.exceeds_max_regret) return;
  const planning::PointPlan* worst = nullptr;
  std::size_t points = 0;
  for (const planning::PointPlan& point : d.points()) {
    if (!point.deployed || !point.deployed->exceeds_max_regret) continue;
    ++points;
    if (worst == nullptr || point.deployed->worst_regret > worst->deployed->worst_regret) worst = &point;
  }
  if (worst == nullptr) return;
  report.warnings.push_back(
      {"max_regret_exceeded",
       fmt::format("at {} of {} points the regret of what is in use is above --max-regret {}; most at batch {}, where "
                   "that of gamma {} is up to {}",
                   points, d.points().size(), *o.max_regret, brief(worst->batch), worst->deployed->gamma,
                   brief(worst->deployed->worst_regret))});
}

std::vector<Assumption> deployment_assumptions(const PlanOptions& o, const Deployment& d) {
  std::vector<Assumption> assumptions = {{"baseline and speculation compared", "at equal batch", "default"},
                                         {"min_gain", d.min_gain, o.min_gain ? "user" : "default"}};
  for (const Assumption& assumption : d.cost_assumptions) assumptions.push_back(assumption);
  if (o.bench.empty() && o.cost_files.empty() && !o.roofline.hardware) {
    for (const Assumption& assumption : o.cost.assumptions()) assumptions.push_back(assumption);
  }
  if (!o.cost_files.empty() && !d.cost_from_log) {
    assumptions.push_back(
        {"overhead_seconds", o.overhead_seconds.value_or(0), o.overhead_seconds ? "user" : "default"});
  }
  if (!o.counters.empty()) {
    assumptions.push_back({"beyond the longest draft", o.beyond, o.beyond == "hold" ? "default" : "user"});
  }
  if (o.acceptance != "recorded") {
    assumptions.push_back({"acceptance", o.acceptance, "user"});
  } else if (!d.drafts.empty() && d.drafts[d.shown()].acceptance.rule) {
    assumptions.push_back({"acceptance", traces::name_of(*d.drafts[d.shown()].acceptance.rule), "file"});
  }
  return assumptions;
}

/// The first one is the main table: rows of the closed forms, else points.
std::vector<CsvTable> tables_of(bool closed_form) {
  std::vector<CsvTable> tables = {{"points", "/points"},     {"rows", "/points/*/rows", {"batch", "context"}},
                                  {"schedule", "/schedule"}, {"drafts", "/drafts/*/points", {"name"}},
                                  {"runs", "/runs"},         {"backtest", "/backtest"}};
  if (closed_form) {
    tables[1] = {"rows", "/rows"};
    std::swap(tables[0], tables[1]);
  }
  return tables;
}

/// The one point of the closed forms; it explains itself in the JSON output alone.
void add_point(PlanOptions options, const planning::Plan& plan, Report& report) {
  options.gamma.reset();
  options.max_regret.reset();
  if (!options.max_gamma && plan.best.attained() && plan.best.gamma <= planning::largest_scanned_gamma) {
    options.max_gamma = std::max(usual_max_gamma, plan.best.gamma);
  }
  try {
    const auto point = std::make_shared<Deployment>(planned_deployment(options));
    point->warnings.clear();
    add_deployment(point, true, report);
  } catch (const std::domain_error& error) {
    put_no_deployment(report.json);
    report.warnings.push_back({"points_not_computed", fmt::format("points is empty: {}", error.what()), true});
  }
}

/// Acceptance and a constant cost alone: the closed forms say everything; their one point stands in the JSON output.
Report run_closed_form(const PlanOptions& options) {
  const Answer answer = closed_form(options);
  Report report;
  report.json = json_of(answer);
  report.assumptions = assumptions_of(answer);
  report.warnings = warnings_of(answer);
  report.text = text_of(answer);
  report.exit_code = answer.regret_too_large() ? check_failed : success;
  add_point(options, answer.plan, report);
  return report;
}

Report run_deployment(const PlanOptions& options) {
  const auto planned = std::make_shared<const Deployment>(planned_deployment(options));
  const Deployment& deployment = *planned;
  Report report;
  add_deployment(planned, false, report);
  warn_of_regret(options, deployment, report);
  report.assumptions = deployment_assumptions(options, deployment);
  report.text = text_of(deployment);
  report.tables = tables_of(false);
  if (options.emit_file) write_whole("--emit-file", *options.emit_file, deployment.config->variants.front().text);
  return report;
}

Report run(const PlanOptions& options) {
  require_consistent(options);
  if (options.emit_file) require_writable("--emit-file", *options.emit_file);
  return options.is_closed_form() ? run_closed_form(options) : run_deployment(options);
}

}  // namespace

Command plan_command() {
  return {"plan", "How many tokens to draft, and what that gains", tables_of(true), [](Options& options) {
            const auto chosen = std::make_shared<PlanOptions>();
            declare(options, *chosen);
            return std::function<Report()>([chosen] { return run(*chosen); });
          }};
}

}  // namespace specdec::cli
