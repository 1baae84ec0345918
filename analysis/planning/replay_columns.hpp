#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimate/observations.hpp"
#include "traces/note.hpp"
#include "traces/position_batch.hpp"

namespace specdec::planning {

/// The acceptance of each position in the form that replay needs, whatever the batches hold: one number of depths
/// throughout, without gaps.
///
///   a_t unknown        the bracket [0, 1]
///   fewer depths       the last column is repeated
///   accepted length    draft j of the round from s is accepted iff it emits more than j tokens: a_(s+j-1, j) is 0 or 1
class ReplayColumns {
 public:
  /// @param depths  those of the deepest batch, of which the rest is held or unused; see
  ///                estimate::Observer::replayed_depths
  explicit ReplayColumns(std::int64_t depths) : depths_(depths) {}

  std::int64_t depths() const { return depths_; }

  /// The longest draft that the accepted lengths taken so far tell of: the largest one less the target's own token, at
  /// least 1. It is not known whether longer drafts were made. Empty without accepted lengths.
  std::optional<std::int64_t> longest_draft() const;

  /// A note ("depth_held") if drafts were recorded to some depth and those of this gamma go deeper.
  std::optional<Note> depth_held(std::int64_t gamma) const;

  /// Takes the next batch.
  /// @return false if it has no data on acceptance
  bool take(const estimate::Observations& seen);

  /// Columns of the batch taken last, into whose columns they may point. Shape: (positions, depths)
  std::span<const double> lower() const { return lower_; }
  std::span<const double> highest() const { return upper_; }
  bool exact() const { return exact_; }

  /// Adds what another object of as many depths saw in other sequences, for longest_draft.
  void merge(const ReplayColumns& other) { largest_length_ = std::max(largest_length_, other.largest_length_); }
  template <class Archive>
  void exchange(Archive& archive) {
    archive(largest_length_);
  }

 private:
  void take_rates(const estimate::Observations& seen);
  void take_lengths(const estimate::Observations& seen);
  /// Advances to the next position; returns how many positions of its sequence lie before it.
  std::int64_t next_of(std::int64_t sequence);

  std::int64_t depths_;
  std::span<const double> lower_;
  std::span<const double> upper_;
  bool exact_ = true;
  std::vector<double> own_lower_;
  std::vector<double> own_upper_;
  std::int64_t sequence_ = -1;
  std::int32_t largest_length_ = 0;    // the largest accepted length taken
  std::int64_t length_ = 0;            // length of the current sequence so far
  std::vector<std::int32_t> lengths_;  // its accepted lengths, at least the last `depths` ones
};

/// Whether a batch has the distributions, but not the emitted tokens, without which some rules know no acceptance.
bool lacks_tokens(const traces::PositionBatch& batch);

/// The reason why take() rejected a batch, in words.
std::string nothing_of_acceptance(bool lacks_tokens);

/// The reason why longer drafts than ReplayColumns::longest_draft() are not replayed.
std::string no_longer_draft(std::int64_t longest);

}  // namespace specdec::planning
