#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/cli/run_specdec.hpp"

namespace specdec::tests {

/// The data of one series in the JSON output of a figure.
inline std::vector<nlohmann::ordered_json> rows_named(const nlohmann::ordered_json& figure, const std::string& series,
                                                      const std::string& panel = "") {
  std::vector<nlohmann::ordered_json> rows;
  for (const auto& row : figure["data"]) {
    if (row["series"] == series && (panel.empty() || row["panel"] == panel)) rows.push_back(row);
  }
  return rows;
}

}  // namespace specdec::tests
