#include "analysis/theory/token_trees.hpp"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/theory/multi_draft.hpp"
#include "analysis/theory/tokens.hpp"
#include "tests/properties/random_cases.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/multi_draft_law.hpp"

namespace specdec::theory {
namespace {

using Parents = std::vector<std::int64_t>;

Approx exactly(double value) { return Approx(value).epsilon(1e-14); }

TreeLimits nodes(std::int64_t count) {
  TreeLimits limits;
  limits.nodes = count;
  return limits;
}

const ChildAcceptance positional = ChildAcceptance::at_every_depth({0.6, 0.2, 0.1});
const ChildAcceptance heads = ChildAcceptance::by_depth({{0.6, 0.15, 0.08}, {0.45, 0.15, 0.08}, {0.35, 0.12, 0.07}});

core::StepCost sloped_cost(double slope, double c) {
  const core::VerificationCost::Point points[] = {{2, 1 + slope}};
  core::StepCost cost;
  cost.c = c;
  cost.verification = core::VerificationCost::table(points);
  return cost;
}

// visit(parents) for every tree of up to `count` nodes: each node in turn becomes the next child of any node from its
// predecessor's parent on, so that every tree comes once, its nodes in breadth-first order.
void each_tree(Parents tree, std::size_t count, const std::function<void(const Parents&)>& visit) {
  visit(tree);
  if (tree.size() == count) return;
  for (std::int64_t parent = std::max<std::int64_t>(0, tree.back()); parent < static_cast<std::int64_t>(tree.size());
       ++parent) {
    tree.push_back(parent);
    each_tree(tree, count, visit);
    tree.pop_back();
  }
}

// Sum of products, or -1 where the tree has a node that the rates say nothing of.
double tokens_by_recursion(const Parents& tree, std::int64_t node, const std::vector<std::vector<double>>& rates,
                           std::size_t depth) {
  double tokens = 1;
  std::size_t rank = 0;
  for (std::size_t child = 1; child < tree.size(); ++child) {
    if (tree[child] != node) continue;
    if (depth >= rates.size() || rank >= rates[depth].size()) return -1;
    const double below = tokens_by_recursion(tree, static_cast<std::int64_t>(child), rates, depth + 1);
    if (below < 0) return -1;
    tokens += rates[depth][rank++] * below;
  }
  return tokens;
}

}  // namespace

TEST_CASE("the optimal tree has the expected tokens that exact enumeration says") {
  const std::pair<std::int64_t, double> expected[] = {{1, 1},         {2, 1.6},        {3, 1.96},        {4, 2.176},
                                                      {5, 2.376},     {6, 2.5056},     {7, 2.6256},      {8, 2.7456},
                                                      {16, 3.306016}, {32, 3.8324096}, {64, 4.326195456}};
  for (const auto& [count, tokens] : expected) {
    INFO(count << " nodes");
    const OptimalTree tree = optimal_tree(positional, nodes(count));
    CHECK(static_cast<std::int64_t>(tree.parents.size()) == count);
    CHECK(tree.expected_tokens == exactly(tokens));
    CHECK(tree_expected_tokens(tree.parents, positional) == exactly(tokens));
    CHECK(tree_depth(tree.parents) == tree.depth);
  }
  TreeLimits shallow = nodes(16);
  shallow.depth = 3;
  CHECK(optimal_tree(positional, shallow).expected_tokens == exactly(3.164));
  // Towards 1 / (1 - .6 - .2 - .1), slowly.
  CHECK(optimal_tree(positional, nodes(200'000)).expected_tokens < 10);
  CHECK(optimal_tree(positional, nodes(200'000)).expected_tokens > 7.5);
}

TEST_CASE("the optimal tree of heads that differ takes the heaviest nodes") {
  CHECK(optimal_tree(heads, nodes(3)).expected_tokens == exactly(1.87));
  CHECK(optimal_tree(heads, nodes(4)).expected_tokens == exactly(2.02));
  CHECK(optimal_tree(heads, nodes(8)).expected_tokens == exactly(2.352));
  CHECK(optimal_tree(heads, nodes(13)).expected_tokens == exactly(2.523525));
  CHECK(optimal_tree(heads, nodes(1000)).parents.size() == 1 + 3 + 9 + 27);
}

TEST_CASE("a tree of one child per node is a chain") {
  TreeLimits limits = nodes(6);
  limits.children = 1;
  const OptimalTree chain = optimal_tree(positional, limits);
  CHECK(chain.parents == Parents{-1, 0, 1, 2, 3, 4});
  CHECK(chain.expected_tokens == exactly(expected_tokens(core::AcceptanceRate(0.6), 5)));
}

TEST_CASE("no tree of up to 8 nodes has more expected tokens than the optimal one, depth and children limited or not") {
  test_support::RandomCases cases(11);
  for (int i = 0; i < 6; ++i) {
    std::vector<std::vector<double>> rates(i % 2 == 0 ? 7 : 3);
    for (auto& by_rank : rates) {
      by_rank = cases.row(i < 2 ? 7 : 3);
      std::sort(by_rank.rbegin(), by_rank.rend());
    }
    const ChildAcceptance acceptance = ChildAcceptance::by_depth(rates);
    const std::int64_t most_children = i < 4 ? 7 : 2;
    const std::int64_t most_depth = i < 3 ? 7 : 2;
    std::vector<double> best(9, 1.0);
    int trees = 0;
    each_tree({-1}, 8, [&](const Parents& tree) {
      ++trees;
      for (std::size_t node = 0; node < tree.size(); ++node)
        if (std::count(tree.begin(), tree.end(), static_cast<std::int64_t>(node)) > most_children) return;
      const double tokens = tokens_by_recursion(tree, 0, rates, 0);
      if (tokens < 0) return;
      CHECK(tree_expected_tokens(tree, acceptance) == exactly(tokens));
      if (tree_depth(tree) > most_depth) return;
      for (std::size_t count = tree.size(); count < best.size(); ++count) best[count] = std::max(best[count], tokens);
    });
    REQUIRE(trees == 1 + 1 + 2 + 5 + 14 + 42 + 132 + 429);
    for (std::int64_t count = 1; count <= 8; ++count) {
      INFO("case " << i << ", " << count << " nodes");
      CHECK(optimal_tree(acceptance, {count, most_depth, most_children}).expected_tokens ==
            exactly(best[static_cast<std::size_t>(count)]));
    }
  }
}

TEST_CASE("the tree of largest speedup is smaller or shallower than the best of those that limit size alone") {
  const struct {
    core::StepCost cost;
    std::int64_t nodes;  // of the best tree of those that are optimal for their size
    double speedup;
  } expected[] = {{sloped_cost(0.01, 0.05), 24, 2.370467973856}, {sloped_cost(0.002, 0.02), 63, 3.361462429906}};
  for (const auto& [cost, best_nodes, best_speedup] : expected) {
    double best = 1;
    std::int64_t at = 1;
    for (std::int64_t count = 2; count <= 200; ++count) {
      const OptimalTree tree = optimal_tree(positional, nodes(count));
      const double gain = tree.expected_tokens / (cost.verification(count) + cost.c * static_cast<double>(tree.depth));
      if (gain > best) {
        best = gain;
        at = count;
      }
    }
    CHECK(at == best_nodes);
    CHECK(best == Approx(best_speedup).epsilon(1e-12));
    const TreePlan plan = best_tree(positional, cost, nodes(200));
    CHECK(plan.speedup > best);
    CHECK(plan.tree.depth < optimal_tree(positional, nodes(best_nodes)).depth);
    CHECK_FALSE(plan.at_limit);
  }
}

TEST_CASE("the tree of largest speedup says when the limit on its size is what stopped it") {
  const TreePlan free = best_tree(positional, {}, nodes(50));
  CHECK(free.tree.parents.size() == 50);
  CHECK(free.at_limit);
  const TreePlan useless = best_tree(positional, sloped_cost(2, 0), nodes(50));
  CHECK(useless.tree.parents == Parents{-1});
  CHECK(useless.speedup == 1);
  CHECK_FALSE(useless.at_limit);
}

TEST_CASE("the tree of largest speedup is the best over all sizes and depths") {
  const core::StepCost cost = sloped_cost(0.01, 0.2);
  double best = 1;
  for (std::int64_t depth = 1; depth <= 20; ++depth) {
    for (std::int64_t count = 2; count <= 60; ++count) {
      const OptimalTree tree = optimal_tree(positional, {count, depth, 3});
      best = std::max(best, tree.expected_tokens / (cost.verification(count) + 0.2 * static_cast<double>(tree.depth)));
    }
  }
  CHECK(best_tree(positional, cost, nodes(60)).speedup == exactly(best));
}

TEST_CASE("a full tree of recursive rejection multiplies its acceptance by level") {
  const std::vector<double> p = {0.5, 0.3, 0.2};
  const std::vector<double> q = {0.2, 0.3, 0.5};
  const MultiDraftLaw law =
      recursive_rejection(core::TargetDistribution(p), core::DraftDistribution(q), 2, Replacement::with);
  CHECK(expected_tokens(law.acceptance(), 3) == exactly(2.776576));
  const Parents parents = {-1, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6};
  CHECK(tree_expected_tokens(parents, ChildAcceptance::at_every_depth(law.by_draft)) == exactly(2.776576));
}

TEST_CASE("what is no tree, or no acceptance of children, is refused") {
  CHECK_THROWS_AS(tree_depth({}), std::invalid_argument);
  CHECK_THROWS_AS(tree_depth(Parents{0}), std::invalid_argument);
  CHECK_THROWS_AS(tree_depth(Parents{-1, 1}), std::invalid_argument);
  CHECK_THROWS_AS(tree_depth(Parents{-1, -1}), std::invalid_argument);
  CHECK_THROWS_AS(tree_expected_tokens(Parents{-1, 0, 0, 0, 0}, positional), std::domain_error);
  CHECK_THROWS_AS(tree_expected_tokens(Parents{-1, 0, 1, 2, 3}, heads), std::domain_error);
  CHECK_THROWS_AS(ChildAcceptance::at_every_depth({}), std::invalid_argument);
  CHECK_THROWS_AS(ChildAcceptance::by_depth({}), std::invalid_argument);
  CHECK_THROWS_AS(ChildAcceptance::at_every_depth({0.2, 0.3}), std::domain_error);
  CHECK_THROWS_AS(ChildAcceptance::at_every_depth({0.6, 0.5}), std::domain_error);
  CHECK_THROWS_AS(optimal_tree(positional, nodes(0)), std::domain_error);
  CHECK_THROWS_AS(best_tree(positional, sloped_cost(0.1, -1), nodes(5)), std::domain_error);
}

}  // namespace specdec::theory
