#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/label_groups.hpp"
#include "traces/serving/serving_counts.hpp"

/// The difference of two runs of speculative decoding, and what it is made of:
/// docs/theory.md#the-difference-of-two-runs.
namespace specdec::estimate {

/// The counts of one request, text or window of a run.
struct RunUnit {
  /// The same in both runs for the same prompt, or the same load of a benchmark; empty if unknown. Units of one prompt
  /// are one cluster.
  std::string prompt = {};
  /// Empty for none.
  std::string group = {};
  /// Verification rounds, or their expectation, > 0.
  double rounds = 0;
  double accepted = 0;
  /// [j - 1] = rounds whose first j drafts were all accepted; empty if unknown.
  std::vector<double> survived = {};
  /// Seconds of these rounds together.
  std::optional<double> seconds = {};
  /// Rounds and accepted drafts of the same text under the other run's acceptance rule.
  std::optional<RatioTerm> other_rule = {};
};

/// One unit of counts as a unit of a run; empty if it has no rounds, or no accepted drafts.
/// @param gamma  drafts of a round, for rounds that do not state them
/// @param by     the label that groups; an empty label: no groups
/// @throws traces::FileError if the counts contradict each other
std::optional<RunUnit> run_unit(const traces::ServingCounts& counts, std::optional<std::int64_t> gamma,
                                const LabelGroups& by);

/// Neighbours joined until there are `most` at most: windows of time resemble those beside them.
std::vector<RunUnit> joined_windows(std::vector<RunUnit> units, std::size_t most = 40);

/// The second run's figure less the first one's.
struct Difference {
  double value = 0;
  /// 95%; empty for fewer than two clusters in a run.
  std::optional<Interval> ci95;
  /// Two-sided, of no difference; 1 for a difference of at most 1e-6, which rounding to single precision makes.
  std::optional<double> p_value;

  /// Whether it is told from no difference, at p < 0.05.
  bool tells() const { return p_value && *p_value < 0.05; }
};

struct PositionDifference {
  std::int64_t position = 0;
  /// P(the first `position` drafts are all accepted), of all rounds; empty of a run that drafts fewer.
  std::optional<double> a = {}, b = {};
  Difference difference;
};

/// The share of one group of requests in the difference.
struct GroupDifference {
  std::string group;
  std::int64_t units_a = 0, units_b = 0;
  /// Shares of the rounds.
  double share_a = 0, share_b = 0;
  /// Tokens per step; empty if the run has none of the group.
  std::optional<double> tokens_a, tokens_b;
  /// The parts of its share, and of its acceptance, in the difference of tokens per step.
  double mix = 0;
  Difference acceptance;
};

/// Logarithms of ratios, second run over first: time per token = time of a round / tokens per step.
struct TimeDifference {
  double seconds_per_token_a = 0, seconds_per_token_b = 0;
  double seconds_per_round_a = 0, seconds_per_round_b = 0;
  /// log_per_token.value = log_round.value - log_tokens.value
  Difference log_per_token, log_round, log_tokens;
};

struct RunDifference {
  std::int64_t units_a = 0, units_b = 0;
  /// Prompts, or units whose prompt is unknown; and prompts of both runs.
  std::int64_t clusters_a = 0, clusters_b = 0, paired = 0;
  double tokens_a = 1, tokens_b = 1;
  /// The difference of tokens per step, the bonus token included.
  Difference tokens;
  /// One for each draft, adding up to `tokens`; empty if a run does not count positions.
  std::vector<PositionDifference> positions;
  /// By shares of groups and by acceptance within them, adding up to `tokens`; empty without a group that both have.
  std::optional<Difference> mix, within;
  std::vector<GroupDifference> groups;
  /// By the rule alone, of texts replayed under both; the rest of `tokens` is that of the drafts and texts.
  std::optional<Difference> rule;
  /// Set if every unit is timed.
  std::optional<TimeDifference> time;
  /// Clusters of each run with which a difference of this size is found at p < 0.05 in four runs of five; empty without
  /// an interval or a difference.
  std::optional<double> clusters_to_tell;
  /// The difference of tokens per step that as many clusters as these find so.
  std::optional<double> detectable;
};

/// Compares two runs. With tau = 1 + sum_k A_k / M, M = sum_k M_k rounds over the clusters k of a run:
///
///   by position   tau_b - tau_a = sum_j (S_j,b - S_j,a)
///   by group      sum_g (r_g,b - r_g,a) (tau_g,a + tau_g,b) / 2 + sum_g (tau_g,b - tau_g,a) (r_g,a + r_g,b) / 2,
///                 r_g the group's share of the rounds; a group that a run lacks has the other's tau_g there
///   by rule       half of what the other run's rule changes in b, less half of what it changes in a
///   in time       log T_b / T_a = log s_b / s_a - log tau_b / tau_a, s the time of a round
///
/// Standard errors are by linearisation with each cluster left out in turn, u_k the influence of cluster k on a run's
/// figure and h_k = M_k / M its leverage:
///
///   se^2 = sum_k (c_b u_k,b / (1 - h_k,b) - c_a u_k,a / (1 - h_k,a))^2,   c^2 = (K - 1) / K
///
/// over the clusters of both runs together, so that those of the same prompt are paired. Degrees of freedom are
/// Satterthwaite's over the clusters of both, of the first alone, and of the second alone.
/// Source:   Cochran 1977, section 6.3; Tukey 1958; groups: Kitagawa 1955
/// Assumes:  clusters are independent
/// @throws std::invalid_argument if a run has no units, or a unit no rounds
RunDifference run_difference(std::span<const RunUnit> a, std::span<const RunUnit> b);

}  // namespace specdec::estimate
