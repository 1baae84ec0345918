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

bool holds_rows(const ordered_json& document, const char* key) {
  return document.contains(key) && document[key].is_array() && !document[key].empty();
}

/// A table that is shown where it is asked for; empty if it has no rows.
std::string disclosed(const Table& table) {
  if (table.rows.empty()) return "";
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(table.caption), html_of(table));
}

std::string printed_section(const AnswerPage& page) {
  std::string html = preformatted(page.text);
  for (const Table& table : page.tables) html += disclosed(table);
  return html;
}

std::string warnings_list(const std::vector<Note>& warnings) {
  std::string items;
  for (const Note& warning : warnings) {
    // Elsewhere the message goes on behind a colon.
    items +=
        fmt::format("<li>{}. <code>{}</code></li>\n", escaped(capitalised(warning.message)), escaped(warning.code));
  }
  return items.empty() ? "" : fmt::format("<div class=\"warnings\"><h3>Warnings</h3>\n<ul>\n{}</ul></div>\n", items);
}

std::string source_html(const std::string& source) {
  const bool is_address = source.starts_with("https://") || source.starts_with("http://");
  const bool is_plain = source.find_first_of(" \t\"<>") == std::string::npos;
  if (!is_address || !is_plain) return escaped(source);
  return fmt::format("<a href=\"{0}\" rel=\"noreferrer\">{0}</a>", escaped(source));
}

Table files_table(const ordered_json& files) {
  const auto column = [](const char* heading, const char* key, Align align = Align::left) {
    return Column<ordered_json>(heading, {align},
                                [key](const ordered_json& file) { return text_of_value(file.at(key)); });
  };
  return make_table(files,
                    {column("file", "path"), column("bytes", "size_bytes", Align::right),
                     column("last changed", "modified"), column("SHA-256", "sha256")},
                    "Files");
}

std::string presets_list(const ordered_json& presets) {
  std::string html = "<h3>Figures that come with the program, and where they were printed</h3>\n<ul>\n";
  for (const ordered_json& preset : presets) {
    std::string sources;
    for (const ordered_json& source : preset["sources"]) {
      sources += (sources.empty() ? ": " : ", ") + source_html(text_of_value(source));
    }
    html += fmt::format("<li>{} {}{}</li>\n", escaped(text_of_value(preset["kind"])),
                        escaped(text_of_value(preset["name"])), sources);
  }
  return html + "</ul>\n";
}

Table options_table(const ordered_json& inputs) {
  using Option = std::pair<std::string, ordered_json>;
  std::vector<Option> options;
  for (const auto& [key, value] : inputs.items()) {
    const bool is_empty = value.is_null() || (value.is_array() && value.empty());
    if (key != "files" && key != "presets" && key != "output" && !is_empty) options.emplace_back(key, value);
  }
  return make_table(options,
                    {{"option", {Align::left}, &Option::first},
                     {"value", {Align::left}, [](const auto& option) { return text_of_value(option.second); }}},
                    "Options in effect");
}

std::string inputs_section(const AnswerPage& page) {
  using planner::Assumption;
  const ordered_json& inputs = page.inputs;
  std::string html;
  if (holds_rows(inputs, "files")) html += html_of(files_table(inputs["files"]));
  if (holds_rows(inputs, "presets")) html += presets_list(inputs["presets"]);
  html += html_of(make_table(page.assumptions,
                             {{"what", {Align::left}, &Assumption::name},
                              {"value", {Align::left}, [](const auto& one) { return text_of_value(one.value); }},
                              {"from", {Align::left}, &Assumption::source}},
                             "Assumptions"));
  return html + disclosed(options_table(inputs));
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

Table table_of_rows(const std::string& caption, const ordered_json& rows) {
  struct Key {
    std::string name;
    bool is_number;
  };
  std::vector<Key> keys;
  for (const ordered_json& row : rows) {
    for (const auto& [name, value] : row.items()) {
      const auto known =
          std::find_if(keys.begin(), keys.end(), [&name = name](const Key& key) { return key.name == name; });
      if (known != keys.end()) {
        known->is_number = known->is_number && (value.is_number() || value.is_null());
      } else if (!value.is_null()) {
        keys.push_back({name, value.is_number()});
      }
    }
  }
  std::vector<Column<ordered_json>> columns;
  for (const Key& key : keys) {
    columns.push_back({key.name,
                       {.align = key.is_number ? Align::right : Align::left, .title = key.name},
                       [name = key.name](const auto& row) { return number_cell(row.value(name, ordered_json())); }});
  }
  return make_table(rows, columns, caption);
}

std::string html_of(const AnswerPage& page) {
  std::vector<PageSection> sections;
  const auto add = [&](std::string id, std::string heading, std::string html) {
    if (!html.empty()) sections.push_back({std::move(id), std::move(heading), std::move(html)});
  };
  if (page.plan) add("configuration", "Engine configuration", page.plan->configuration);
  if (page.program) add("planner", "Try other values", "<div id=\"planner-root\"></div>\n");
  std::string figures;
  for (const std::string& figure : page.figures) figures += figure;
  add("figures", "Figures", figures);
  add("numbers", "Numbers", page.plan ? page.plan->numbers : printed_section(page));
  add("recording", "What the recording says", page.recording);
  if (page.plan) {
    add("back-test", "How well measured runs are predicted", page.plan->backtest);
    add("next", "What to measure next", page.plan->next);
  }
  add("inputs", "What this rests on", inputs_section(page));
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
      page.plan ? "recommendation" : "answer", title, escaped(page.made_on), escaped(page.version), contents);
  html += fmt::format(
      "<section aria-labelledby=\"recommendation\">\n<h2 id=\"recommendation\">{}</h2>\n"
      "<div class=\"answer\">\n{}</div>\n{}</section>\n",
      page.plan ? "Recommendation" : "Answer", paragraphs(page.words), warnings_list(page.warnings));
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
