#include "cli/commands.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/planning/published.hpp"
#include "analysis/planning/published_tables.hpp"
#include "cli/values.hpp"
#include "render/table.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;
using planning::Agreement;
using planning::Comparison;
using planning::RoundedNumber;

/// A figure that the paper prints.
struct PrintedFigure {
  /// Where, for people.
  std::string place;
  /// The row's members before and after those of the comparison.
  ordered_json inputs;
  Comparison comparison;
  ordered_json more = ordered_json::object();
};

/// One of the paper's tables of figures that follow from formulas.
struct PrintedTable {
  std::string name;
  /// Its place in JSON.
  std::string pointer;
  std::string heading;
  /// Headings of the text, and the row's member below each.
  std::vector<std::pair<std::string, std::string>> columns;
  std::vector<PrintedFigure> figures = {};
  std::string note = {};
  /// A note that the text alone has.
  std::string remark = {};
};

PrintedTable table_1() {
  PrintedTable table{"table1",
                     "/table1",
                     "Table 1: operations and speed, c = c_hat = 0.",
                     {{"alpha", "alpha"}, {"gamma", "gamma"}, {"quantity", "quantity"}}};
  for (const planning::Table1Row& row : planning::table_1()) {
    for (const auto& [quantity, comparison] : {std::pair{"operations", row.operations}, {"speed", row.speed}}) {
      table.figures.push_back({fmt::format("Table 1, {} at alpha {}, gamma {}", quantity, brief(row.alpha), row.gamma),
                               {{"alpha", row.alpha}, {"gamma", row.gamma}, {"quantity", quantity}},
                               comparison});
    }
  }
  return table;
}

PrintedTable table_4() {
  PrintedTable table{"table4",
                     "/table4",
                     "Table 4, column EXP: speedup by Theorem 3.8; 'best' is the optimal gamma for the printed inputs.",
                     {{"task", "task"},
                      {"draft", "draft_model"},
                      {"T", "temperature"},
                      {"gamma", "gamma"},
                      {"best", "best_gamma"},
                      {"alpha", "alpha"},
                      {"c", "c"}}};
  for (const planning::Table4Row& row : planning::table_4()) {
    table.figures.push_back(
        {fmt::format("Table 4, {} with {}, temperature {}", row.task, row.draft_model, row.temperature),
         {{"task", row.task},
          {"draft_model", row.draft_model},
          {"temperature", row.temperature},
          {"gamma", row.gamma},
          {"alpha", row.alpha},
          {"c", row.c}},
         row.speedup,
         {{"best_gamma", row.best_gamma}, {"best_speedup", row.best_speedup}}});
  }
  return table;
}

PrintedTable bigram() {
  const planning::BigramFigure figure = planning::bigram_figure();
  return {"bigram",
          "/bigram",
          "Section 3.6: speedup with a bigram model.",
          {{"alpha", "alpha"}, {"gamma", "gamma"}, {"c", "c"}},
          {{"Section 3.6, bigram",
            {{"alpha", figure.alpha}, {"gamma", figure.gamma}, {"c", figure.c}},
            figure.speedup,
            {{"limit", figure.limit}}}},
          {},
          fmt::format("the limit for large gamma is {}", brief(figure.limit))};
}

PrintedTable lenience(const std::string& kind, const std::vector<planning::LenienceRow>& rows, std::string note) {
  PrintedTable table{"lenience_" + kind,
                     "/lenience/" + kind,
                     fmt::format("Appendix A.5: speedup with {} lenience, T5-small.", kind),
                     {{"lenience", "lenience"}, {"alpha", "alpha"}, {"c", "c"}, {"gamma", "gamma"}}};
  for (const planning::LenienceRow& row : rows) {
    table.figures.push_back({fmt::format("Appendix A.5, lenience {}, {}", brief(row.lenience), kind),
                             {{"lenience", row.lenience},
                              {"alpha", row.alpha},
                              {"c", row.c},
                              {"printed_gamma", row.printed_gamma ? ordered_json(*row.printed_gamma) : ordered_json()},
                              {"gamma", row.gamma}},
                             row.speedup});
  }
  table.note = std::move(note);
  return table;
}

std::vector<PrintedTable> printed_tables() {
  return {table_1(), table_4(), bigram(),
          lenience("stochastic", planning::stochastic_lenience(),
                   "the paper prints no gamma here, so computed is the best over all gammas: no gamma reaches a figure "
                   "that cannot follow, and 5X is met only because it is printed to one digit"),
          lenience("argmax", planning::argmax_lenience(),
                   "the paper prints p(x) <= l max(p) as the condition of acceptance and must mean >=")};
}

std::string_view agreement_name(Agreement agreement) {
  constexpr std::array<std::string_view, 3> names = {"agrees at printed inputs",
                                                     "agrees within the rounding of the inputs", "cannot follow"};
  return names.at(static_cast<std::size_t>(agreement));
}

ordered_json row_of(const PrintedFigure& figure) {
  const Comparison& c = figure.comparison;
  ordered_json row = figure.inputs;
  row.update({{"printed", c.printed},
              {"computed", c.computed},
              {"computed_interval", {c.lowest, c.highest}},
              {"agrees", c.agrees()},
              {"agreement", agreement_name(c.agreement)}});
  row.update(figure.more);
  return row;
}

