#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/core/step_cost.hpp"

/// Drafts that form a tree: at every position several are proposed, and the step follows the accepted one.
///
/// A tree is the array of its nodes' parents. Node 0 is the root, the token that the step starts from, with parent -1;
/// every other node comes after its parent, and the children of a node are ranked in the order of their numbers.
namespace specdec::theory {

/// The largest tree, in nodes.
inline constexpr std::int64_t largest_tree = 10'000'000;

/// The frequency at which the children of an accepted node are accepted, by rank, independent of the tokens.
///
///   at(depth)[j] = P(child j is the accepted one | its parent is accepted),   sum over j <= 1
///
/// Children are at depth 1, 2, ...
class ChildAcceptance {
 public:
  /// One vector for all depths.
  /// @param by_rank  at least one, each in [0, 1], none above the one before it, sum at most 1
  /// @throws std::invalid_argument if empty; std::domain_error, naming the place, if an entry is invalid
  static ChildAcceptance at_every_depth(std::vector<double> by_rank);
  /// One vector per depth, as for heads that each see one position ahead; nothing is drafted beyond the last.
  /// @param by_depth  at least one, each as above
  static ChildAcceptance by_depth(std::vector<std::vector<double>> by_depth);

  /// By rank; empty if nothing is drafted.
  /// @param depth  >= 1
  std::span<const double> at(std::int64_t depth) const;

 private:
  ChildAcceptance(std::vector<std::vector<double>> rates, bool every_depth);

  std::vector<std::vector<double>> rates_;
  bool every_depth_;
};

/// Expected tokens of a step over a tree, the target's own token included: sum over the nodes of the product of the
/// acceptances on the path to them, 1 for the root.
/// Source:   Chen et al. 2024 (Sequoia), positional acceptance; Cai et al. 2024 (Medusa); docs/theory.md#token-trees
/// @param parents  a tree as above
/// @throws std::invalid_argument if it is not a tree, naming the node
/// @throws std::domain_error if a node is deeper, or has more children, than `acceptance` covers
/// Accuracy: relative error <= 1e-14
double tree_expected_tokens(std::span<const std::int64_t> parents, const ChildAcceptance& acceptance);

/// The longest path from the root, in nodes below it: the number of draft calls for a tree, one per level.
/// @throws std::invalid_argument if it is not a tree
std::int64_t tree_depth(std::span<const std::int64_t> parents);

struct TreeLimits {
  std::int64_t nodes = 64;               ///< the root included, [1, largest_tree]
  std::int64_t depth = largest_tree;     ///< below the root, >= 0
  std::int64_t children = largest_tree;  ///< children of one node, >= 0
};

struct OptimalTree {
  /// Shape: (nodes); fewer than allowed if the other limits leave no room for more, or more would be worth 0.
  std::vector<std::int64_t> parents;
  double expected_tokens = 1;
  std::int64_t depth = 0;
};

/// The tree with the most expected tokens within limits: the nodes with the largest products, taken one by one. A child
/// weighs no more than its parent, nor than the sibling before it, so these form a tree. Ties: the node found first.
/// Source:   docs/theory.md#token-trees; the same optimum by dynamic programming: Chen et al. 2024 (Sequoia)
/// Time:     O(n log n)
/// @throws std::domain_error if a limit is out of range
OptimalTree optimal_tree(const ChildAcceptance& acceptance, const TreeLimits& limits);

struct TreePlan {
  OptimalTree tree;
  /// expected_tokens / (v(nodes) + c depth + overhead); 1 for the root alone, which is plain decoding.
  double speedup = 1;
  /// True if a tree as large as the limit on nodes is best: a larger one may be better.
  bool at_limit = false;
};

/// The tree with the largest speedup: the best over every size and depth. The target scores all its nodes in one call,
/// and the draft runs once per level.
///
/// Source:   docs/theory.md#token-trees
/// Time:     O(d n log n), with d the depth of the optimal tree of n = limits.nodes nodes
/// @param cost  c = time to draft one level / target step time
/// @throws std::domain_error if a limit or a cost is out of range
TreePlan best_tree(const ChildAcceptance& acceptance, const core::StepCost& cost, const TreeLimits& limits);

}  // namespace specdec::theory
