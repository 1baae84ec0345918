#include "cli/reproduce_tables.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <iterator>
#include <string_view>

#include "cli/values.hpp"
#include "render/table.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using nlohmann::ordered_json;
using planning::PublishedAcceptance;
using planning::RoundedNumber;
using planning::Table3Cost;

constexpr char table_2_note[] =
    "v is the verify factor of a step's gamma + 1 tokens that would make formula and measurement equal, 1 + overhead "
    "likewise, c the draft cost and alpha the rate that would, each with the others as printed. v below 1 or c below "
    "0: no cost explains a speed above the formula's, only more tokens a step (drafts accepted in runs, a larger "
    "alpha) or a slower baseline do";
constexpr char table_3_note[] =
    "gamma 3 and limit, 1 / (1 - alpha), are speedups at c = 0, with three and with ever more drafts; a draft of this "
    "rate gains something below c = alpha, and 5% up to the c beside the limit";
constexpr char table_5_note[] =
    "gain is against lenience 1 at the same c, each at its best gamma; without a gamma, at c = 0, it is that of the "
    "limits. at temperature 1 l alpha_l is E[sum min(p, l q)] and so concave in l";

ordered_json interval(const RoundedNumber& number) { return {number.lowest, number.highest}; }

ordered_json setting(const PublishedAcceptance& p) {
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

ordered_json json_table_3(const MeasuredTables& tables) {
  ordered_json rows = ordered_json::array(), costs = ordered_json::array(), pairs = ordered_json::array();
  for (const planning::Table3Row& row : tables.table_3) {
    ordered_json object = setting(*row.setting);
    object.update({{"alpha_interval", {row.setting->interval.low.alpha(), row.setting->interval.high.alpha()}},
                   {"speedup_at_c_0_gamma_3", row.speedup_at_gamma_3},
                   {"limit_at_c_0", row.limit.value},
                   {"limit_at_c_0_interval", interval(row.limit)},
                   {"break_even_c", row.break_even_c},
                   {"largest_c_that_pays", number_or_null(row.largest_c)},
                   {"where", row.setting->where},
                   {"source", row.setting->source}});
    rows.push_back(std::move(object));
  }
  for (const Table3Cost& row : tables.table_3_costs) {
    costs.push_back({{"name", row.setting->name},
                     {"alpha", row.setting->alpha},
                     {"c", row.c},
                     {"best_gamma", row.gamma},
                     {"best_speedup", row.speedup},
                     {"pays", row.pays()}});
  }
  for (const planning::TemperaturePair& pair : tables.temperatures) {
    pairs.push_back({{"task", pair.argmax->task},
                     {"target_model", pair.argmax->target_model},
                     {"draft_model", pair.argmax->draft_model},
                     {"alpha_at_0", pair.argmax->alpha},
                     {"alpha_at_1", pair.standard->alpha},
                     {"difference", pair.difference.value},
                     {"difference_interval", interval(pair.difference)}});
  }
  return {{"note", table_3_note},
          {"min_gain", planning::published_min_gain},
          {"rows", rows},
          {"costs", costs},
          {"temperatures", pairs}};
}

ordered_json json_table_5(const std::vector<planning::Table5Row>& rows) {
  ordered_json list = ordered_json::array();
  for (const planning::Table5Row& row : rows) {
    ordered_json object = setting(*row.setting);
    object.update({{"c", row.c},
                   {"best_gamma", row.gamma ? ordered_json(*row.gamma) : ordered_json()},
                   {"best_speedup", row.speedup},
                   {"gain", row.gain},
                   {"scaled_alpha", row.scaled_alpha},
                   {"is_concave", row.is_concave ? ordered_json(*row.is_concave) : ordered_json()}});
    list.push_back(std::move(object));
  }
  return {{"note", table_5_note}, {"rows", list}};
}

// ---------------------------------------------------------------------------------------------------------- text

std::string range(const RoundedNumber& number) {
  return fmt::format("{:.2f} to {:.2f}", number.lowest, number.highest);
}

std::string percent(double share) { return fmt::format("{:+.0f}%", 100 * share); }

std::string section(std::string_view heading, const std::string& body, std::string_view note) {
  return fmt::format("\n{}\n{}{}\n", wrapped(heading), body, wrapped(fmt::format("Note: {}.", note), 2));
}

std::string text_table_2(const std::vector<planning::Table2Row>& rows) {
  const Table table =
      make_table(rows, {{"setting", {Align::left}, [](const auto& row) { return row.setting->name; }},
                        {"gamma", [](const auto& row) { return fmt::format("{}", row.setting->measured->gamma); }},
                        {"c", [](const auto& row) { return brief(row.setting->measured->c); }},
                        {"EMP", [](const auto& row) { return fixed(row.setting->measured->speed, 1); }},
                        {"EXP", [](const auto& row) { return fixed(row.setting->measured->expected, 1); }},
                        {"formula", [](const auto& row) { return fixed(row.speed.computed); }},
                        {"error", [](const auto& row) { return percent(row.error.value); }},
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
                             brief(errors.geometric_ratio, 3), percent(errors.mean), 100 * errors.root_mean_square,
                             100 * errors.largest, explained, rows.size())) +
         '\n';
}

/// Those costs of the JSON output that fit into a line.
constexpr double shown_costs[] = {0.02, 0.05, 0.1, 0.2};

std::string text_table_3(const MeasuredTables& tables) {
  std::vector<Column<planning::Table3Row>> columns = {
      {"acceptance", {Align::left}, [](const auto& row) { return row.setting->name; }},
      {"alpha", [](const auto& row) { return brief(row.setting->alpha); }},
      {"gamma 3", [](const auto& row) { return fixed(row.speedup_at_gamma_3); }},
      {"limit", [](const auto& row) { return fixed(row.limit.value); }},
      {"5% to c", [](const auto& row) { return fixed(row.largest_c); }}};
  for (const double c : shown_costs) {
    columns.push_back({fmt::format("c {}", c), [&tables, c](const planning::Table3Row& row) {
                         const auto at = std::find_if(
                             tables.table_3_costs.begin(), tables.table_3_costs.end(),
                             [&](const Table3Cost& cost) { return cost.setting == row.setting && cost.c == c; });
                         return at->gamma == 0 ? "-" : fmt::format("{:.2f} ({})", at->speedup, at->gamma);
                       }});
  }
  return text_of(make_table(tables.table_3, columns));
}

std::string text_temperatures(const std::vector<planning::TemperaturePair>& pairs) {
  std::vector<std::string> lower;
  for (const planning::TemperaturePair& pair : pairs) {
    if (pair.difference.value <= 0) {
      lower.push_back(fmt::format("{} with {} on {} ({} and {})", pair.argmax->target_model, pair.argmax->draft_model,
                                  pair.argmax->task, brief(pair.argmax->alpha), brief(pair.standard->alpha)));
    }
  }
  std::string text = fmt::format("Alpha is higher at temperature 0 than at 1 in {} of {} pairs",
                                 pairs.size() - lower.size(), pairs.size());
  for (std::size_t i = 0; i < lower.size(); ++i) text += (i == 0 ? "; not for " : ", ") + lower[i];
  return wrapped(text + '.') + '\n';
}

std::string text_table_5(const std::vector<planning::Table5Row>& rows) {
  const Table table =
      make_table(rows, {{"acceptance", {Align::left}, [](const auto& row) { return row.setting->name; }},
                        {"lenience", [](const auto& row) { return brief(row.setting->lenience); }},
                        {"alpha", [](const auto& row) { return brief(row.setting->alpha); }},
                        {"c", [](const auto& row) { return brief(row.c); }},
                        {"gamma", [](const auto& row) { return row.gamma ? fmt::format("{}", *row.gamma) : "limit"; }},
                        {"speedup", [](const auto& row) { return fixed(row.speedup); }},
                        {"gain", [](const auto& row) { return fixed(row.gain); }},
                        {"l alpha", [](const auto& row) { return fixed(row.scaled_alpha); }}});
  const auto broken =
      std::count_if(rows.begin(), rows.end(), [](const auto& row) { return row.is_concave && !*row.is_concave; });
  return text_of(table) +
         wrapped(broken == 0 ? "The rates of each draft go together: l alpha is concave within rounding."
                             : fmt::format("At {} leniences l alpha is not concave.", broken)) +
         '\n';
}

}  // namespace

