#include "render/page/answer_page.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <string_view>

#include "render/page/html.hpp"
#include "render/page/page_files.hpp"
#include "render/text.hpp"

namespace specdec::render {

namespace {

using nlohmann::ordered_json;

constexpr std::string_view missing = "-";

/// Gammas shown behind the best one.
constexpr std::int64_t gammas_behind = 6;

std::string text_of_value(const ordered_json& value) {
  if (value.is_null()) return std::string(missing);
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
  if (value.is_number_float()) return brief(value.get<double>(), 6);
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const ordered_json& item : value) text += (text.empty() ? "" : ", ") + text_of_value(item);
  return text;
}

std::string number_cell(const ordered_json& value) {
  if (value.is_number_integer()) return value.dump();
  return value.is_number() ? in_column(value.get<double>()) : text_of_value(value);
}

/// A mean batch need not be whole.
std::string count_cell(const ordered_json& value) {
  if (!value.is_number()) return std::string(missing);
  return brief(value.get<double>(), 5);
}

std::string percent_cell(const ordered_json& value) {
  return value.is_number() ? percent(value.get<double>()) : std::string(missing);
}

std::string milliseconds_cell(const ordered_json& seconds) {
  return seconds.is_number() ? brief(1000 * seconds.get<double>()) : std::string(missing);
}

std::string interval_cell(const ordered_json& interval) {
  if (!interval.is_array() || interval.size() != 2 || interval[0] == interval[1]) return std::string(missing);
  return fmt::format("{} to {}", number_cell(interval[0]), number_cell(interval[1]));
}

/// A value within nested objects; null where one of them is missing or null.
ordered_json within(const ordered_json& object, std::initializer_list<const char*> path) {
  const ordered_json* at = &object;
  for (const char* key : path) {
    if (!at->is_object() || !at->contains(key)) return nullptr;
    at = &(*at)[key];
  }
  return *at;
}

bool holds_rows(const ordered_json& document, const char* key) {
  return document.contains(key) && document[key].is_array() && !document[key].empty();
}

std::string paragraphs(const std::vector<std::string>& words) {
  std::string html;
  for (const std::string& paragraph : words) html += fmt::format("<p>{}</p>\n", escaped(paragraph));
  return html;
}

// --------------------------------------------------------------------------------------------------------- numbers

/// Heading of the intervals of drafts: ranges where they hold no sampling error of the acceptance.
template <class IsMeant>
std::string interval_heading(const ordered_json& plan, const IsMeant& is_meant) {
  bool lacks = false, holds = false;
  for (const ordered_json& draft : plan["drafts"]) {
    if (!is_meant(draft)) continue;
    (within(draft, {"acceptance", "lacks_sampling_error"}) == true ? lacks : holds) = true;
  }
  return !lacks ? "95% interval" : holds ? "95% interval or range" : "Range";
}

/// Heading for the draft whose points are shown: the recommended one, else the first.
std::string shown_interval_heading(const ordered_json& plan) {
  const ordered_json& recommended = plan["recommended_draft"];
  const ordered_json shown = recommended.is_null() ? within(plan["drafts"].front(), {"name"}) : recommended;
  return interval_heading(plan, [&](const ordered_json& draft) { return draft["name"] == shown; });
}

std::string points_table(const ordered_json& plan) {
  if (!holds_rows(plan, "points")) return "";
  const ordered_json& points = plan["points"];
  const bool seconds = std::any_of(points.begin(), points.end(), [](const ordered_json& point) {
    return !within(point, {"seconds_per_output_token"}).is_null();
  });
  // As long as nobody has said a context there is none to show.
  const bool contexts =
      std::any_of(points.begin(), points.end(), [](const ordered_json& point) { return point["context"] != 0; });
  std::vector<HtmlTable::Column> columns = {{"Batch"}};
  if (contexts) columns.push_back({"Context"});
  for (const std::string& heading : {std::string("Gamma"), std::string("Speedup"), shown_interval_heading(plan)})
    columns.push_back({heading});
  if (seconds) {
    for (const char* heading : {"ms/token", "ms/token, plain", "tokens/s", "tokens/s, plain"})
      columns.push_back({heading});
  }
  columns.push_back({"Verdict", false});
  HtmlTable table("Best gamma at each batch and context", std::move(columns));
  for (const ordered_json& point : points) {
    std::vector<std::string> cells = {count_cell(point["batch"])};
    if (contexts) cells.push_back(count_cell(point["context"]));
    cells.push_back(number_cell(point["optimal"]["gamma"]));
    cells.push_back(number_cell(point["optimal"]["speedup"]));
    cells.push_back(interval_cell(within(point, {"optimal", "speedup_estimate", "ci95"})));
    if (seconds) {
      cells.push_back(milliseconds_cell(within(point, {"seconds_per_output_token", "speculative"})));
      cells.push_back(milliseconds_cell(within(point, {"seconds_per_output_token", "baseline"})));
      cells.push_back(count_cell(within(point, {"output_tokens_per_second", "speculative"})));
      cells.push_back(count_cell(within(point, {"output_tokens_per_second", "baseline"})));
    }
    cells.push_back(text_of_value(point["verdict"]));
    table.add_row(std::move(cells));
  }
  return table.to_string();
}

bool holds_gamma(const ordered_json& gammas, const ordered_json& gamma) {
  return std::find(gammas.begin(), gammas.end(), gamma) != gammas.end();
}

/// "near-best, in use, extrapolated": what the lists of a plan say of a gamma, or of a point.
/// @param best  first word, if any
std::string said_of_gamma(std::string_view best, const ordered_json& plan_or_point, const ordered_json& row) {
  std::string words(best);
  const auto add = [&](std::string_view word) { words += fmt::format("{}{}", words.empty() ? "" : ", ", word); };
  if (best.empty() && holds_gamma(plan_or_point["near_optimal_gammas"], row["gamma"])) add("near-best");
  if (within(plan_or_point, {"deployed", "gamma"}) == row["gamma"]) add("in use");
  if (row["extrapolated"] == true) add("extrapolated");
  return words;
}

/// Every gamma of the closed forms.
std::string closed_form_table(const ordered_json& plan) {
  const ordered_json best = within(plan, {"recommended", "gamma"});
  const auto any = [&](const char* key) {
    return std::any_of(plan["rows"].begin(), plan["rows"].end(), [&](const auto& row) { return !row[key].is_null(); });
  };
  const bool finite = any("finite_speedup"), regret = any("worst_regret"), range = any("speedup_interval");
  std::vector<HtmlTable::Column> columns = {{"Gamma"}, {"Tokens per step"}, {"Speedup"}};
  if (range) columns.push_back({"Speedup, range"});
  for (const char* heading : {"Operations factor", "Memory access factor"}) columns.push_back({heading});
  if (finite) columns.push_back({"Speedup, finite"});
  if (regret) columns.push_back({"Largest regret"});
  columns.push_back({"", false});
  const ordered_json fastest = within(plan, {"optimal", "gamma"});
  HtmlTable table("Every gamma; the recommended one is marked", std::move(columns));
  for (const ordered_json& row : plan["rows"]) {
    std::vector<std::string> cells = {number_cell(row["gamma"]), number_cell(row["expected_tokens"]),
                                      number_cell(row["speedup"])};
    if (range) cells.push_back(interval_cell(row["speedup_interval"]));
    for (const char* factor : {"operations_factor", "memory_access_factor"}) cells.push_back(number_cell(row[factor]));
    if (finite) cells.push_back(number_cell(row["finite_speedup"]));
    if (regret) cells.push_back(percent_cell(row["worst_regret"]));
    const bool is_fastest = row["gamma"] == fastest;
    const bool is_best = row["gamma"] == best;
    cells.push_back(said_of_gamma(is_fastest ? "best" : is_best ? "recommended" : "", plan, row));
    table.add_row(std::move(cells), is_best);
  }
  return table.to_string();
}

/// Every gamma at one batch and context, as far as they matter.
std::string gammas_table(const ordered_json& point, const std::string& interval) {
  if (point["rows"].empty()) return "";
  const std::int64_t best = point["optimal"]["gamma"].is_null() ? -1 : point["optimal"]["gamma"].get<std::int64_t>();
  const bool bound =
      std::any_of(point["rows"].begin(), point["rows"].end(), [](const auto& row) { return !row["bound"].is_null(); });
  const bool seconds = !point["rows"][0]["round_seconds"].is_null();
  std::vector<HtmlTable::Column> columns = {{"Gamma"},   {"Tokens per step"}, {seconds ? "Round, ms" : "Round, steps"},
                                            {"Speedup"}, {interval},          {"Regret"}};
  if (bound) columns.push_back({"Bound", false});
  columns.push_back({"", false});
  HtmlTable table(fmt::format("Every gamma at {}; the best one is marked",
                              point_words(point["batch"].get<double>(), point["context"].get<double>())),
                  std::move(columns));
  for (const ordered_json& row : point["rows"]) {
    const std::int64_t gamma = row["gamma"].get<std::int64_t>();
    if (gamma > std::max<std::int64_t>(best + gammas_behind, 8)) break;
    std::vector<std::string> cells = {
        number_cell(row["gamma"]),
        number_cell(row["tokens_per_step"]),
        seconds ? milliseconds_cell(row["round_seconds"]) : number_cell(row["round_steps"]),
        number_cell(row["speedup"]),
        interval_cell(row["speedup_ci95"]),
        percent_cell(row["regret"])};
    if (bound) cells.push_back(text_of_value(row["bound"]));
    const bool is_fastest = row["regret"] == 0.0;
    cells.push_back(said_of_gamma(gamma == best             ? (is_fastest ? "best" : "recommended")
                                  : is_fastest && best >= 0 ? "fastest"
                                                            : "",
                                  point, row));
    table.add_row(std::move(cells), gamma == best);
  }
  return table.to_string();
}

std::string said_of_basis(const std::string& basis, const ordered_json& plan) {
  if (basis == "not_priced") return "no price tells whether drafts pay";
  if (basis == "extrapolated") {
    return within(plan, {"inputs", "extrapolate"}) == true ? "extrapolated" : "extrapolated, not decided";
  }
  return "";
}

std::string schedule_table(const ordered_json& plan) {
  if (!holds_rows(plan, "schedule") || plan["points"].size() < 2) return "";
  HtmlTable table("Schedule: gamma by batch",
                  {{"From batch"}, {"To batch"}, {"Gamma"}, {"Verdict", false}, {"", false}});
  for (const ordered_json& stretch : plan["schedule"]) {
    table.add_row({number_cell(stretch["batch_low"]), number_cell(stretch["batch_high"]), number_cell(stretch["gamma"]),
                   text_of_value(stretch["verdict"]), said_of_basis(stretch["basis"].get<std::string>(), plan)});
  }
  return table.to_string();
}

std::string drafts_table(const ordered_json& plan) {
  if (!holds_rows(plan, "drafts") || plan["drafts"].size() < 2) return "";
  const std::string interval = interval_heading(plan, [](const ordered_json&) { return true; });
  HtmlTable table(
      "Drafts", {{"Draft", false}, {"Acceptance", false}, {"Batch"}, {"Context"}, {"Gamma"}, {"Speedup"}, {interval}});
  for (const ordered_json& draft : plan["drafts"]) {
    for (const ordered_json& point : draft["points"]) {
      table.add_row({text_of_value(draft["name"]), text_of_value(within(draft, {"acceptance", "source"})),
                     count_cell(point["batch"]), count_cell(point["context"]), number_cell(point["gamma"]),
                     number_cell(within(point, {"speedup_estimate", "value"})),
                     interval_cell(within(point, {"speedup_estimate", "ci95"}))},
                    point["best"].get<bool>());
    }
  }
  return table.to_string();
}

std::string numbers_section(const ordered_json& plan) {
  const bool closed = holds_rows(plan, "rows") && !plan["rows"][0]["operations_factor"].is_null();
  if (closed) return closed_form_table(plan);
  std::string html = points_table(plan) + schedule_table(plan) + drafts_table(plan);
  if (holds_rows(plan, "points")) {
    const bool one = plan["points"].size() == 1;
    std::string tables;
    const std::string interval = shown_interval_heading(plan);
    for (const ordered_json& point : plan["points"]) tables += gammas_table(point, interval);
    html +=
        one ? tables : fmt::format("<details><summary>Every gamma at every point</summary>\n{}</details>\n", tables);
  }
  return html;
}

/// The columns that some row has a value for.
std::string table_of_rows(const PageTable& table) {
  std::vector<HtmlTable::Column> columns;
  for (const ordered_json& row : table.rows) {
    for (const auto& [key, value] : row.items()) {
      const auto same = [name = key](const HtmlTable::Column& column) { return column.heading == name; };
      const auto known = std::find_if(columns.begin(), columns.end(), same);
      if (known != columns.end()) {
        known->is_number = known->is_number && (value.is_number() || value.is_null());
      } else if (!value.is_null()) {
        columns.push_back({key, value.is_number()});
      }
    }
  }
  HtmlTable html(table.caption, columns);
  for (const ordered_json& row : table.rows) {
    std::vector<std::string> cells;
    for (const HtmlTable::Column& column : columns)
      cells.push_back(number_cell(row.value(column.heading, ordered_json())));
    html.add_row(std::move(cells));
  }
  return html.is_empty() ? "" : html.to_string();
}

/// Lines as they are.
std::string preformatted(std::string_view text) {
  std::string html = "<pre><code>";
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    html += escaped(text.substr(at, end - at)) + '\n';
    at = end + 1;
  }
  return html + "</code></pre>\n";
}

