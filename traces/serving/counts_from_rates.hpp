#pragma once

#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// Figures of some rounds as a log line prints them.
struct PrintedRates {
  double accepted = 0;
  double drafted = 0;
  /// 1 + accepted / rounds, to two decimals.
  double mean_length = 0;
  /// Rounds whose draft j + 1 was accepted / rounds, to three decimals; empty where not printed.
  std::span<const double> rates;
  /// Rounds draft as many tokens as there are rates but for exceptions; else a draft may be of any length, and rates
  /// be missing at positions where nothing was accepted.
  bool full_drafts = false;
  /// Passes of the target, where they are known: there are no more rounds.
  double passes = std::numeric_limits<double>::infinity();
};

struct CountsFromRates {
  /// Whether any integers round to what is printed.
  bool consistent = false;
  /// Where nothing was accepted no rate tells, and drafts may have any length: then `passes`, else empty.
  std::optional<double> rounds;
  /// The fewest and the most that round to the mean length, where they are several.
  std::optional<std::pair<double, double>> between;
  std::vector<double> accepted_at;
};

/// The whole numbers that a line's roundings come from. Where several fit: the rounds at which every draft is of full
/// length if full_drafts, else those nearest to accepted / (mean_length - 1).
CountsFromRates counts_from_rates(const PrintedRates& printed);

}  // namespace specdec::traces
