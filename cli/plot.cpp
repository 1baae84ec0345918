#include "cli/commands.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "cli/figures/figure_kind.hpp"
#include "cli/plot_steps.hpp"
#include "cli/terminal.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "render/figures/chart_data.hpp"
#include "render/figures/drawing.hpp"
#include "render/figures/gnuplot_script.hpp"
#include "render/table.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;

/// Figures that answer one kind of question.
struct FigureList {
  std::string about;
  std::vector<FigureKind> figures;
};

std::vector<FigureList> all_figures() {
  return {{"paper", paper_figures()},
          {"planning", planning_figures()},
          {"traces", trace_figures()},
          {"deployments", {speedup_over_batch_figure(), speedup_over_context_figure(), cost_and_time_figure()}}};
}

/// Options for the appearance of drawings.
struct DrawingOptions {
  std::string theme = "light";
  std::string width = "720px";
  bool no_title = false;
  bool no_caption = false;

  void declare(Options& options) {
    options.choice("--theme", theme, {"light", "dark", "page"},
                   "paper, a dark screen, or nothing behind an SVG that stands within a page");
    options.text("--width", width, "LENGTH",
                 "in mm or px (1/96 inch): 85mm is a column of a paper, 1280px a slide; text is scaled with it");
    options.flag("--no-title", no_title, "without the title, where a slide or a paper has its own");
    options.flag("--no-caption", no_caption, "without the caption, which an SVG has in its metadata all the same");
  }

  DrawingStyle style(DrawingKind kind) const {
    DrawingStyle style;
    style.kind = kind;
    style.theme = theme == "light" ? DrawingTheme::light : theme == "dark" ? DrawingTheme::dark : DrawingTheme::page;
    if (style.theme == DrawingTheme::page && kind != DrawingKind::svg)
      refuse("--theme", theme, "light or dark, except for SVG");
    const bool is_print = width.ends_with("mm");
    if (!is_print && !width.ends_with("px")) refuse("--width", width, "a length in mm or px, for instance 85mm");
    const std::string number = width.substr(0, width.size() - 2);
    constexpr double units_per_mm = 96 / 25.4;
    style.width = is_print ? units_per_mm * parse_number("--width in mm", number, {.lo = 50, .hi = 1000})
                           : parse_number("--width in px", number, {.lo = 200, .hi = 4000});
    // 300 dots an inch on paper; on a screen two dots a pixel look sharp, but a width in pixels means them.
    style.pixels = is_print ? 300.0 / 96 : 1;
    style.has_title = !no_title;
    style.has_caption = !no_caption;
    return style;
  }
};

/// The kind of drawing that a file's ending asks for.
std::optional<DrawingKind> kind_of_file(std::string_view path) {
  if (path.ends_with(".svg")) return DrawingKind::svg;
  if (path.ends_with(".png")) return DrawingKind::png;
  if (path.ends_with(".pdf")) return DrawingKind::pdf;
  return std::nullopt;
}

DrawingStyle terminal_style() {
  DrawingStyle style;
  style.kind = DrawingKind::terminal;
  if (const std::optional<TerminalSize> size = terminal_size()) {
    style.columns = std::clamp(size->columns, 40, 400);
    style.rows = std::clamp(size->rows, 16, 200);
  }
  style.colour = is_colour_terminal();
  return style;
}

void take_notes(Chart&& chart, Report& report) {
  report.assumptions = std::move(chart.assumptions);
  report.warnings = std::move(chart.warnings);
  report.files = std::move(chart.files);
  report.presets = std::move(chart.presets);
}

// ------------------------------------------------------------------------------------------------------- one figure

struct PlotOptions {
  DrawingOptions drawing;
  bool terminal = false;
  bool script = false;

  void declare(Options& options) {
    options.group("Drawing");
    drawing.declare(options);
    options.flag("--terminal", terminal, "draw with characters");
    options.flag("--script", script, "print what gnuplot would draw from: the SVG, or with --terminal that");
  }
};