std::string printed_section(const AnswerPage& page) {
  std::string html = preformatted(page.text);
  for (const PageTable& table : page.tables) {
    const std::string rows = table_of_rows(table);
    if (!rows.empty())
      html += fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(table.caption), rows);
  }
  return html;
}

std::string next_section(const ordered_json& plan) {
  std::string html;
  if (!holds_rows(plan, "points")) return html;
  for (const ordered_json& point : plan["points"]) {
    const ordered_json next = within(point, {"next_measurement"});
    if (next.is_null()) continue;
    html += fmt::format(
        "<p>To tell at {}, where most of the uncertainty is that of {}: run the server with "
        "gamma {}{}, and</p>\n<pre><code>{}</code></pre>\n",
        escaped(point_words(point["batch"].get<double>(), point["context"].get<double>())),
        escaped(point["dominant_source"].is_null() ? "the cost" : text_of_value(point["dominant_source"])),
        escaped(number_cell(next["gamma"])), next["with_baseline"].get<bool>() ? ", and once without speculation" : "",
        escaped(text_of_value(next["command"])));
  }
  return html;
}

// -------------------------------------------------------------------------------------------------------- back-test

std::string signed_percent(const ordered_json& share) {
  return share.is_number() ? fmt::format("{:+.1f}%", 100 * share.get<double>()) : std::string(missing);
}

