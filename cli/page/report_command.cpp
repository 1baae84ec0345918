#include "cli/commands.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <utility>

#include "cli/files.hpp"
#include "cli/plan.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "planner/recordings/analysis.hpp"
#include "render/analysis.hpp"
#include "render/figures/chart_data.hpp"
#include "render/figures/drawing.hpp"
#include "render/figures/trace_charts.hpp"
#include "render/page/answer_page.hpp"
#include "render/page/chart_page.hpp"
#include "render/page/page_charts.hpp"
#include "render/page/plan_controls.hpp"
#include "render/text.hpp"
#include "render/version.hpp"

namespace specdec::cli {

using namespace render;
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

struct ReportOptions {
  PlanOptions plan;
  bool is_static = false;

  void declare(Options& options) {
    cli::declare(options, plan);
    options.group("Page");
    options.flag("--static", is_static, "no controls and no script, whatever is installed");
    options.footer(
        "Examples:\n"
        "  specdec report --alpha 0.7:0.8 --c 0.05 --output report.html\n"
        "  specdec report --trace trace.safetensors --c 0.05 --emit vllm --output report.html\n"
        "  specdec report --alpha 0.8 --hardware h200 --model llama-3.1-70b --draft-model llama-3.2-1b \\\n"
        "    --tp 4 --batch 1,8,64 --output report.html");
  }
};

/// "2026-03-01": today, or the day of SOURCE_DATE_EPOCH, by which builds that are to be repeatable state the time.
std::string day_of_making() {
  std::time_t now = std::time(nullptr);
  if (const char* const stated = std::getenv("SOURCE_DATE_EPOCH")) {
    now = static_cast<std::time_t>(std::strtoll(stated, nullptr, 10));
  }
  return fmt::format("{:%Y-%m-%d}", fmt::gmtime(now));
}

/// The built script of the interactive page: below the program's own folder, or beside it where it is installed.
std::optional<std::string> page_script() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const char* place : {"share/specdec/page/planner.js", "../share/specdec/page/planner.js"}) {
    std::ifstream file(folder / place, std::ios::binary);
    if (file) return std::string(std::istreambuf_iterator<char>(file), {});
  }
  return std::nullopt;
}

/// The chart's SVG element, without what stands before it in a file of its own.
std::string svg_element(const std::string& file) {
  const std::size_t start = file.find("<svg");
  return start == std::string::npos ? file : file.substr(start);
}

std::vector<PageChart> drawn(std::vector<Chart> charts, const std::string& command, Report& report) {
  std::vector<PageChart> shown;
  DrawingStyle style;
  style.kind = DrawingKind::svg;
  style.theme = DrawingTheme::page;
  style.has_title = style.has_caption = false;
  bool can_draw = true;
  for (Chart& chart : charts) {
    PageChart& page = shown.emplace_back(PageChart{std::move(chart), {}});
    if (!can_draw) continue;
    try {
      page.drawing = svg_element(drawing_of(page.chart, style, command));
    } catch (const UsageError& error) {
      can_draw = false;
      report.warnings.push_back(
          {"figures_not_drawn", fmt::format("the page shows data in the place of figures: {}", error.with_options())});
    }
  }
  return shown;
}

planner::RecordingFiles recording_of(const PlanOptions& o) {
  planner::RecordingFiles recording{o.trace};
  recording.how.draft_array = o.draft_array.value_or("");
  return recording;
}

/// @param rule  that of the plan
planner::Analysis analysed(const PlanOptions& o, planner::Acceptance::Rule rule) {
  planner::AnalysisQuestion question;
  question.rules.acceptance = rule;
  question.cost = o.cost.times();
  question.standardise.emplace();
  question.threads = default_threads();
  return planner::analyze(recording_of(o), question);
}