Report plot_figure(const std::function<Chart()>& make_chart, const PlotOptions& plot, const Options& options) {
  const ordered_json given = options.effective();
  const bool as_table = given.at("format") == "table";
  const auto output =
      given.at("output").is_null() ? std::nullopt : std::optional(given.at("output").get<std::string>());
  const std::optional<DrawingKind> kind = output ? kind_of_file(*output) : std::nullopt;
  if (plot.script && !as_table) throw UsageError("--script is given, but --format asks for the data");
  if (plot.terminal && !as_table) throw UsageError("--terminal is given, but --format asks for the data");
  if (output && !kind && as_table && !plot.script)
    refuse("--output", *output, "a file that ends in .svg, .png or .pdf, or with --format json or csv any other");
  if (kind && (plot.script || plot.terminal))
    throw UsageError(fmt::format("{} is given, but --output {} asks for a drawing of its own",
                                 plot.script ? "--script" : "--terminal", *output));
  if (plot.terminal || (!kind && !plot.script)) {
    for (const char* const look : {"--theme", "--width", "--no-title", "--no-caption"})
      if (options.is_given(look))
        throw UsageError(
            fmt::format("{} is given, but goes with --output FILE.svg, .png or .pdf, or with --script for "
                        "an SVG, only",
                        look));
  }
  const DrawingStyle style = plot.terminal ? terminal_style() : plot.drawing.style(kind.value_or(DrawingKind::svg));

  Chart chart = make_chart();
  require_drawable(chart);
  Report report;
  if (plot.script) {
    report.spoken.note = gnuplot_script(chart, style, options.command_line());
    return report;
  }
  report.json = chart_json(chart);
  if (kind) {
    report.file = drawing_of(chart, style, options.command_line());
    report.spoken = said(fmt::format("{}: {}. {}", visible(*output), chart.title, chart.caption));
  } else if (plot.terminal) {
    report.spoken.note = drawing_of(chart, style, options.command_line()) + wrapped(chart.caption) + '\n';
    report.is_drawn = true;
  } else {
    report.spoken = said(visible(chart.title), visible(chart.caption),
                         chart_text(chart) + fmt::format("\nTo draw it: specdec plot {0} --output {0}.svg, .png or "
                                                         ".pdf, or --terminal.\n",
                                                         chart.name));
  }
  take_notes(std::move(chart), report);
  return report;
}

Command command_of(const FigureKind& kind) {
  const auto set_up = kind.set_up;
  return {.name = "plot " + kind.name,
          .summary = kind.summary,
          .tables = {{"data", "/data"}},
          .setup =
              [set_up](Options& options) {
                const std::function<Chart()> make_chart = set_up(options);
                const auto plot = std::make_shared<PlotOptions>();
                plot->declare(options);
                return std::function<Report()>(
                    [make_chart, plot, &options] { return plot_figure(make_chart, *plot, options); });
              },
          .schema = "plot figure"};
}

Report list_figures() {
  Report report;
  ordered_json& rows = report.json["figures"] = ordered_json::array();
  for (const FigureList& list : all_figures()) {
    for (const FigureKind& kind : list.figures)
      rows.push_back({{"name", kind.name}, {"about", list.about}, {"summary", kind.summary}});
  }
  rows.push_back({{"name", steps_figure_name}, {"about", "paper"}, {"summary", steps_figure_summary}});
  const auto column_of = [](std::string heading, const char* key) {
    return Column<ordered_json>{
        std::move(heading), {Align::left}, [key](const ordered_json& row) { return row[key].get<std::string>(); }};
  };
  const Table table =
      make_table(rows, {column_of("figure", "name"), column_of("about", "about"), column_of("shows", "summary")});
  report.spoken = said("Draw a figure by specdec plot FIGURE --output FILE.svg, .png or .pdf, or --terminal.",
                       "Without --output you get its data.", '\n' + text_of(table));
  return report;
}

Command list_of_figures_command() {
  return {.name = "plot",
          .summary = "Figures of what the other commands compute",
          .tables = {{"figures", "/figures"}},
          .setup = [](Options&) { return std::function<Report()>(list_figures); }};
}

}  // namespace

std::vector<Command> plot_commands() {
  std::vector<Command> commands = {list_of_figures_command()};
  for (const FigureList& list : all_figures()) {
    for (const FigureKind& kind : list.figures) commands.push_back(command_of(kind));
  }
  commands.push_back(plot_steps_command());
  return commands;
}

}  // namespace specdec::cli