ordered_json json_of(const PrintedTable& table) {
  ordered_json json = ordered_json::object();
  if (!table.note.empty()) json["note"] = table.note;
  json["rows"] = ordered_json::array();
  for (const PrintedFigure& figure : table.figures) json["rows"].push_back(row_of(figure));
  return json;
}

std::string cell(const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? brief(value.get<double>()) : value.dump();
}

/// Columns, and behind them what was computed beside what was printed.
Table with_comparison(std::vector<Column<PrintedFigure>> columns, const std::vector<PrintedFigure>& figures) {
  constexpr std::array<const char*, 3> names = {"agrees", "agrees in range", "CANNOT FOLLOW"};
  columns.push_back({"printed", [](const PrintedFigure& figure) {
                       // With the digits that the paper prints.
                       const Comparison& c = figure.comparison;
                       return fmt::format("{:.{}f}", c.printed, std::lround(-std::log10(2 * c.half_unit)));
                     }});
  columns.push_back({"computed", [](const PrintedFigure& figure) { return fixed(figure.comparison.computed, 4); }});
  columns.push_back({"range", [](const PrintedFigure& figure) {
                       const Comparison& c = figure.comparison;
                       return c.lowest == c.highest ? "" : fmt::format("{:.3f} to {:.3f}", c.lowest, c.highest);
                     }});
  columns.push_back({"", {Align::left}, [names](const PrintedFigure& figure) {
                       return names.at(static_cast<std::size_t>(figure.comparison.agreement));
                     }});
  return make_table(figures, columns);
}

std::string section(std::string_view heading, const std::string& body, std::string_view note) {
  const std::string below = note.empty() ? "" : wrapped(fmt::format("Note: {}.", note), 2) + '\n';
  return fmt::format("{}\n{}{}", wrapped(heading), body, below);
}

std::string text_of(const PrintedTable& table) {
  std::vector<Column<PrintedFigure>> columns;
  const ordered_json first = row_of(table.figures.front());
  for (const auto& [heading, key] : table.columns) {
    columns.push_back({heading,
                       {first.at(key).is_string() ? Align::left : Align::right},
                       [key = key](const PrintedFigure& figure) { return cell(row_of(figure).at(key)); }});
  }
  return section(table.heading, render::text_of(with_comparison(std::move(columns), table.figures)),
                 table.note + table.remark);
}

// --------------------------------------------------------------------------------------------- measured speeds

constexpr char table_2_note[] =
    "v is the verify factor of a step's gamma + 1 tokens that would make formula and measurement equal, 1 + overhead "
    "likewise, c the draft cost and alpha the rate that would, each with the others as printed. v below 1 or c below "
    "0: no cost explains a speed above the formula's, only more tokens a step (drafts accepted in runs, a larger "
    "alpha) or a slower baseline do";

ordered_json interval(const RoundedNumber& number) { return {number.lowest, number.highest}; }

ordered_json setting(const planning::PublishedAcceptance& p) {
  return {{"name", p.name},
          {"task", p.task},
          {"target_model", p.target_model},
          {"draft_model", p.draft_model},
          {"temperature", p.temperature},
          {"lenience", p.lenience},
          {"alpha", p.alpha}};
}

ordered_json json_table_2(const std::vector<planning::Table2Row>& rows) {
  ordered_json list = ordered_json::array();
  for (const planning::Table2Row& row : rows) {
    ordered_json object = setting(*row.setting);
    object.update({{"gamma", row.setting->measured->gamma},
                   {"c", row.setting->measured->c},
                   {"measured", row.speed.printed},
                   {"expected_printed", row.setting->measured->expected},
                   {"computed", row.speed.computed},
                   {"computed_interval", {row.speed.lowest, row.speed.highest}},
                   {"relative_error", row.error.value},
                   {"relative_error_interval", interval(row.error)},
                   {"agrees", row.speed.agrees()},
                   {"verify_factor_needed", row.verify_factor.value},
                   {"verify_factor_needed_interval", interval(row.verify_factor)},
                   {"overhead_needed", row.verify_factor.value - 1},
                   {"verification_explains", row.verification_explains()},
                   {"c_needed", row.c.value},
                   {"c_needed_interval", interval(row.c)},
                   {"alpha_needed", number_or_null(row.alpha)}});
    list.push_back(std::move(object));
  }
  const planning::Table2Errors errors = planning::errors_of(rows);
  return {{"note", table_2_note},
          {"mean_relative_error", errors.mean},
          {"root_mean_square_relative_error", errors.root_mean_square},
          {"largest_relative_error", errors.largest},
          {"geometric_mean_ratio", errors.geometric_ratio},
          {"rows", list}};
}

std::string range(const RoundedNumber& number) {
  return fmt::format("{:.2f} to {:.2f}", number.lowest, number.highest);
}

std::string signed_percent(double share) { return fmt::format("{:+.0f}%", 100 * share); }