/// Appends the recording's figures.
void add_recording(const PlanOptions& o, const planning::TraceAnalysis& analysis, std::vector<Chart>& charts,
                   Report& report) {
  RecordingCharts made = recording_charts(analysis, name_of_recording(o.trace));
  std::move(made.charts.begin(), made.charts.end(), std::back_inserter(charts));
  if (made.left_out.empty()) return;
  report.warnings.push_back({"figures_left_out", fmt::format("figures that this recording cannot give are left out: {}",
                                                             fmt::join(made.left_out, "; "))});
}

Report run(const ReportOptions& o, const Options& options) {
  const ordered_json effective = options.effective();
  if (effective.at("output").is_null())
    throw UsageError("--output is missing: the page to write, for instance report.html");
  PlanReport plan = plan_report(o.plan);
  AnswerPage page;
  std::vector<Chart> charts = plan_charts(*plan.plan, page_map);
  std::optional<planner::Analysis> analysis;
  if (!o.plan.trace.empty()) {
    analysis = analysed(o.plan, plan.plan->drafts.front().acceptance.rule);
    page.recording = recording_section(*analysis);
  }

  Report report;
  report.assumptions = plan.report.assumptions;
  report.warnings = plan.report.warnings;
  report.files = plan.report.files;
  report.presets = plan.report.presets;
  report.exit_code = plan.report.exit_code;
  page.subject = subject_of(*plan.plan);
  page.version = version();
  page.command = options.command_line();
  page.made_on = day_of_making();
  page.words = words_of(plan.report.spoken.decision);
  if (analysis) {
    add_recording(o.plan, analysis->recording, charts, report);
  }
  // Its controls ask of drafts that propose in every round.
  const bool has_no_controls = o.is_static || o.plan.draft().hit_rate;
  std::optional<std::string> script = has_no_controls ? std::nullopt : page_script();
  std::vector<PageChart> shown;
  if (script) {
    // It draws for itself.
    for (Chart& chart : charts) shown.push_back({std::move(chart), {}});
  } else {
    shown = drawn(std::move(charts), page.command, report);
  }
  for (const PageChart& chart : shown) page.figures.push_back(figure_html(chart));
  page.plan = sections_of(*plan.plan);
  page.assumptions = report.assumptions;
  page.inputs = effective;
  if (!report.files.empty()) page.inputs["files"] = report.files;
  if (!report.presets.empty()) page.inputs["presets"] = report.presets;
  std::copy_if(report.warnings.begin(), report.warnings.end(), std::back_inserter(page.warnings),
               [](const Note& warning) { return !warning.explains_null; });
  // The page's controls plan chains.
  const bool of_tree = plan.plan->shown_plan().tree.has_value();
  if (script && !of_tree) {
    std::span<const planning::LenienceEstimate> lenience;
    if (analysis) lenience = analysis->recording.lenience;
    std::string allowed_by = fmt::format("'sha256-{}'", base64_sha256(*script));
    page.program = PageProgram{std::move(*script), std::move(allowed_by), plan_controls(*plan.plan, lenience),
                               ordered_json::array()};
    for (const PageChart& chart : shown) page.program->charts.push_back(figure_json(chart.chart, true));
  }
  report.file = html_of(page);

  ordered_json figures = ordered_json::array();
  for (const PageChart& chart : shown) {
    figures.push_back({{"name", chart.chart.name},
                       {"title", chart.chart.title},
                       {"is_drawn", page.program || !chart.drawing.empty()}});
  }
  report.json = {{"is_interactive", page.program.has_value()},
                 {"size_bytes", report.file->size()},
                 {"figures", figures}};
  report.spoken = said(
      page.words.front(), page.words.size() > 1 ? page.words[1] : "",
      '\n' +
          wrapped(fmt::format("{}: {} page of {} kB with {} figure{}.",
                              visible(effective.at("output").get<std::string>()), page.program ? "an interactive" : "a",
                              (report.file->size() + 999) / 1000, shown.size(), shown.size() == 1 ? "" : "s")) +
          '\n');
  return report;
}

}  // namespace

Command report_command() {
  return {"report",
          "The answer of plan as one HTML page, with figures",
          {{"figures", "/figures"}},
          setup_of<ReportOptions>(run)};
}

}  // namespace specdec::cli
