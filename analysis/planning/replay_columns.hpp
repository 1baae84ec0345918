#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimate/observations.hpp"
#include "traces/position_batch.hpp"

namespace specdec::planning {

/// The acceptance of each position as replay wants it, whatever the batches hold: one number of depths throughout, and
/// no holes.
///
///   a_t unknown        the bracket [0, 1]
///   fewer depths       the last column is held
///   more depths        the further columns are cut
///   accepted length    draft j of the round from s is accepted iff it emits more than j tokens: a_(s+j-1, j) is 0 or 1
class ReplayColumns {
 public:
  /// @param max_gamma  depths that an accepted length is spread over
  /// @param first      the first batch, which says how many depths there are
  ReplayColumns(std::int64_t max_gamma, const estimate::Observations& first);

  std::int64_t depths() const { return depths_; }
  /// Whether a batch had more depths than the first one, which are lost.
  bool cuts_depths() const { return cuts_depths_; }

  /// The next batch.
  /// @return false if it says nothing of acceptance
  bool take(const estimate::Observations& seen);

  /// Of the batch taken last, whose columns they may show. Shape: (positions, depths)
  std::span<const double> lower() const { return lower_; }
  std::span<const double> highest() const { return upper_; }
  bool exact() const { return exact_; }

 private:
  void take_rates(const estimate::Observations& seen);
  void take_lengths(const estimate::Observations& seen);
  /// Steps to the next position; says how many of its sequence lie before it.
  std::int64_t next_of(std::int64_t sequence);

  std::int64_t max_gamma_;
  std::int64_t depths_;
  bool cuts_depths_ = false;
  std::span<const double> lower_;
  std::span<const double> upper_;
  bool exact_ = true;
  std::vector<double> own_lower_;
  std::vector<double> own_upper_;
  std::int64_t sequence_ = -1;
  std::int64_t length_ = 0;            // of the current sequence so far
  std::vector<std::int32_t> lengths_;  // its accepted lengths, the last `depths` ones at least
};

/// Why take() refused what a batch shows, in words.
std::string nothing_of_acceptance(const traces::PositionBatch& batch);

}  // namespace specdec::planning
