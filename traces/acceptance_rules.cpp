#include "traces/acceptance_rules.hpp"

namespace specdec::traces {

std::string_view name_of(AcceptanceRule rule) {
  constexpr std::array<std::string_view, 3> names = {"rejection", "greedy-draft", "greedy"};
  return names.at(static_cast<std::size_t>(rule));
}

std::optional<AcceptanceRule> acceptance_rule_named(std::string_view word) {
  for (const AcceptanceRule rule : acceptance_rules)
    if (name_of(rule) == word) return rule;
  return std::nullopt;
}

}  // namespace specdec::traces
