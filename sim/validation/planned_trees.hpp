#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/validation/methods.hpp"

/// The trees that the methods with several drafts use, planned by analysis/theory and passed to sim as plain data.
namespace specdec::validation {

/// k chains of gamma drafts each, as set. Errors of all four as in analysis/theory/token_trees.hpp.
std::vector<std::int64_t> chains_of(const MethodSettings& settings);
/// A tree in which every node has the same number of children.
std::vector<std::int64_t> full_tree_of(const MethodSettings& settings);
/// The tree with the most expected tokens for the settings' acceptance and nodes.
std::vector<std::int64_t> optimal_tree_of(const MethodSettings& settings);
/// The tree with the largest speedup, with at most that many nodes. @throws std::invalid_argument without a cost
std::vector<std::int64_t> best_tree_of(const MethodSettings& settings);

/// The tree of a method.
struct PlannedTree {
  std::string method;
  /// The parent of each node; node 0 is the root, with parent -1.
  std::vector<std::int64_t> parents;
  std::int64_t depth = 0;
  /// Tokens per step at the settings' acceptance by rank; empty if that does not cover so many children.
  std::optional<double> expected_tokens;
};

/// The trees of the methods that have one, in order.
std::vector<PlannedTree> planned_trees(std::span<const Method> methods, const MethodSettings& settings);

}  // namespace specdec::validation
