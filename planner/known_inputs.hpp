#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>

#include "planner/acceptance.hpp"
#include "planner/named_specs.hpp"

/// Inputs read from files, as JSON and back, for programs that do not have the files. All numbers come back as they
/// were, bit by bit; aliases, addresses of pages, notes beside figures and the matrices of layers do not.
namespace specdec::planner {

/// @param last_gamma  the table of the acceptance goes up to it, or up to where the acceptance ends; >= 0
nlohmann::ordered_json known_json(const Acceptance& acceptance, std::int64_t last_gamma);
/// @throws QuestionError for a document of another form and for values that no acceptance has
KnownAcceptance known_acceptance(const nlohmann::ordered_json& document);

nlohmann::ordered_json known_json(const NamedSpecs& specs);
/// @throws QuestionError for a document of another form
NamedSpecs known_specs(const nlohmann::ordered_json& document);

}  // namespace specdec::planner
