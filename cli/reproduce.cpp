#include "cli/reproduce.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "analysis/planning/published.hpp"
#include "cli/reproduce_tables.hpp"
#include "render/table.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;
using planning::Agreement;
using planning::Comparison;

/// Everything that is recomputed.
struct Reproduction {
  std::vector<planning::Table1Row> table_1 = planning::table_1();
  std::vector<planning::Table4Row> table_4 = planning::table_4();
  planning::BigramFigure bigram = planning::bigram_figure();
  std::vector<planning::LenienceRow> stochastic = planning::stochastic_lenience();
  std::vector<planning::LenienceRow> argmax = planning::argmax_lenience();

  std::vector<Comparison> comparisons() const {
    std::vector<Comparison> all;
    for (const auto& row : table_1) all.insert(all.end(), {row.operations, row.speed});
    for (const auto& row : table_4) all.push_back(row.speedup);
    all.push_back(bigram.speedup);
    for (const auto& row : stochastic) all.push_back(row.speedup);
    for (const auto& row : argmax) all.push_back(row.speedup);
    return all;
  }

  std::int64_t count(Agreement agreement) const {
    const std::vector<Comparison> all = comparisons();
    return std::count_if(all.begin(), all.end(), [&](const Comparison& c) { return c.agreement == agreement; });
  }
};

constexpr char stochastic_note[] =
    "the paper prints no gamma here, so computed is the best over all gammas: no gamma reaches a figure that cannot "
    "follow, and 5X is met only because it is printed to one digit";
constexpr char argmax_note[] = "the paper prints p(x) <= l max(p) as the condition of acceptance and must mean >=";

std::string_view agreement_name(Agreement agreement) {
  constexpr std::array<std::string_view, 3> names = {"agrees at printed inputs",
                                                     "agrees within the rounding of the inputs", "cannot follow"};
  return names.at(static_cast<std::size_t>(agreement));
}

// ---------------------------------------------------------------------------------------------------------- JSON

void put_comparison(ordered_json& row, const Comparison& c) {
  row["printed"] = c.printed;
  row["computed"] = c.computed;
  row["computed_interval"] = {c.lowest, c.highest};
  row["agrees"] = c.agrees();
  row["agreement"] = agreement_name(c.agreement);
}

ordered_json json_table_1(const std::vector<planning::Table1Row>& rows) {
  ordered_json list = ordered_json::array();
  for (const auto& row : rows) {
    for (const auto& [quantity, comparison] : {std::pair{"operations", row.operations}, {"speed", row.speed}}) {
      ordered_json object = {{"alpha", row.alpha}, {"gamma", row.gamma}, {"quantity", quantity}};
      put_comparison(object, comparison);
      list.push_back(std::move(object));
    }
  }
  return {{"rows", list}};
}

ordered_json json_table_4(const std::vector<planning::Table4Row>& rows) {
  ordered_json list = ordered_json::array();
  for (const auto& row : rows) {
    ordered_json object = {{"task", row.task},
                           {"draft_model", row.draft_model},
                           {"temperature", row.temperature},
                           {"gamma", row.gamma},
                           {"alpha", row.alpha},
                           {"c", row.c}};
    put_comparison(object, row.speedup);
    object["best_gamma"] = row.best_gamma;
    object["best_speedup"] = row.best_speedup;
    list.push_back(std::move(object));
  }
  return {{"rows", list}};
}

ordered_json json_bigram(const planning::BigramFigure& figure) {
  ordered_json object = {{"alpha", figure.alpha}, {"gamma", figure.gamma}, {"c", figure.c}};
  put_comparison(object, figure.speedup);
  object["limit"] = figure.limit;
  return {{"rows", ordered_json::array({object})}};
}

ordered_json json_lenience(const std::vector<planning::LenienceRow>& rows, std::string_view note) {
  ordered_json list = ordered_json::array();
  for (const auto& row : rows) {
    ordered_json object = {{"lenience", row.lenience}, {"alpha", row.alpha}, {"c", row.c}};
    object["printed_gamma"] = row.printed_gamma ? ordered_json(*row.printed_gamma) : ordered_json();
    object["gamma"] = row.gamma;
    put_comparison(object, row.speedup);
    list.push_back(std::move(object));
  }
  return {{"note", note}, {"rows", list}};
}

