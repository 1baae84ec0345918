#include "analysis/theory/token_trees.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <queue>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::theory {
namespace {

/// Largest excess of a row's sum over 1 that is taken as rounding.
constexpr double sum_slack = 1e-12;

void require_rates(std::size_t depth, const std::vector<double>& by_rank) {
  if (by_rank.empty()) throw std::invalid_argument(fmt::format("ChildAcceptance: depth {} has no ranks", depth));
  core::CompensatedSum sum;
  double before = 1;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    if (!(0 <= by_rank[rank] && by_rank[rank] <= before))
      core::require_in("ChildAcceptance", fmt::format("acceptance at depth {}, rank {}", depth, rank + 1),
                       by_rank[rank], 0, before);
    before = by_rank[rank];
    sum.add(before);
  }
  if (sum.value() > 1 + sum_slack)
    core::require_in("ChildAcceptance", fmt::format("sum at depth {}", depth), sum.value(), 0, 1);
}

struct NodePlace {
  std::int64_t depth;
  std::size_t rank;  // among its siblings, from 0
};

std::vector<NodePlace> places(std::string_view function, std::span<const std::int64_t> parents) {
  if (parents.empty()) throw std::invalid_argument(fmt::format("{}: the tree has no root", function));
  if (parents[0] != -1)
    throw std::invalid_argument(fmt::format("{}: the parent of node 0 is {}, but must be -1", function, parents[0]));
  std::vector<NodePlace> places = {{0, 0}};
  std::vector<std::size_t> children(parents.size(), 0);
  for (std::size_t node = 1; node < parents.size(); ++node) {
    if (!(0 <= parents[node] && parents[node] < static_cast<std::int64_t>(node)))
      throw std::invalid_argument(fmt::format("{}: the parent of node {} is {}, but must be in [0, {}]", function, node,
                                              parents[node], node - 1));
    const auto parent = static_cast<std::size_t>(parents[node]);
    places.push_back({places[parent].depth + 1, children[parent]++});
  }
  return places;
}

void require_limits(std::string_view function, const TreeLimits& limits) {
  core::require_in(function, "nodes", limits.nodes, 1, largest_tree);
  core::require_in(function, "depth", limits.depth, 0, core::largest_integer);
  core::require_in(function, "children", limits.children, 0, core::largest_integer);
}

/// The nodes with the largest weights, one at a time.
class TreeGrower {
 public:
  TreeGrower(const ChildAcceptance& acceptance, const TreeLimits& limits) : acceptance_(acceptance), limits_(limits) {
    tokens_.add(1);
    offer_child({1, 0, 0, 0, 0}, 0);
  }

  double expected_tokens() const { return tokens_.value(); }
  std::int64_t depth() const { return depth_; }
  std::vector<std::int64_t> take_parents() { return std::move(parents_); }

  /// False if the tree has grown as far as it can.
  bool grow() {
    if (candidates_.empty() || static_cast<std::int64_t>(parents_.size()) == limits_.nodes) return false;
    const Candidate node = candidates_.top();
    candidates_.pop();
    const auto number = static_cast<std::int64_t>(parents_.size());
    parents_.push_back(node.parent);
    tokens_.add(node.weight);
    depth_ = std::max(depth_, node.depth);
    offer(node.parent_weight, node.parent, node.depth, node.rank + 1);
    offer_child(node, number);
    return true;
  }

 private:
  struct Candidate {
    double weight;
    double parent_weight;
    std::int64_t parent;
    std::int64_t depth;
    std::size_t rank;
    std::int64_t found = 0;

    bool operator<(const Candidate& other) const {
      return weight < other.weight || (weight == other.weight && found > other.found);
    }
  };

  void offer_child(const Candidate& node, std::int64_t number) { offer(node.weight, number, node.depth + 1, 0); }

  void offer(double parent_weight, std::int64_t parent, std::int64_t depth, std::size_t rank) {
    if (depth > limits_.depth || static_cast<std::int64_t>(rank) >= limits_.children) return;
    const std::span<const double> rates = acceptance_.at(depth);
    if (rank >= rates.size()) return;
    const double weight = parent_weight * rates[rank];
    if (weight > 0) candidates_.push({weight, parent_weight, parent, depth, rank, found_++});
  }