void put_tables(const MeasuredTables& tables, ordered_json& json) {
  json["table2"] = json_table_2(tables.table_2);
  json["table3"] = json_table_3(tables);
  json["table5"] = json_table_5(tables.table_5);
}

std::vector<CsvTable> measured_csv_tables() {
  return {{"table2", "/table2/rows"},
          {"table3", "/table3/rows"},
          {"table3_costs", "/table3/costs"},
          {"table3_temperatures", "/table3/temperatures"},
          {"table5", "/table5/rows"}};
}

std::vector<Section> sections_of(const MeasuredTables& tables) {
  return {
      {{"table2"},
       section("Table 2: speeds measured (EMP) beside Table 4's expectation (EXP) and Theorem 3.8.",
               text_table_2(tables.table_2), table_2_note)},
      {{"table3", "table3_costs", "table3_temperatures"},
       section("Table 3: acceptance rates, what they are worth at c = 0, and the best speedup (gamma) at other c; '-': "
               "plain decoding is faster. Below the paper's the shipped pair's own.",
               text_table_3(tables) + text_temperatures(tables.temperatures), table_3_note)},
      {{"table5"},
       section("Table 5: acceptance rates by lenience, and what lenience gains.", text_table_5(tables.table_5),
               table_5_note)}};
}

}  // namespace specdec::cli
