#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Ways to decode with a draft, by name: what docs/methods.md describes, as far as one text and one chain of drafts go.
namespace specdec::validation {

enum class DraftKind {
  model,        ///< the source's draft model
  unigram,      ///< counted tables
  bigram,       ///< counted tables
  ngram,        ///< n-grams of the prompts
  copy,         ///< prompt lookup
  combination,  ///< prompt lookup first, the draft model where it finds nothing
  random        ///< every token with the same probability
};

enum class VerifierKind {
  algorithm1,
  greedy_draft,  ///< argmax q is proposed, as a point mass
  block,
  matching,
  rejection,
  lenient,           ///< with Algorithm 1's residual
  lenient_residual,  ///< with norm(max(0, p - l q))
  argmax_lenient,    ///< for greedy text, with greedy drafts
  typical
};

enum class PolicyKind {
  fixed,
  threshold,   ///< ends behind a draft of low probability
  product,     ///< ends where the product of the round's is low
  confidence,  ///< ends before a row without a probable token
  heuristic    ///< two more after a full accept, else one less
};

struct Method {
  DraftKind draft = DraftKind::model;
  VerifierKind verifier = VerifierKind::algorithm1;
  PolicyKind policy = PolicyKind::fixed;

  /// Whether the text has the target's law (at temperature 0 that is: is the greedy text).
  bool lossless() const;
  friend bool operator==(const Method&, const Method&) = default;
};

/// The names of a kind, in the order of its enumerators: those of --draft, --verifier and --policy.
const std::vector<std::string>& draft_names();
const std::vector<std::string>& verifier_names();
const std::vector<std::string>& policy_names();
std::string name_of(DraftKind kind);
std::string name_of(VerifierKind kind);
std::string name_of(PolicyKind kind);
/// "DRAFT+VERIFIER+POLICY" without a draft that is the model and a policy that is fixed: "algorithm1", "block",
/// "copy+algorithm1", "algorithm1+heuristic".
std::string name_of(const Method& method);

/// The method of a name: at most one draft, verifier and policy, joined by "+" in any order. What is missing is the
/// model, algorithm1 and fixed. Nothing where a part is none of these or a kind stands twice.
std::optional<Method> method_named(std::string_view name);

}  // namespace specdec::validation