ordered_json json_of(const Reproduction& r) {
  return {{"summary",
           {{"agrees_at_printed_inputs", r.count(Agreement::at_printed_inputs)},
            {"agrees_within_input_rounding", r.count(Agreement::within_input_rounding)},
            {"cannot_follow", r.count(Agreement::cannot_follow)}}},
          {"table1", json_table_1(r.table_1)},
          {"table4", json_table_4(r.table_4)},
          {"bigram", json_bigram(r.bigram)},
          {"lenience",
           {{"stochastic", json_lenience(r.stochastic, stochastic_note)},
            {"argmax", json_lenience(r.argmax, argmax_note)}}}};
}

// ---------------------------------------------------------------------------------------------------------- text

const char* short_name(Agreement agreement) {
  constexpr std::array<const char*, 3> names = {"agrees", "agrees in range", "CANNOT FOLLOW"};
  return names.at(static_cast<std::size_t>(agreement));
}

/// The printed figure with the digits that the paper prints.
std::string as_printed(const Comparison& c) {
  return fmt::format("{:.{}f}", c.printed, std::lround(-std::log10(2 * c.half_unit)));
}

/// Columns, and behind them what was computed beside what was printed.
/// @param comparison  the row's member
template <class Row>
std::vector<Column<Row>> with_comparison(std::vector<Column<Row>> columns, Comparison Row::*comparison) {
  columns.push_back({"printed", [=](const Row& row) { return as_printed(row.*comparison); }});
  columns.push_back({"computed", [=](const Row& row) { return fixed((row.*comparison).computed, 4); }});
  columns.push_back({"range", [=](const Row& row) {
                       const Comparison& c = row.*comparison;
                       return c.lowest == c.highest ? "" : fmt::format("{:.3f} to {:.3f}", c.lowest, c.highest);
                     }});
  columns.push_back({"", {Align::left}, [=](const Row& row) { return short_name((row.*comparison).agreement); }});
  return columns;
}

std::string text_table_1(const std::vector<planning::Table1Row>& rows) {
  struct Quantity {
    const planning::Table1Row& row;
    std::string name;
    Comparison comparison;
  };
  std::vector<Quantity> quantities;
  for (const auto& row : rows) {
    quantities.push_back({row, "operations", row.operations});
    quantities.push_back({row, "speed", row.speed});
  }
  return text_of(make_table(
      quantities, with_comparison<Quantity>({{"alpha", [](const auto& q) { return brief(q.row.alpha); }},
                                             {"gamma", [](const auto& q) { return fmt::format("{}", q.row.gamma); }},
                                             {"quantity", {Align::left}, &Quantity::name}},
                                            &Quantity::comparison)));
}

std::string text_table_4(const std::vector<planning::Table4Row>& rows) {
  return text_of(
      make_table(rows, with_comparison<planning::Table4Row>(
                           {{"task", {Align::left}, [](const auto& row) { return std::string(row.task); }},
                            {"draft", {Align::left}, [](const auto& row) { return std::string(row.draft_model); }},
                            {"T", [](const auto& row) { return fmt::format("{}", row.temperature); }},
                            {"gamma", [](const auto& row) { return fmt::format("{}", row.gamma); }},
                            {"best", [](const auto& row) { return fmt::format("{}", row.best_gamma); }},
                            {"alpha", [](const auto& row) { return brief(row.alpha); }},
                            {"c", [](const auto& row) { return brief(row.c); }}},
                           &planning::Table4Row::speedup)));
}

std::string text_lenience(const std::vector<planning::LenienceRow>& rows) {
  return text_of(make_table(rows, with_comparison<planning::LenienceRow>(
                                      {{"lenience", [](const auto& row) { return brief(row.lenience); }},
                                       {"alpha", [](const auto& row) { return brief(row.alpha); }},
                                       {"c", [](const auto& row) { return brief(row.c); }},
                                       {"gamma", [](const auto& row) { return fmt::format("{}", row.gamma); }}},
                                      &planning::LenienceRow::speedup)));
}

std::string text_bigram(const planning::BigramFigure& figure) {
  return text_of(make_table(
      std::vector{figure},
      with_comparison<planning::BigramFigure>({{"alpha", [](const auto& row) { return brief(row.alpha); }},
                                               {"gamma", [](const auto& row) { return fmt::format("{}", row.gamma); }},
                                               {"c", [](const auto& row) { return brief(row.c); }}},
                                              &planning::BigramFigure::speedup)));
}

/// A printed figure, with the place where the paper prints it.
struct PrintedFigure {
  std::string place;
  Comparison comparison;
};

