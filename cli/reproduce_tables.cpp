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

constexpr char table_2_note[] =
    "v is the verify factor of a step's gamma + 1 tokens that would make formula and measurement equal, 1 + overhead "
    "likewise, c the draft cost and alpha the rate that would, each with the others as printed. v below 1 or c below "
    "0: no cost explains a speed above the formula's, only more tokens a step (drafts accepted in runs, a larger "
    "alpha) or a slower baseline do";
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

}  // namespace

void put_tables(const MeasuredTables& tables, ordered_json& json) {
  json["table2"] = json_table_2(tables.table_2);
}

std::vector<CsvTable> measured_csv_tables() {
  return {{"table2", "/table2/rows"}};
}

std::vector<Section> sections_of(const MeasuredTables& tables) {
  return {
      {{"table2"},
       section("Table 2: speeds measured (EMP) beside Table 4's expectation (EXP) and Theorem 3.8.",
               text_table_2(tables.table_2), table_2_note)}};
}

}  // namespace specdec::cli
