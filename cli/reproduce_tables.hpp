#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/planning/published_tables.hpp"
#include "cli/report.hpp"

/// Answers of `specdec reproduce` about the paper's measured speeds.
namespace specdec::cli {

struct MeasuredTables {
  std::vector<planning::Table2Row> table_2 = planning::table_2();
};

/// Adds "table2".
void put_tables(const MeasuredTables& tables, nlohmann::ordered_json& json);
std::vector<CsvTable> measured_csv_tables();
/// The text below a heading of its own, and the tables of measured_csv_tables that it shows.
struct Section {
  std::vector<std::string> tables;
  std::string text;
};
std::vector<Section> sections_of(const MeasuredTables& tables);

}  // namespace specdec::cli
