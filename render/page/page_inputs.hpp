#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>

#include "planner/acceptance.hpp"
#include "planner/named_specs.hpp"

/// What a page's program is handed in the place of the files that a report was made from, as JSON and back. All numbers
/// come back as they were, bit by bit; aliases, addresses of pages, notes beside figures and the matrices of layers do
/// not.
namespace specdec::render {

/// @param last_gamma  the table of the acceptance goes up to it, or up to where the acceptance ends; >= 0
nlohmann::ordered_json page_input(const planner::Acceptance& acceptance, std::int64_t last_gamma);
/// @throws nlohmann::json::exception for a document of another form; std::invalid_argument, std::domain_error for
///   values that no acceptance has
planner::Acceptance page_acceptance(const nlohmann::ordered_json& document);

nlohmann::ordered_json page_input(const planner::NamedSpecs& specs);
/// @throws nlohmann::json::exception for a document of another form; std::invalid_argument for a number type that is
///   none
planner::NamedSpecs page_specs(const nlohmann::ordered_json& document);

}  // namespace specdec::render
