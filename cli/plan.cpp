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
  if (!d.drafts.empty() && d.drafts[d.shown()].acceptance.method == "sequences") {
    assumptions.push_back({"steps at the ends of texts", "charged in full, as if the texts went on", "default"});
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
std::shared_ptr<const Deployment> add_point(PlanOptions options, const planning::Plan& plan, Report& report) {
  options.gamma.reset();
  options.max_regret.reset();
  if (!options.max_gamma && plan.best.attained() && plan.best.gamma <= planning::largest_scanned_gamma) {
    options.max_gamma = std::max(usual_max_gamma, plan.best.gamma);
  }
  try {
    const auto point = std::make_shared<Deployment>(planned_deployment(options));
    point->warnings.clear();
    add_deployment(point, true, report);
    return point;
  } catch (const std::domain_error& error) {
    put_no_deployment(report.json);
    report.warnings.push_back({"points_not_computed", fmt::format("points is empty: {}", error.what()), true});
    return nullptr;
  }
}

/// Acceptance and a constant cost alone: the closed forms say everything; their one point stands in the JSON output.
PlanReport run_closed_form(const PlanOptions& options) {
  const Answer answer = closed_form(options);
  PlanReport plan;
  Report& report = plan.report;
  report.json = json_of(answer);
  report.assumptions = assumptions_of(answer);
  report.warnings = warnings_of(answer);
  report.text = text_of(answer);
  report.exit_code = answer.regret_too_large() ? check_failed : success;
  plan.words = words_of(answer);
  plan.closed_form = answer.plan;
  plan.deployment = add_point(options, answer.plan, report);
  return plan;
}

PlanReport run_deployment(const PlanOptions& options) {
  PlanReport plan;
  plan.deployment = std::make_shared<const Deployment>(planned_deployment(options));
  const Deployment& deployment = *plan.deployment;
  Report& report = plan.report;
  add_deployment(plan.deployment, false, report);
  warn_of_regret(options, deployment, report);
  report.assumptions = deployment_assumptions(options, deployment);
  report.text = text_of(deployment);
  report.tables = tables_of(false);
  plan.words = words_of(deployment);
  if (options.emit_file) write_whole("--emit-file", *options.emit_file, deployment.config->variants.front().text);
  return plan;
}

}  // namespace

PlanReport plan_report(const PlanOptions& options) {
  require_consistent(options);
  if (options.emit_file) require_writable("--emit-file", *options.emit_file);
  return options.is_closed_form() ? run_closed_form(options) : run_deployment(options);
}

std::vector<CsvTable> plan_tables() { return tables_of(true); }

Command plan_command() {
  return {"plan", "How many tokens to draft, and what that gains", plan_tables(), [](Options& options) {
            const auto chosen = std::make_shared<PlanOptions>();
            declare(options, *chosen);
            return std::function<Report()>([chosen] { return plan_report(*chosen).report; });
          }};
}

}  // namespace specdec::cli