std::string backtest_section(const ordered_json& plan) {
  std::string html;
  if (holds_rows(plan, "runs")) {
    const ordered_json median = within(plan, {"bench", "leave_one_out_error"});
    html += "<p>Each run's time per output token is predicted from all other runs";
    html += median.is_null() ? ".</p>\n" : fmt::format("; the median error is {}.</p>\n", percent_cell(median));
    HtmlTable table("Benchmark runs", {{"File", false},
                                       {"Concurrency"},
                                       {"Batch"},
                                       {"Gamma"},
                                       {"Tokens per step"},
                                       {"ms/token"},
                                       {"predicted"},
                                       {"Error"},
                                       {"Measured speedup"}});
    for (const ordered_json& run : plan["runs"]) {
      table.add_row({text_of_value(run["file"]), count_cell(run["max_concurrency"]), count_cell(run["batch"]),
                     number_cell(run["gamma"]), number_cell(run["tokens_per_step"]),
                     milliseconds_cell(run["seconds_per_output_token"]),
                     milliseconds_cell(run["predicted_seconds_per_output_token"]),
                     signed_percent(run["prediction_error"]), number_cell(within(run, {"measured_speedup", "value"}))});
    }
    html += table.to_string();
  }
  if (holds_rows(plan, "backtest")) {
    HtmlTable table("Runs held out: used for nothing but this comparison",
                    {{"File", false}, {"Predicted, ms/token"}, {"Measured, ms/token"}, {"Error"}, {"", false}});
    for (const ordered_json& held : plan["backtest"]) {
      table.add_row({text_of_value(held["file"]), milliseconds_cell(held["predicted"]),
                     milliseconds_cell(held["measured"]), signed_percent(held["relative_error"]),
                     held["reason"].is_null() ? "" : text_of_value(held["reason"])});
    }
    html += table.to_string();
  }
  return html;
}

