#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/planning/deployment_plan.hpp"

/// Plans of trees of drafts, each a draft of its own: plain decoding or this tree.
namespace specdec::planning {

/// A tree that was run.
struct TreeDraft {
  cost::DraftTree tree;
  /// As counted of this tree: what one tree accepts says nothing of another.
  estimate::TokensPerStep tokens;
  /// Prices plain rounds and, as gamma = the tree's depth, those of the tree.
  std::shared_ptr<const cost::RoundCost> cost;
  /// Requests behind the interval of `tokens`, if known.
  std::optional<std::int64_t> clusters = {};
};

/// "tree 5-4-16": depth (steps), top_k and verified positions (draft tokens).
std::string name_of(const cost::DraftTree& tree);

/// The plan of one tree at each point and over the schedule, as plan_deployment makes that of chains: `rows` has plain
/// decoding and the tree, whose gamma is its depth,
///
///   speedup = tokens round(plain) / round(tree)
///
/// with the half-widths of ln(tokens) and of ln(round(plain) / round(tree)), over the cost's replicates, added in
/// squares. Nothing is decided away from the batches and contexts that ran, unless `question.extrapolate`.
/// Source:   docs/theory.md#from-benchmark-runs
/// @param question  of which drafts, max_gamma and what is deployed are left aside
/// @throws as RoundCost::round
DraftPlan plan_tree(const TreeDraft& draft, std::span<const PlanPoint> points, const DeploymentQuestion& question);

}  // namespace specdec::planning
