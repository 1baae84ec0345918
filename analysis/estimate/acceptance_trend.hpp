#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace specdec::estimate {

/// Rounds at one place of what orders them: a moment, a load, a context.
struct TrendCell {
  /// That of the first part, and where it stands: the file's number and the line, 0 without one.
  double place = 0;
  std::size_t file = 0;
  std::int64_t line = 0;
  double accepted = 0, rounds = 0;
  bool empty = true;

  void add(const TrendCell& other) {
    if (std::exchange(empty, false)) {
      place = other.place;
      file = other.file;
      line = other.line;
    }
    accepted += other.accepted;
    rounds += other.rounds;
  }
};

/// The change of tokens per step over an order.
struct AcceptanceTrend {
  /// "time", "requests at once" or "prompt tokens".
  std::string_view over = "time";
  /// A jump between two parts; else a line.
  bool jump = false;
  /// Tokens per step of the two parts, or at the ends of the line.
  double before = 1, after = 1, mean = 1;
  /// Fitted, after - before.
  double change = 0;
  /// Units in order, and the places of the first and the last cell.
  double units = 0, first_place = 0, last_place = 0;
  /// The first cell after a jump, and where it stands as a message names it.
  TrendCell turn = {};
  std::string turn_at = {};
  /// P(so large a change | none), both forms and all places of a jump counted.
  double p_value = 1;
  /// Standard error of the change, and its degrees of freedom.
  double error = 0, degrees_of_freedom = 1;

  /// A change that somebody would act on, and that one in 500 records without one shows.
  bool stands() const;
  /// The smallest relative change that a test at this probability would have found.
  double least_change(double p_value) const;
};

/// Fewer cells show no change.
inline constexpr std::size_t least_trend_cells = 8;
/// Smaller changes of tokens per step, as a share, change nothing that somebody does.
inline constexpr double least_trend = 0.15;

/// The better of a line and, where `jumps`, of two parts, by least squares weighted by rounds. The error is that of the
/// residuals, widened where neighbours resemble each other (NeighbourCorrelation), so that clusters of rounds need not
/// be known; the probability is Student's.
/// @param cells  in order
/// @return empty for fewer than least_trend_cells with rounds, or where all are at one place
/// Source:   docs/theory.md#acceptance-from-counters
std::optional<AcceptanceTrend> acceptance_trend(std::span<const TrendCell> cells, bool jumps);

}  // namespace specdec::estimate