// -------------------------------------------------------------------------------------------------------- recording

std::string estimate_cell(const ordered_json& estimate) {
  if (!estimate.is_object() || within(estimate, {"value"}).is_null()) {
    const ordered_json bounds = estimate.is_object() ? within(estimate, {"bounds"}) : ordered_json();
    return interval_cell(bounds);
  }
  const ordered_json ci = within(estimate, {"ci95"});
  const std::string value = number_cell(estimate["value"]);
  return ci.is_null() ? value : fmt::format("{} ({})", value, interval_cell(ci));
}

std::string recording_section(const ordered_json& analysis, const std::vector<std::string>& words) {
  if (analysis.is_null()) return "";
  std::string html = paragraphs(words);
  if (holds_rows(analysis, "tasks")) {
    HtmlTable table("Acceptance by task, with 95% intervals",
                    {{"Task", false}, {"Positions"}, {"Sequences"}, {"Alpha"}, {"Alpha from the emitted tokens"}});
    for (const ordered_json& task : analysis["tasks"]) {
      table.add_row({text_of_value(task["task"]), number_cell(task["positions"]), number_cell(task["sequences"]),
                     estimate_cell(within(task, {"alpha"})), estimate_cell(within(task, {"alpha_emitted"}))});
    }
    html += table.to_string();
  }
  if (holds_rows(analysis, "lenience")) {
    HtmlTable table(
        "Lenience: what acceptance costs in fidelity",
        {{"Lenience"}, {"Alpha"}, {"Total variation, residual kept"}, {"Total variation, residual scaled"}});
    for (const ordered_json& row : analysis["lenience"]) {
      table.add_row({number_cell(row["lenience"]), number_cell(row["alpha"]), number_cell(row["tv_keep_residual"]),
                     number_cell(row["tv_scaled_residual"])});
    }
    html += table.to_string();
  }
  return html;
}

