#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/core/row_statistics.hpp"
#include "analysis/estimate/position_labels.hpp"
#include "traces/position_batch.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::estimate {

/// A quantity at each position that is known exactly or only within a bracket. NaN if it is unknown.
struct Bracketed {
  std::vector<double> lower;
  /// Empty if every position is exact: upper then equals lower.
  std::vector<double> upper;

  bool empty() const { return lower.empty(); }
  bool exact() const { return upper.empty(); }
  /// False if the entry is unknown.
  bool exact_at(std::size_t i) const { return lower[i] == highest()[i]; }
  const std::vector<double>& highest() const { return upper.empty() ? lower : upper; }
};

/// A function of the emitted token at each position, less its mean given the prefix, and a variance given the prefix
/// that is not exceeded; both NaN where unknown, which must not depend on the emitted token. Empty if nothing is known.
struct Deviations {
  std::vector<double> value;
  std::vector<double> variance;
};

/// The acceptance data of a batch of positions, as columns of doubles; a column that the recording cannot provide is
/// empty. p_t and q_t are the two distributions at position t and x_t is the emitted token, standardised as sampled.
struct Observations {
  std::int64_t first = 0;
  std::int64_t size = 0;
  traces::Tier tier = traces::Tier::scalar;
  traces::AcceptanceRule rule = traces::AcceptanceRule::rejection;

  std::span<const std::int64_t> sequence;
  std::span<const std::int64_t> place;
  std::span<const std::int32_t> token;
  /// -1 for none; empty if the trace has no tasks.
  std::span<const std::int32_t> task;
  /// traces::no_prompt if unknown; empty if the trace has no prompts.
  std::span<const std::int64_t> prompt;
  PositionLabels labels() const { return {sequence, task, prompt}; }

  /// a_t: the probability that the emitted token, if proposed here, would have been accepted. In [0, 1].
  /// Shape: (positions, depths); column j is the draft at depth j + 1 of its round.
  Bracketed acceptance;
  std::int64_t depths = 1;
  /// E[a_t | prefix] under the rule: sum min(p, q) for rejection, p(argmax q) for greedy_draft, the indicator of equal
  /// argmax for greedy. Shape: (positions).
  Bracketed mean_acceptance;

  /// The mean acceptance under every rule that the tier allows, indexed by AcceptanceRule; empty for the others.
  std::array<Bracketed, 3> by_rule;

  /// D_LK of the pair at this prefix.
  Bracketed d_lk;
  std::vector<double> target_entropy;  ///< nats
  /// The largest probability of the draft's distribution; at temperature 0 that of its row as stored.
  std::vector<double> draft_top_probability;
  /// -log p_t(x_t).
  std::vector<double> surprisal;
  /// -log p_t of the token before x_t in its sequence, and of the one after it: by these TextSourceAccumulator tests
  /// whether the rows are shifted. Infinite if p_t lacks it, NaN at the ends of a sequence or batch. Full tier only.
  std::vector<double> surprisal_of_previous, surprisal_of_next;
  /// Of a_t and of -log p_t(x_t), as far as the recording tells them whatever token is emitted; by these
  /// TextSourceAccumulator tests whether the text is the target's own.
  /// Source:   docs/theory.md#was-the-text-sampled-from-the-target
  Deviations acceptance_deviation, surprisal_deviation;
  /// q_t(x_t): the probability seen by a policy that looks at the drafted token.
  std::vector<double> draft_token_probability;

  /// min q / p over the tokens that p has (Appendix A.2). Full tier only, if requested.
  std::vector<double> rejection_sampling_acceptance;

  /// One column per requested lenience, shape (lenience, positions): alpha_l under the rule and the total variation of
  /// a drafted position's token from p under the two residuals. Full tier only.
  std::vector<std::vector<double>> lenient_acceptance;
  std::vector<std::vector<double>> lenient_distance_strict;
  std::vector<std::vector<double>> lenient_distance_lenient;

  /// Drafted tokens by the probability that the draft gives them; shape (bins, positions). Under the greedy rules only
  /// the one token that is drafted. Full tier only, if bins were requested.
  std::vector<std::vector<core::DraftConfidence>> by_confidence;

  /// Tokens that a round from here would emit (accepted-length tier).
  std::span<const std::int32_t> accepted_length;
};

}  // namespace specdec::estimate
