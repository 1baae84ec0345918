#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "sim/generation.hpp"
#include "sim/language_model.hpp"
#include "sim/multi_draft.hpp"
#include "sim/random.hpp"

/// Drafts that form a tree and are verified in one call of the target.
namespace specdec::sim {

/// Rule by which the children of a node are proposed, and so their verification by default.
enum class SiblingDrafts {
  independent,          ///< each sampled from the draft's row; verify_recursively or verify_k_sequentially
  without_replacement,  ///< all distinct; verify_recursively_without_replacement
  most_probable         ///< the draft's most probable tokens; verify_by_membership
};

struct TreeDecodingOptions {
  /// The parent of each node, which must precede it; node 0 is the root, the text's last token, with parent -1.
  std::vector<std::int64_t> parents = {-1};
  SiblingDrafts siblings = SiblingDrafts::without_replacement;
  /// A rule for these siblings.
  CandidateVerifier verifier = verify_recursively_without_replacement;
  /// As in DecodingOptions.
  std::int64_t max_new_tokens = 128;
  std::optional<Token> end_token;
  core::Standardisation standardisation;
};

/// k chains of gamma drafts from one root. @throws std::domain_error if chains < 1 or gamma < 0, or the tree has more
/// than 10^7 nodes
std::vector<std::int64_t> chains_tree(std::int64_t chains, std::int64_t gamma);

/// k children for each node of depth less than `depth`. Errors as for chains_tree.
std::vector<std::int64_t> full_tree(std::int64_t children, std::int64_t depth);

/// Speculative decoding with a tree of drafts: from the root down, the children of the current node are
/// candidates for one position (sim/multi_draft.hpp), and the step ends when none is accepted, or with a token of the
/// target after a leaf. Independent siblings may be equal: the accepted token's children are then those of all of
/// them, so that several chains continue together. Lossless.
///
/// Nodes deeper than the tokens still wanted - 1 are not drafted, nor children for which the draft has no token left.
///
/// A step's `drafted` is the number of nodes drafted, `rejected` always -1; drafted_at counts the steps in which a
/// depth had drafts, accepted_at those in which one was accepted. A call of the draft is one level of the tree for all
/// its nodes, one of the target the whole tree; positions are nodes.
///
/// Uniforms, with nodes numbered in the order of their parents: (step, node - 1, draft); the rules of
/// sim/multi_draft.hpp with the number of candidates examined in the step so far as slot; (step, that slot, bonus)
/// after a leaf.
///
/// Source:   Miao et al. 2024, "SpecInfer"; Chen et al. 2024, "Sequoia"; docs/reference/methods.md#token-trees
/// @param target, draft, prompt  as for decode_speculatively
/// @throws as decode_speculatively; std::domain_error if a parent does not precede its child
Generation decode_with_tree(LanguageModel& target, LanguageModel& draft, std::span<const Token> prompt,
                            const TreeDecodingOptions& options, const UniformSource& uniforms);

}  // namespace specdec::sim