// --------------------------------------------------------------------------------------------------- what it rests on

std::string config_section(const ordered_json& plan) {
  const ordered_json config = within(plan, {"config"});
  if (config.is_null()) return "";
  std::string html;
  for (const ordered_json& variant : config["variants"]) {
    html += fmt::format("<h3>{}</h3>\n<pre><code>{}</code></pre>\n", escaped(text_of_value(variant["releases"])),
                        escaped(text_of_value(variant["command"])));
    const std::string text = text_of_value(variant["text"]);
    if (text.empty()) continue;
    const ordered_json file = within(plan, {"inputs", "emit_file"});
    html += fmt::format("<p>{}:</p>\n", file.is_string() ? escaped(file.get<std::string>()) : "FILE");
    html += preformatted(text);
  }
  for (const ordered_json& note : config["notes"])
    html += fmt::format("<p>Note: {}.</p>\n", escaped(text_of_value(note)));
  return html;
}

/// A message that goes on behind a colon elsewhere, as a sentence.
std::string sentence(std::string message) {
  if (!message.empty() && 'a' <= message[0] && message[0] <= 'z')
    message[0] = static_cast<char>(message[0] - 'a' + 'A');
  return message + '.';
}

std::string warnings_list(const ordered_json& plan) {
  std::string items;
  for (const ordered_json& warning : plan["warnings"]) {
    items += fmt::format("<li>{} <code>{}</code></li>\n", escaped(sentence(text_of_value(warning["message"]))),
                         escaped(text_of_value(warning["code"])));
  }
  return items.empty() ? "" : fmt::format("<div class=\"warnings\"><h3>Warnings</h3>\n<ul>\n{}</ul></div>\n", items);
}

std::string source_html(const std::string& source) {
  const bool is_address = source.starts_with("https://") || source.starts_with("http://");
  const bool is_plain = source.find_first_of(" \t\"<>") == std::string::npos;
  if (!is_address || !is_plain) return escaped(source);
  return fmt::format("<a href=\"{0}\" rel=\"noreferrer\">{0}</a>", escaped(source));
}

std::string inputs_section(const ordered_json& plan) {
  const ordered_json& inputs = plan["inputs"];
  std::string html;
  if (holds_rows(inputs, "files")) {
    HtmlTable table("Files", {{"File", false}, {"Bytes"}, {"Last changed", false}, {"SHA-256", false}});
    for (const ordered_json& file : inputs["files"]) {
      table.add_row({text_of_value(file["path"]), text_of_value(file["size_bytes"]), text_of_value(file["modified"]),
                     text_of_value(file["sha256"])});
    }
    html += table.to_string();
  }
  if (holds_rows(inputs, "presets")) {
    html += "<h3>Figures that come with the program, and where they were printed</h3>\n<ul>\n";
    for (const ordered_json& preset : inputs["presets"]) {
      std::string sources;
      for (const ordered_json& source : preset["sources"]) {
        sources += (sources.empty() ? ": " : ", ") + source_html(text_of_value(source));
      }
      html += fmt::format("<li>{} {}{}</li>\n", escaped(text_of_value(preset["kind"])),
                          escaped(text_of_value(preset["name"])), sources);
    }
    html += "</ul>\n";
  }
  HtmlTable assumptions("Assumptions", {{"What", false}, {"Value", false}, {"From", false}});
  for (const ordered_json& assumption : plan["assumptions"]) {
    assumptions.add_row(
        {text_of_value(assumption["name"]), text_of_value(assumption["value"]), text_of_value(assumption["source"])});
  }
  if (!assumptions.is_empty()) html += assumptions.to_string();
  HtmlTable options("Options in effect", {{"Option", false}, {"Value", false}});
  for (const auto& [key, value] : inputs.items()) {
    const bool is_empty = value.is_null() || (value.is_array() && value.empty());
    if (key == "files" || key == "presets" || key == "output" || is_empty) continue;
    options.add_row({key, text_of_value(value)});
  }
  return html + "<details><summary>Options in effect</summary>\n" + options.to_string() + "</details>\n";
}

