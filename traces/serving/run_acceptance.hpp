#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "traces/serving/run_cells.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// What the rows of a table of runs say of acceptance, each by the best that it has: counts, counts from rates of so
/// many rounds, a mean of unknown rounds.
class RunAcceptance {
 public:
  RunAcceptance(const RunCells& cells, ServingCounts& counts) : cells_(cells), counts_(counts) {}

  /// Takes those of the row that the cells hold; counts_.gamma is what the row states.
  /// @param plain     it does not speculate
  /// @param repeated  other rows have the same counts, which are of all of them together
  /// @throws FileError where two figures of one thing contradict each other, or one is impossible
  void take(bool plain, bool repeated);
  void require_draft_of(double gamma) const;
  /// The first rate that is another than the length's, with its line; empty if there is none.
  const std::string& contradiction() const { return contradiction_; }

 private:
  RunColumn acceptance_column() const;
  std::optional<CellNumber> tokens_per_step() const;
  void take_counts();
  /// Counts in full, or counted back from rates of so many rounds; what is given twice must agree as it is rounded.
  void take_counted(const std::optional<CellNumber>& tokens);
  void require_as_counted(RunColumn what, const std::optional<CellNumber>& given, double counted,
                          std::string_view formula) const;
  /// @return whether the counts by position are exact, or there are none
  bool take_positions(double rounds);
  /// The mean of a run of unknown rounds.
  void take_mean(std::optional<CellNumber> tokens);
  /// Of the columns by position those that this row drafts.
  std::size_t drafted_positions() const;
  /// Refuses rates of positions that are not drafted.
  void require_no_rate_from(std::size_t position) const;
  std::string heading_of_position(std::size_t j) const;
  /// 1 + the sum of the rates of all positions; empty where one is not there.
  std::optional<CellNumber> tokens_of_positions() const;
  std::optional<CellNumber> acceptance_rate() const;
  /// Notes a rate that is another than the tokens per step are of.
  void compare_rate(const CellNumber& rate, const CellNumber& tokens);
  /// Rounds of a summary that says its tokens: all but the first of each request are made in them.
  void take_rounds_of_tokens();
  void leave_mean_alone();
  void take_shape();

  const RunCells& cells_;
  ServingCounts& counts_;
  std::string contradiction_;
};

}  // namespace specdec::traces
