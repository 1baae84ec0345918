#include "sim/validation/planned_trees.hpp"

#include <algorithm>
#include <stdexcept>

#include "analysis/theory/token_trees.hpp"
#include "sim/tree_decoding.hpp"

namespace specdec::validation {
namespace {

theory::ChildAcceptance acceptance_of(const MethodSettings& settings) {
  return theory::ChildAcceptance::at_every_depth(settings.tree_acceptance);
}

theory::TreeLimits limits_of(const MethodSettings& settings) {
  return {.nodes = settings.tree_nodes, .depth = settings.max_new_tokens};
}

std::int64_t most_children(std::span<const std::int64_t> parents) {
  std::vector<std::int64_t> children(parents.size());
  for (const std::int64_t parent : parents.subspan(1)) children[static_cast<std::size_t>(parent)] += 1;
  return *std::ranges::max_element(children);
}

}  // namespace

std::vector<std::int64_t> chains_of(const MethodSettings& settings) {
  return sim::chains_tree(settings.drafts, settings.gamma);
}

std::vector<std::int64_t> full_tree_of(const MethodSettings& settings) {
  return sim::full_tree(settings.tree_children, settings.tree_depth);
}

std::vector<std::int64_t> optimal_tree_of(const MethodSettings& settings) {
  return theory::optimal_tree(acceptance_of(settings), limits_of(settings)).parents;
}

std::vector<std::int64_t> best_tree_of(const MethodSettings& settings) {
  if (!settings.cost) throw std::invalid_argument("best_tree_of: settings.cost is missing");
  return theory::best_tree(acceptance_of(settings), *settings.cost, limits_of(settings)).tree.parents;
}

std::vector<PlannedTree> planned_trees(std::span<const Method> methods, const MethodSettings& settings) {
  std::vector<PlannedTree> trees;
  for (const Method& method : methods) {
    if (method.is_plain() || method.verifier->tree == nullptr) continue;
    PlannedTree tree{name_of(method), method.verifier->tree(settings), 0, {}};
    tree.depth = theory::tree_depth(tree.parents);
    if (most_children(tree.parents) <= static_cast<std::int64_t>(settings.tree_acceptance.size()))
      tree.expected_tokens = theory::tree_expected_tokens(tree.parents, acceptance_of(settings));
    trees.push_back(std::move(tree));
  }
  return trees;
}

}  // namespace specdec::validation
