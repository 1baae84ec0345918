#pragma once

#include "sim/validation/report.hpp"

#include <nlohmann/json.hpp>

#include <string>

namespace specdec::cli {

/// The keys that every answer of `specdec validate` has, without a run: null and an empty list.
nlohmann::ordered_json empty_validation_json();

/// The same keys filled from a report.
nlohmann::ordered_json validation_json(const validation::Report& report);

/// The table, how to read it, and the verdict with every check that failed.
std::string validation_text(const validation::Report& report);

}  // namespace specdec::cli