  const ChildAcceptance& acceptance_;
  TreeLimits limits_;
  std::priority_queue<Candidate> candidates_;
  std::int64_t found_ = 0;
  std::vector<std::int64_t> parents_ = {-1};
  core::CompensatedSum tokens_;
  std::int64_t depth_ = 0;
};

/// v(nodes) + c depth + overhead.
double tree_cost(const core::StepCost& cost, std::int64_t nodes, std::int64_t depth) {
  return cost.verification(nodes) + cost.c * static_cast<double>(depth) + cost.overhead;
}

}  // namespace

ChildAcceptance::ChildAcceptance(std::vector<std::vector<double>> rates, bool every_depth)
    : rates_(std::move(rates)), every_depth_(every_depth) {
  for (std::size_t depth = 1; depth <= rates_.size(); ++depth) require_rates(depth, rates_[depth - 1]);
}

ChildAcceptance ChildAcceptance::at_every_depth(std::vector<double> by_rank) {
  return ChildAcceptance({std::move(by_rank)}, true);
}

ChildAcceptance ChildAcceptance::by_depth(std::vector<std::vector<double>> by_depth) {
  if (by_depth.empty()) throw std::invalid_argument("ChildAcceptance: there are no depths");
  return ChildAcceptance(std::move(by_depth), false);
}

std::span<const double> ChildAcceptance::at(std::int64_t depth) const {
  core::require_in("ChildAcceptance", "depth", depth, 1, core::largest_integer);
  if (every_depth_) return rates_.front();
  if (depth > static_cast<std::int64_t>(rates_.size())) return {};
  return rates_[static_cast<std::size_t>(depth) - 1];
}

double tree_expected_tokens(std::span<const std::int64_t> parents, const ChildAcceptance& acceptance) {
  const std::vector<NodePlace> place = places("tree_expected_tokens", parents);
  std::vector<double> weight(parents.size(), 1.0);
  core::CompensatedSum tokens;
  tokens.add(1);
  for (std::size_t node = 1; node < parents.size(); ++node) {
    const std::span<const double> rates = acceptance.at(place[node].depth);
    if (place[node].rank >= rates.size())
      throw std::domain_error(
          fmt::format("tree_expected_tokens: node {} is child {} at depth {}, but must be in [1, {}]", node,
                      place[node].rank + 1, place[node].depth, rates.size()));
    weight[node] = weight[static_cast<std::size_t>(parents[node])] * rates[place[node].rank];
    tokens.add(weight[node]);
  }
  return tokens.value();
}

std::int64_t tree_depth(std::span<const std::int64_t> parents) {
  std::int64_t depth = 0;
  for (const NodePlace& place : places("tree_depth", parents)) depth = std::max(depth, place.depth);
  return depth;
}

OptimalTree optimal_tree(const ChildAcceptance& acceptance, const TreeLimits& limits) {
  require_limits("optimal_tree", limits);
  TreeGrower tree(acceptance, limits);
  while (tree.grow()) continue;
  const double expected = tree.expected_tokens();
  const std::int64_t depth = tree.depth();
  return {tree.take_parents(), expected, depth};
}

TreePlan best_tree(const ChildAcceptance& acceptance, const core::StepCost& cost, const TreeLimits& limits) {
  require_limits("best_tree", limits);
  cost(1);  // rejects costs that are out of range
  TreeLimits best = limits;
  best.nodes = 1;
  double speedup = 1;
  // Among all trees of one size and a bounded depth the greedy one has the most tokens; trees of unbounded depth come
  // last.
  for (std::int64_t depth = 1, reached = 0; depth <= limits.depth && reached == depth - 1; ++depth) {
    TreeLimits within = limits;
    within.depth = depth;
    TreeGrower tree(acceptance, within);
    for (within.nodes = 2; tree.grow(); ++within.nodes) {
      const double gain = tree.expected_tokens() / tree_cost(cost, within.nodes, tree.depth());
      if (gain <= speedup) continue;
      speedup = gain;
      best = within;
    }
    reached = tree.depth();
  }
  return {optimal_tree(acceptance, best), speedup, best.nodes == limits.nodes && limits.nodes > 1};
}

}  // namespace specdec::theory