std::vector<PrintedFigure> figures_that_cannot_follow(const Reproduction& r) {
  std::vector<PrintedFigure> figures;
  const auto add = [&](const std::string& place, const Comparison& comparison) {
    if (!comparison.agrees()) figures.push_back({place, comparison});
  };
  for (const auto& row : r.table_1) {
    add(fmt::format("Table 1, operations at alpha {}, gamma {}", brief(row.alpha), row.gamma), row.operations);
    add(fmt::format("Table 1, speed at alpha {}, gamma {}", brief(row.alpha), row.gamma), row.speed);
  }
  for (const auto& row : r.table_4)
    add(fmt::format("Table 4, {} with {}, temperature {}", row.task, row.draft_model, row.temperature), row.speedup);
  add("Section 3.6, bigram", r.bigram.speedup);
  for (const auto* rows : {&r.stochastic, &r.argmax})
    for (const planning::LenienceRow& row : *rows)
      add(fmt::format("Appendix A.5, lenience {}, {}", brief(row.lenience), rows == &r.argmax ? "argmax" : "stochastic"),
          row.speedup);
  return figures;
}

Spoken reproduced(const Reproduction& r) {
  const auto all = std::ssize(r.comparisons());
  const std::int64_t wrong = r.count(Agreement::cannot_follow);
  Spoken answer =
      said(fmt::format("{} of {} printed figures follow from the paper's formulas; {} cannot.", all - wrong, all, wrong),
           fmt::format("{} agree at the printed inputs, {} within the rounding of the inputs.",
                       r.count(Agreement::at_printed_inputs), r.count(Agreement::within_input_rounding)));
  answer.table = make_table(figures_that_cannot_follow(r),
                            with_comparison<PrintedFigure>({{"figure", {Align::left}, &PrintedFigure::place}},
                                                           &PrintedFigure::comparison));
  answer.note = "\nOne table of the paper: specdec reproduce --table NAME; all: --explain.\n";
  return answer;
}

std::vector<Section> sections_of(const Reproduction& r) {
  const auto section = [](std::string_view heading, const std::string& table, std::string_view note = "") {
    const std::string below = note.empty() ? "" : wrapped(fmt::format("Note: {}.", note), 2) + '\n';
    return fmt::format("\n{}\n{}{}", wrapped(heading), table, below);
  };
  return {
      {{"table1"}, section("Table 1: operations and speed, c = c_hat = 0.", text_table_1(r.table_1))},
      {{"table4"},
       section("Table 4, column EXP: speedup by Theorem 3.8; 'best' is the optimal gamma for the printed inputs.",
               text_table_4(r.table_4))},
      {{"bigram"},
       section("Section 3.6: speedup with a bigram model.", text_bigram(r.bigram),
               fmt::format("the limit for large gamma is {}", brief(r.bigram.limit)))},
      {{"lenience_stochastic"},
       section("Appendix A.5: speedup with stochastic lenience, T5-small.", text_lenience(r.stochastic),
               stochastic_note)},
      {{"lenience_argmax"},
       section("Appendix A.5: speedup with argmax lenience, T5-small.", text_lenience(r.argmax), argmax_note)}};
}

Report run_reproduce() {
  const Reproduction reproduction;
  const MeasuredTables measured;
  Report report;
  report.json = json_of(reproduction);
  put_tables(measured, report.json);
  report.assumptions = {{"acceptances", "independent", "default"},
                        {"alpha_half_unit", 0.005, "default"},
                        {"c_half_unit", "0.005 (Table 4), 0.0005 (A.5)", "default"}};
  report.spoken = reproduced(reproduction);
  for (const std::vector<Section>& sections : {sections_of(reproduction), sections_of(measured)}) {
    for (const Section& section : sections) {
      report.spoken.more += section.text;
      for (const std::string& table : section.tables) report.text_of_table[table] = section.text.substr(1);
    }
  }
  return report;
}

}  // namespace

Command reproduce_command() {
  std::vector<CsvTable> tables = {{"table1", "/table1/rows"},
                                  {"table4", "/table4/rows"},
                                  {"bigram", "/bigram/rows"},
                                  {"lenience_stochastic", "/lenience/stochastic/rows"},
                                  {"lenience_argmax", "/lenience/argmax/rows"}};
  for (CsvTable& table : measured_csv_tables()) tables.push_back(std::move(table));
  return {"reproduce",
          "The paper's printed figures, and what its formulas give",
          std::move(tables),
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
