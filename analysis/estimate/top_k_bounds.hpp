#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimate/estimate.hpp"
#include "traces/position_source.hpp"

namespace specdec::estimate {

/// One model's most probable tokens at one position; see traces::TopK for the conventions.
struct TopKList {
  std::span<const std::int32_t> ids;
  std::span<const float> logprobs;
  /// Log of the mass of all other tokens; NaN if unknown.
  double tail_logprob = 0;
  /// This model's log-probabilities at the other's ids; may be empty.
  std::span<const float> at_other;
};

struct TopKPair {
  TopKList target;
  TopKList draft;
  /// Size of the vocabulary, if known.
  std::optional<std::int64_t> vocab;
  /// The emitted token, -1 if unknown, and its log-probabilities, NaN if they were not recorded.
  std::int64_t token = -1;
  double target_token_logprob = 0;
  double draft_token_logprob = 0;
};

/// The bounds that two lists put on the pair of distributions. Exact if lo = hi.
struct TopKBounds {
  Interval overlap;
  /// Probability of the emitted token; [0, 1] if unknown.
  Interval target_token_probability;
  Interval draft_token_probability;
  /// min(1, q / p) of the emitted token; 1 if p = 0 < q, 0 if both are 0.
  Interval acceptance;
  std::int64_t target_argmax = -1;
  std::int64_t draft_argmax = -1;
  double draft_max = 0;
  /// p(argmax q).
  Interval target_at_draft_argmax;
};

/// A function of the emitted token less its mean given the prefix, and its variance given the prefix; NaN if unknown.
struct ListedDeviation {
  double value = std::numeric_limits<double>::quiet_NaN();
  double variance = std::numeric_limits<double>::quiet_NaN();
};

/// What the lists tell of the emitted token whichever it is.
///
///   T = the target's tokens above its (k - 1)th probability, k its list's width, or all if the list holds all mass;
///       D = the draft's in the same way. No emitted token that an engine appends can be in these
///   S = the tokens of T and D whose probability by the other model is known by that model's set or by its
///       log-probabilities at the list
///
/// Source:   docs/theory.md#was-the-text-sampled-from-the-target
struct ListedDeviations {
  /// min(1, q / p) of a token of S, 0 of any other.
  ListedDeviation acceptance;
  /// -log p of a token of T; minus the log of the mass outside T of any other.
  ListedDeviation surprisal;
  /// 1 for argmax q, 0 for any other token, where p(argmax q) is known by T or by the target's log-probabilities at the
  /// draft's list.
  ListedDeviation first;
};

/// The reason why a list does not belong to any distribution.
struct TopKFault {
  traces::Role role;
  std::string found;
  std::string expected;
};

/// Bounds from two top-k lists, each token of which is at least as probable as every token outside it. The emitted
/// token is the exception: engines append it to their lists.
///
///   tail mass t = exp(tail), or 1 - sum of the list if the tail is unknown; a token outside the list has at most
///   m = min(the smallest of the list, t)
///   A = sum of min(p, q) over tokens with both known
///   u = min(t_q, sum of min(p, m_q) over tokens with only p known),   v the same with p and q exchanged
///   w = (vocabulary - tokens in either list) min(m_p, m_q)
///   A <= sum min(p, q) <= A + min(t_p + u, t_q + v, u + v + w)
///
/// where t excludes what is known besides the list. Nothing is renormalised.
///
/// Source:   docs/theory.md#bounds-from-top-k-lists
/// @param tolerance  largest excess of the list's sum over 1, or difference of list and tail together from 1
/// @param out        unspecified after a fault
class TopKBounder {
 public:
  std::optional<TopKFault> bounds(const TopKPair& pair, double tolerance, TopKBounds& out);
  /// Of the pair for which `bounds` last found no fault; its token must be known.
  ListedDeviations deviations(const TopKPair& pair) const;

 private:
  /// A token of a list, with the other model's probability of it, NaN if unknown.
  struct Entry {
    std::int32_t id;
    double own;
    double other;
  };
  /// One list, sorted by id, and its bounds for all other tokens.
  struct List {
    std::vector<Entry> entries;
    double tail = 0;
    double largest_outside = 0;
    std::int64_t argmax = -1;
    double max = 0;
    /// Tokens above this are in the list whatever was emitted.
    double sure_above = 0;

    const Entry* find(std::int64_t id) const;
    /// The entry, if it is in the list whatever was emitted.
    const Entry* find_sure(std::int64_t id) const;
    bool is_sure(const Entry& entry) const { return entry.own > sure_above; }
  };
  static std::optional<TopKFault> read(const TopKPair& pair, traces::Role role, double tolerance, List& out);

  List target_, draft_;
};

/// Largest distance from 1 of the sum of a list and its tail: lists are stored in F32, but come from rows of any type.
inline constexpr double top_k_tolerance = 1e-2;

/// The two lists of position i of a top-k batch, with everything else recorded about it.
TopKPair pair_at(const traces::PositionBatch& batch, std::optional<std::int64_t> vocab, std::int64_t i);

/// True if a recorded log-probability stands for probability 0: -9999 and below.
inline bool means_zero(double logprob) { return logprob <= -9999; }

/// exp of a recorded log-probability: 0 at and below -9999; rounding above 1 is clamped; NaN stays.
double probability_of_logprob(double logprob);

}  // namespace specdec::estimate
