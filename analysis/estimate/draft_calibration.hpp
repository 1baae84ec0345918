#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/core/state_archive.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/observations.hpp"
#include "analysis/estimate/text_sums.hpp"

namespace specdec::estimate {

/// Drafted tokens to which the draft gave a probability in [lo, hi); the last bin includes its end.
struct CalibratedBin {
  double lo = 0;
  double hi = 0;
  /// The positions at which such a token can be drafted.
  std::int64_t positions = 0;
  /// Expected number of such tokens if one token is drafted at each position.
  double drafted = 0;
  /// Their mean probability by the draft, and the share of them that is accepted; empty if none is drafted.
  std::optional<double> confidence;
  std::optional<Estimate> acceptance;
};

/// Acceptance of drafted tokens by the probability that the draft gave them (the basis of a confidence
/// policy), and by the largest probability of its distribution. Tokens are weighted as the draft samples them, not
/// as the text contains them, since the text favours the target's choices.
///
///   acceptance = sum_t accepted_t / sum_t drafted_t   over the positions t, with core::DraftConfidence's sums;
///                by the largest probability: one token is drafted, and its mean acceptance counts as accepted
///
/// The interval is that of a ratio of sums over clusters with Student's t, within [0, 1]; for a single sequence that of
/// batches of its positions. Sequences in which no token of a bin was drafted do not count for that bin.
/// Source:   docs/theory.md#draft-calibration
class DraftCalibration {
 public:
  /// @param bins  number of equal bins of [0, 1], >= 0; 0 for none
  explicit DraftCalibration(std::int64_t bins);

  /// Adds the next positions, in order. Those without Observations::by_confidence are left out of by_token, those
  /// without an exact mean acceptance out of by_top.
  /// @throws std::invalid_argument if the positions have a different number of bins
  void add(const Observations& observations);
  /// Adds the texts of another object with as many bins, none of which is in this one.
  void merge(const DraftCalibration& other);

  /// Ends the open text.
  template <class Archive>
  void exchange(Archive& archive) {
    archive(core::fixed_length(by_token_), core::fixed_length(by_top_), positions_, positions_with_top_);
  }

  /// The number of positions with whole rows.
  std::int64_t positions() const { return positions_; }
  /// By the probability of the drafted token; empty if no position had whole rows.
  std::vector<CalibratedBin> by_token() const;
  /// By the largest probability of the draft's distribution; empty if no position determines it.
  std::vector<CalibratedBin> by_top() const;

 private:
  /// Accepted and drafted tokens, and their probabilities.
  using Bin = TextSums<3>;
  static std::vector<CalibratedBin> told(const std::vector<Bin>& bins);

  std::vector<Bin> by_token_, by_top_;
  std::int64_t positions_ = 0;
  std::int64_t positions_with_top_ = 0;
};

}  // namespace specdec::estimate
