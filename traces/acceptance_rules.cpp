#include "traces/acceptance_rules.hpp"

namespace specdec::traces {

std::string_view name_of(AcceptanceRule rule) {
  switch (rule) {
    case AcceptanceRule::rejection:
      return "rejection";
    case AcceptanceRule::greedy_draft:
      return "greedy-draft";
    case AcceptanceRule::greedy:
      break;
  }
  return "greedy";
}

std::optional<AcceptanceRule> acceptance_rule_named(std::string_view word) {
  for (const AcceptanceRule rule : acceptance_rules)
    if (name_of(rule) == word) return rule;
  return std::nullopt;
}

}  // namespace specdec::traces
