#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/validation/methods.hpp"

/// The trees that the methods with several drafts use, planned by analysis/theory and handed to sim as plain data.
namespace specdec::validation {

/// k chains of gamma drafts each, as settings say. Errors of all four as of analysis/theory/token_trees.hpp.
std::vector<std::int64_t> chains_of(const MethodSettings& settings);
/// Every node has the same number of children.
std::vector<std::int64_t> full_tree_of(const MethodSettings& settings);
/// The tree of most expected tokens for the settings' acceptance and nodes.
std::vector<std::int64_t> optimal_tree_of(const MethodSettings& settings);
/// The tree of largest speedup, of at most so many nodes. @throws std::invalid_argument without a cost
std::vector<std::int64_t> best_tree_of(const MethodSettings& settings);

/// What a method's tree is.
struct PlannedTree {
  std::string method;
  /// The parent of each node; node 0 is the root, with parent -1.
  std::vector<std::int64_t> parents;
  std::int64_t depth = 0;
  /// Tokens per step at the settings' acceptance by rank; nothing where it does not say anything of so many children.
  std::optional<double> expected_tokens;
};

/// Those of the methods that have one, in order.
std::vector<PlannedTree> planned_trees(std::span<const Method> methods, const MethodSettings& settings);

}  // namespace specdec::validation
