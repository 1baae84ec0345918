#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "traces/trace_metadata.hpp"

namespace specdec::traces {

inline constexpr std::array acceptance_rules{AcceptanceRule::rejection, AcceptanceRule::greedy_draft,
                                             AcceptanceRule::greedy};

/// The rule whose name_of is `word`; empty if there is none.
std::optional<AcceptanceRule> acceptance_rule_named(std::string_view word);

}  // namespace specdec::traces
