#include "cli/plan.hpp"

#include <fmt/format.h>
#include <optional>
#include <string>
#include <utility>

#include "cli/files.hpp"
#include "cli/planned.hpp"
#include "cli/usage_error.hpp"
#include "render/plan.hpp"

namespace specdec::cli {
namespace {

using planner::Plan;

/// The first one is the main table: the gammas of one point, else points.
std::vector<CsvTable> tables_of(bool one_point) {
  std::vector<CsvTable> tables = {{"points", "/points"},     {"rows", "/points/*/rows", {"batch", "context"}},
                                  {"schedule", "/schedule"}, {"drafts", "/drafts/*/points", {"name"}},
                                  {"runs", "/runs"},         {"backtest", "/backtest"}};
  if (one_point) std::swap(tables[0], tables[1]);
  return tables;
}

/// The text of the plan's configuration that the engine reads.
/// @throws UsageError in terms of the option that names the file, where the engine would not take it
const std::string& text_for_engine(std::string_view option, const std::string& file, const Plan& plan,
                                   const std::optional<std::string>& draft_model) {
  if (plan.config->not_to_be_written.empty()) return plan.config->text;
  const bool has_gap = !plan.config->text.empty();
  const std::string remedy =
      !has_gap      ? ""
      : draft_model ? fmt::format("; --draft-model is {}, but must be {}", *draft_model,
                                  plan.config->engine == planning::Engine::llamacpp ? "a path of a GGUF file"
                                                                                    : "ORG/NAME or a path")
                    : "; --draft-model names it";
  throw UsageError(fmt::format("{} is {}, but there is nothing to write that the engine would take: {}{}", option, file,
                               plan.config->not_to_be_written, remedy));
}

Report report_of(const std::shared_ptr<const Plan>& plan) {
  Report report = report_on(*plan, nlohmann::ordered_json::object(), render::spoken(*plan));
  report.more_json = [plan](nlohmann::ordered_json& json) { render::put_plan(*plan, json); };
  report.files = facts_of_each(plan->files);
  append(report.warnings, same_content(report.files));
  report.rows_of_empty = render::rows_of_empty_runs();
  report.tables = tables_of(plan->points().size() == 1);
  report.exit_code = plan->exceeds_max_regret() ? check_failed : success;
  return report;
}

/// The plan of what is scraped from a server. What is wrong with the question is said before.
PlanReport plan_of_server(const PlanOptions& options) {
  require_consistent(with_scrapes(options, {*options.scrape.url}));
  if (options.emit_file) require_writable("--emit-file", *options.emit_file);
  std::vector<Note> notes;
  PlanReport plan = plan_report(with_scrapes(options, scraped(options.scrape, notes)));
  append(plan.report.warnings, notes);
  return plan;
}

void declare_plan(Options& options, PlanOptions& o) {
  declare(options, o);
  o.scrape.declare(options);
}

Report run_plan(const PlanOptions& chosen, const Options& options) {
  require_consistent(chosen.scrape);
  PlanOptions o = chosen;
  const nlohmann::ordered_json effective = options.effective();
  const nlohmann::ordered_json& output = effective.at("output");
  // Data keep their format; beside them --emit-file has the configuration.
  const bool is_for_engine = o.question.emit && !o.emit_file && output.is_string() && effective.at("format") == "table";
  if (is_for_engine) o.question.config_file = output.get<std::string>();
  o.progress = progress_line("reading", options.quiet());
  o.scrape.progress = progress_line("scraping", options.quiet());
  PlanReport plan = o.scrape.url ? plan_of_server(o) : plan_report(o);
  if (is_for_engine) {
    plan.report.file = text_for_engine("--output", o.question.config_file, *plan.plan, o.draft().model);
  }
  return std::move(plan.report);
}

}  // namespace

PlanReport plan_report(const PlanOptions& options) {
  require_consistent(options);
  if (options.emit_file) require_writable("--emit-file", *options.emit_file);
  const auto plan = std::make_shared<const Plan>(planned(options));
  if (options.emit_file) {
    require_no_input("--emit-file", *options.emit_file, plan->files);
    write_whole("--emit-file", *options.emit_file,
                text_for_engine("--emit-file", *options.emit_file, *plan, options.draft().model));
  }
  return {report_of(plan), plan};
}

std::vector<CsvTable> plan_tables() { return tables_of(true); }

Command plan_command() {
  return {"plan", "How many tokens to draft, and what that gains", plan_tables(),
          setup_of<PlanOptions>(run_plan, declare_plan)};
}

}  // namespace specdec::cli
