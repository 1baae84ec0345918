#include "sim/validation/methods.hpp"

#include <algorithm>
#include <cstddef>

namespace specdec::validation {
namespace {

/// Gives `value` the kind that has this name; false where none has.
template <class Kind>
bool take(std::optional<Kind>& value, std::string_view name, const std::vector<std::string>& names) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end() || value) return false;
  value = static_cast<Kind>(found - names.begin());
  return true;
}

}  // namespace

bool Method::lossless() const {
  return verifier != VerifierKind::lenient && verifier != VerifierKind::lenient_residual &&
         verifier != VerifierKind::argmax_lenient && verifier != VerifierKind::typical;
}

const std::vector<std::string>& draft_names() {
  static const std::vector<std::string> names{"model", "unigram", "bigram", "ngram", "copy", "combination", "random"};
  return names;
}

const std::vector<std::string>& verifier_names() {
  static const std::vector<std::string> names{"algorithm1",       "greedy-draft",   "block",
                                              "matching",         "rejection",      "lenient",
                                              "lenient-residual", "argmax-lenient", "typical"};
  return names;
}

const std::vector<std::string>& policy_names() {
  static const std::vector<std::string> names{"fixed", "threshold", "product", "confidence", "heuristic"};
  return names;
}

std::string name_of(DraftKind kind) { return draft_names()[static_cast<std::size_t>(kind)]; }
std::string name_of(VerifierKind kind) { return verifier_names()[static_cast<std::size_t>(kind)]; }
std::string name_of(PolicyKind kind) { return policy_names()[static_cast<std::size_t>(kind)]; }

std::string name_of(const Method& method) {
  std::string name;
  if (method.draft != DraftKind::model) name.append(name_of(method.draft)).append("+");
  name.append(name_of(method.verifier));
  if (method.policy != PolicyKind::fixed) name.append("+").append(name_of(method.policy));
  return name;
}

std::optional<Method> method_named(std::string_view name) {
  std::optional<DraftKind> draft;
  std::optional<VerifierKind> verifier;
  std::optional<PolicyKind> policy;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('+', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (!take(draft, part, draft_names()) && !take(verifier, part, verifier_names()) &&
        !take(policy, part, policy_names()))
      return std::nullopt;
    begin = end + 1;
  }
  return Method{draft.value_or(DraftKind::model), verifier.value_or(VerifierKind::algorithm1),
                policy.value_or(PolicyKind::fixed)};
}

}  // namespace specdec::validation
