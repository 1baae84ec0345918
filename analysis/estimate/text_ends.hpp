#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "analysis/estimate/replay_estimates.hpp"
#include "analysis/estimate/run_difference.hpp"
#include "traces/note.hpp"

namespace specdec::estimate {

/// Texts that end are said to matter where without their ends the figures would be higher by more than this part.
inline constexpr double text_ends_matter = 0.02;

/// Without a cost, which tells the gamma that matters, ends are looked for up to this one.
inline constexpr std::int64_t deepest_usual_gamma = 8;

/// A step at the end of a text costs all its drafts but yields only the tokens left, so that a recording of short texts
/// shows less than longer ones of the same acceptance. Warns ("short_texts") where
///
///   max_g S_unended(g) / max_g S(g) - 1 > text_ends_matter,   S_unended = S unended_tokens / tokens,
///
/// or where the best gamma drafts a text of mean length in one step, so that no larger one can show more; without a
/// cost where unended_tokens / tokens - 1 is above it at a gamma up to deepest_usual_gamma.
///
/// Source:   docs/theory.md#the-best-gamma-of-a-recording
/// @param report  report of a whole recording, or of the lower ends of its brackets; no note if it lacks
///                GammaReplay::unended_tokens_per_step
/// @param upper   that of the upper ends, if acceptance is known in brackets: the note says which end it is of
/// @param texts   what the report took for texts, in the plural
std::optional<Note> short_texts(const ReplayReport& report, const std::optional<ReplayReport>& upper = {},
                                std::string_view texts = "texts");

/// Warns ("no_draft_looked_at") where every text holds one token, which a step yields without any draft.
std::optional<Note> no_draft_looked_at(const ReplayReport& report);

/// What the ends of texts are of a difference d = tau_b - tau_a of tokens per step between two recordings.
struct EndsInDifference {
  /// d' = tau'_b - tau'_a with GammaReplay::unended_tokens_per_step as tau'; empty if one of them is.
  std::optional<double> unended;
  /// Tokens of a text.
  double mean_length_a = 0, mean_length_b = 0;
  /// d may be one of lengths alone: d' / d < 1/2, or the interval of d moved by d' - d contains 0. Without d': the
  /// mean lengths differ.
  bool may_be_all = false;
  /// |d' - d| is above text_ends_matter of the smaller tau, or unknown while the mean lengths differ.
  bool matter = false;
};

/// Source:   docs/theory.md#the-difference-of-two-runs
/// @param a,b         reports of whole recordings up to `gamma` or more
/// @param gamma       that of d
/// @param difference  d with its interval
EndsInDifference ends_in_difference(const ReplayReport& a, const ReplayReport& b, std::int64_t gamma,
                                    const Difference& difference);

}  // namespace specdec::estimate