std::string text_table_2(const std::vector<planning::Table2Row>& rows) {
  const Table table =
      make_table(rows, {{"setting", {Align::left}, [](const auto& row) { return row.setting->name; }},
                        {"gamma", [](const auto& row) { return fmt::format("{}", row.setting->measured->gamma); }},
                        {"c", [](const auto& row) { return brief(row.setting->measured->c); }},
                        {"EMP", [](const auto& row) { return fixed(row.setting->measured->speed, 1); }},
                        {"EXP", [](const auto& row) { return fixed(row.setting->measured->expected, 1); }},
                        {"formula", [](const auto& row) { return fixed(row.speed.computed); }},
                        {"error", [](const auto& row) { return signed_percent(row.error.value); }},
                        {"needs v", [](const auto& row) { return fixed(row.verify_factor.value, 2); }},
                        {"range", [](const auto& row) { return range(row.verify_factor); }},
                        {"or c", [](const auto& row) { return fixed(row.c.value); }},
                        {"or alpha", [](const auto& row) { return fixed(row.alpha, 2); }}});
  const planning::Table2Errors errors = planning::errors_of(rows);
  const auto explained =
      std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.verification_explains(); });
  return text_of(table) +
         wrapped(fmt::format("Measured is {} of the formula in the geometric mean; errors {} in the mean, {:.0f}% in "
                             "the root mean square, {:.0f}% at most. In {} of {} rows some verify factor of at least 1 "
                             "explains the speed.",
                             brief(errors.geometric_ratio, 3), signed_percent(errors.mean),
                             100 * errors.root_mean_square, 100 * errors.largest, explained, rows.size())) +
         '\n';
}

// ------------------------------------------------------------------------------------------------------ answer

std::vector<PrintedFigure> figures_of(const std::vector<PrintedTable>& tables) {
  std::vector<PrintedFigure> all;
  for (const PrintedTable& table : tables) all.insert(all.end(), table.figures.begin(), table.figures.end());
  return all;
}

std::int64_t count(const std::vector<PrintedFigure>& figures, Agreement agreement) {
  return std::count_if(figures.begin(), figures.end(),
                       [&](const PrintedFigure& figure) { return figure.comparison.agreement == agreement; });
}

Spoken reproduced(std::vector<PrintedFigure> figures) {
  const auto all = std::ssize(figures);
  const std::int64_t wrong = count(figures, Agreement::cannot_follow);
  Spoken answer = said(
      fmt::format("{} of {} printed figures follow from the paper's formulas; {} cannot.", all - wrong, all, wrong),
      fmt::format("{} agree at the printed inputs, {} within the rounding of the inputs.",
                  count(figures, Agreement::at_printed_inputs), count(figures, Agreement::within_input_rounding)));
  std::erase_if(figures, [](const PrintedFigure& figure) { return figure.comparison.agrees(); });
  answer.table = with_comparison({{"figure", {Align::left}, &PrintedFigure::place}}, figures);
  answer.note = "\nOne table of the paper: specdec reproduce --table NAME; all: --explain.\n";
  return answer;
}

Report run_reproduce() {
  const std::vector<PrintedTable> tables = printed_tables();
  const std::vector<planning::Table2Row> measured = planning::table_2();
  const std::vector<PrintedFigure> figures = figures_of(tables);
  Report report;
  report.json["summary"] = {{"agrees_at_printed_inputs", count(figures, Agreement::at_printed_inputs)},
                            {"agrees_within_input_rounding", count(figures, Agreement::within_input_rounding)},
                            {"cannot_follow", count(figures, Agreement::cannot_follow)}};
  report.assumptions = {{"acceptances", "independent", "default"},
                        {"alpha_half_unit", 0.005, "default"},
                        {"c_half_unit", "0.005 (Table 4), 0.0005 (A.5)", "default"}};
  report.spoken = reproduced(figures);
  const auto add = [&report](const std::string& name, const std::string& pointer, ordered_json json,
                             const std::string& text) {
    report.json[ordered_json::json_pointer(pointer)] = std::move(json);
    report.spoken.more += '\n' + text;
    report.text_of_table[name] = text;
  };
  for (const PrintedTable& table : tables) add(table.name, table.pointer, json_of(table), text_of(table));
  add("table2", "/table2", json_table_2(measured),
      section("Table 2: speeds measured (EMP) beside Table 4's expectation (EXP) and Theorem 3.8.",
              text_table_2(measured), table_2_note));
  return report;
}

}  // namespace

Command reproduce_command() {
  return {"reproduce",
          "The paper's printed figures, and what its formulas give",
          {{"table1", "/table1/rows"},
           {"table4", "/table4/rows"},
           {"bigram", "/bigram/rows"},
           {"lenience_stochastic", "/lenience/stochastic/rows"},
           {"lenience_argmax", "/lenience/argmax/rows"},
           {"table2", "/table2/rows"}},
          [](Options& options) {
            options.footer(
                "Examples:\n  specdec reproduce --table table2\n  specdec reproduce --format csv --table table4");
            return std::function<Report()>(run_reproduce);
          },
          false,
          {},
          true};
}

}  // namespace specdec::cli
