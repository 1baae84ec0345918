#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

/// One option for each batch, in few stretches.
namespace specdec::worlds {

/// The expected regret of each option at a batch, as Choice::regrets.
struct BatchRegrets {
  /// Whole, >= 1.
  std::int64_t batch = 1;
  /// Share of the time that traffic spends around it, > 0; all shares need not sum to 1.
  double weight = 1;
  /// [option], of as many options at every batch.
  std::vector<double> regrets = {};
};

/// Neighbouring batches with one option.
struct Stretch {
  /// Both included.
  std::int64_t from = 1, to = 1;
  std::size_t option = 0;

  friend bool operator==(const Stretch&, const Stretch&) = default;
};

struct SchedulePrices {
  /// Regret, as a share of all weight, that another stretch has to save.
  double per_stretch = 0.0005;
  /// What a stretch that drafts more than the one before it, at smaller batches, has to save besides.
  double per_rise = 0.005;
  /// What a stretch costs in which nothing is drafted, beside one that drafts.
  double per_pause = 0;
  /// What several stretches cost an engine, however many; infinite where it has one option for all batches.
  double several = 0;
};

/// The stretches of least expected regret, by dynamic programming over batches and options:
///
///   min over options of  sum over batches of weight regret(option) / sum of weights
///                        + per_stretch (stretches - 1) + per_rise (rises) + per_pause (changes from or to
///                        option 0) + several, if they are
///
/// Batches between two of the list belong to the nearer one by their logarithms.
/// Source:   docs/theory.md#choices
/// @param batches  in increasing order, at least one
/// @throws std::invalid_argument if batches is empty or does not rise, or their options differ in number
std::vector<Stretch> schedule(const std::vector<BatchRegrets>& batches, const SchedulePrices& prices = {});

}  // namespace specdec::worlds