struct PageSection {
  std::string id;
  std::string heading;
  std::string html;
};

/// Nothing is loaded and nothing runs but the page's own program, whatever a name on the page holds.
std::string policy(const std::optional<PageProgram>& program) {
  const std::string scripts =
      program ? escaped(fmt::format("script-src {} 'wasm-unsafe-eval'; ", program->allowed_by)) : std::string();
  return fmt::format(
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src &#39;none&#39;; {}style-src "
      "&#39;unsafe-inline&#39;; img-src data:\">\n",
      scripts);
}

std::string style() { return std::string(page_files().front().content); }

}  // namespace

std::string html_of(const AnswerPage& page) {
  std::vector<PageSection> sections;
  const auto add = [&](std::string id, std::string heading, std::string html) {
    if (!html.empty()) sections.push_back({std::move(id), std::move(heading), std::move(html)});
  };
  const bool is_plan = page.text.empty();
  if (is_plan) add("configuration", "Engine configuration", config_section(page.answer));
  if (page.program) add("planner", "Try other values", "<div id=\"planner-root\"></div>\n");
  std::string figures;
  for (const std::string& figure : page.figures) figures += figure;
  add("figures", "Figures", figures);
  add("numbers", "Numbers", is_plan ? numbers_section(page.answer) : printed_section(page));
  add("recording", "What the recording says", recording_section(page.analysis, page.analysis_words));
  if (is_plan) {
    add("back-test", "How well measured runs are predicted", backtest_section(page.answer));
    add("next", "What to measure next", next_section(page.answer));
  }
  add("inputs", "What this rests on", inputs_section(page.answer));
  if (!page.command.empty())
    add("again", "How to make this page again",
        fmt::format("<pre><code>{}</code></pre>\n<p>specdec {}.</p>\n", escaped(page.command), escaped(page.version)));

  std::string contents;
  for (const PageSection& section : sections) {
    contents += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", section.id, section.heading);
  }
  const std::string title = escaped("Speculative decoding: " + page.subject);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "{}<meta name=\"generator\" content=\"specdec {}\">\n<meta name=\"specdec-command\" content=\"{}\">\n"
      "<link rel=\"icon\" href=\"data:,\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n",
      policy(page.program), escaped(page.version), escaped(page.command), title, style());
  html += fmt::format(
      "<a class=\"skip\" href=\"#recommendation\">Skip to the {}</a>\n<header>\n<h1>{}</h1>\n"
      "<p class=\"about\">Made on {} by specdec {}</p>\n<nav aria-label=\"Sections\"><ul>\n{}</ul></nav>\n</header>\n"
      "<main>\n",
      is_plan ? "recommendation" : "answer", title, escaped(page.made_on), escaped(page.version), contents);
  html += fmt::format(
      "<section aria-labelledby=\"recommendation\">\n<h2 id=\"recommendation\">{}</h2>\n"
      "<div class=\"answer\">\n{}</div>\n{}</section>\n",
      is_plan ? "Recommendation" : "Answer", paragraphs(page.words), warnings_list(page.answer));
  for (const PageSection& section : sections) {
    html += fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n{2}</section>\n", section.id,
                        section.heading, section.html);
  }
  html += "</main>\n";
  if (page.program) {
    html += fmt::format("<script type=\"application/json\" id=\"specdec-charts\">{}</script>\n",
                        script_json(page.program->charts));
    html += fmt::format("<script type=\"application/json\" id=\"specdec-start\">{}</script>\n",
                        script_json(page.program->start));
    html += fmt::format("<script>{}</script>\n", page.program->script);
  }
  return html + "</body>\n</html>\n";
}

}  // namespace specdec::render
