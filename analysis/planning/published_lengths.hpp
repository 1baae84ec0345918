#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/estimate.hpp"

/// Published acceptance lengths of heads, and the priors of acceptance that follow from them.
namespace specdec::planning {

/// Tokens per step of one draft on one task, by gamma.
struct PublishedLength {
  /// "eagle3", "mtp", "dspark", "dflash", "dfly".
  std::string method = {};
  /// The name of a model preset if there is one.
  std::string target_model = {};
  std::string draft_model = {};
  std::string task = {};
  std::optional<double> temperature = {};
  /// By gamma; chains of drafts, the bonus token included.
  std::map<std::int64_t, double> tokens_per_step = {};
  /// The way it was measured, or the place in the source.
  std::string where = {};
  /// "https://...".
  std::string source = {};
};

/// In the order of the files of analysis/planning/presets/lengths.
std::span<const PublishedLength> published_lengths();

/// Tokens per step that a deployment not yet measured may have.
struct PriorLength {
  std::int64_t gamma = 1;
  double tokens_per_step = 1;
  estimate::Interval ci95 = {1, 1};
};

/// The acceptance of a head on traffic of one's own, from what was published of heads of its kind.
///
/// Each figure is the log-odds y of the one rate that gives its length (theory::alpha_from_acceptance_length); of a
/// curve the one at the gamma nearest. Within a kind
///
///   y = m + target + deployment + task,
///
/// where a deployment is a draft as one source measured it. The variance of tasks is that within deployments, the one
/// of deployments that between those of a target (estimate::variance_between); targets are pooled
/// (estimate::GroupShrinkage) by the means of their deployments. The prior is the law of another task on another
/// deployment, of the target if figures of it were published, else of another one.
///
/// Source:   docs/theory.md#priors-of-acceptance
struct PublishedPrior {
  /// "eagle3-llama-3.3-70b", or "eagle3", "mtp", "parallel" for a target without figures.
  std::string name = {};
  /// "eagle3", "mtp" or "parallel".
  std::string kind = {};
  std::optional<std::string> target_model = {};
  /// At prior_gammas, rising.
  std::vector<PriorLength> lengths = {};
  /// The target's figures, or those of the kind without one; the others of the kind are pooled in.
  std::vector<const PublishedLength*> figures = {};
  std::size_t deployments = 0;
  std::size_t figures_of_kind = 0, deployments_of_kind = 0, targets_of_kind = 0;
  /// Standard deviations of the log-odds, at the first gamma.
  double task_spread = 0, deployment_spread = 0, target_spread = 0;
  /// Sources of these figures, each once.
  std::vector<std::string> sources = {};
};

/// The gammas at which priors are stated, where most figures are from.
inline constexpr std::int64_t prior_gammas[] = {3, 7};

/// The kind of the prior's drafts.
cost::DraftKind kind_of(const PublishedPrior& prior);

/// Sorted by kind, first the one of any target, then by target.
std::span<const PublishedPrior> published_priors();
/// By name; upper and lower case, spaces, dashes and underscores are equivalent; null if there is none.
const PublishedPrior* published_prior(std::string_view name);
/// The prior for drafts of this kind on this target; that of any target if nothing was published of it; null for kinds
/// without figures.
/// @param target  the name of a model preset
const PublishedPrior* prior_of(cost::DraftKind kind, const std::optional<std::string>& target);

}  // namespace specdec::planning
