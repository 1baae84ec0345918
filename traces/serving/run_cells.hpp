#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/serving/run_columns.hpp"
#include "traces/serving/text_table.hpp"

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// The first column that is of no other meaning and says in a cell how a run drafts; the number of columns if none does.
std::size_t setting_column(const TextTable& table);

/// A table of runs with the meaning of its columns.
class RunCells {
 public:
  /// @throws FileError for two columns of one meaning, or a share that could be a percentage
  RunCells(const std::filesystem::path& path, const TextTable& table);

  bool has(RunColumn what) const { return places_.count(what) > 0; }
  const NamedColumn& column(RunColumn what) const { return columns_[places_.at(what)]; }
  /// As the table writes it; `otherwise` where it has none.
  std::string heading(RunColumn what, std::string_view otherwise = {}) const;
  /// Places of the columns of accepted positions, by position.
  const std::vector<std::size_t>& positions() const { return positions_; }
  /// The first column that could be several things, and what to write instead; empty if there is none.
  std::pair<std::string, std::string_view> unclear() const;
  /// Headings of columns that are not read, though they may have been meant to be.
  std::vector<std::string> left_out() const;
  /// Whether the settings are "none" and numbers of draft tokens.
  bool counts_in_setting() const { return counts_in_setting_; }
  /// Places of columns that are not read and divide the rows: those in which values of few kinds come again.
  const std::vector<std::size_t>& dividing() const { return dividing_; }
  /// As the table writes the heading and the row's cell.
  std::pair<std::string, std::string> named(std::size_t i) const;
  const TextTable& table() const { return *table_; }

  /// A row of it. @throws FileError if the row is not as long as the header
  void read(const TextTable::Row& row);
  /// The cell without marks; empty where there is none.
  std::string_view text(RunColumn what) const;
  /// The number in the column's own unit. @throws FileError if it is none, or outside [least, most]
  std::optional<CellNumber> number(RunColumn what, double least, bool whole = false) const;
  std::optional<double> value(RunColumn what, double least, bool whole = false) const;
  /// The share at a position, in [0, 1].
  std::optional<CellNumber> share_at(std::size_t position) const;

  [[noreturn]] void refuse(RunColumn what, std::string found, std::string expected) const;
  [[noreturn]] void refuse(std::string field, std::string found, std::string expected) const;

 private:
  void place(std::size_t i);
  void take_unit_of_cells(std::size_t i);
  bool exceeds_drafts(std::size_t i) const;
  void resolve_steps();
  void resolve_draft_tokens();
  void find_setting();
  void find_dividing();
  void find_scale(const std::vector<std::size_t>& of);
  CellNumber number_in(std::size_t i, std::string_view cell) const;
  std::optional<CellNumber> any_number(const TextTable::Row& row, std::size_t i) const;
  [[noreturn]] void refuse_column(std::size_t i, std::string found, std::string expected) const;

  const std::filesystem::path& path_;
  const TextTable* table_;
  std::vector<NamedColumn> columns_;
  std::map<RunColumn, std::size_t> places_;
  std::vector<std::size_t> positions_, dividing_;
  /// By column, of shares: 0.01 of percentages.
  std::map<std::size_t, double> scales_;
  bool decimal_comma_ = false, counts_in_setting_ = false;
  const TextTable::Row* row_ = nullptr;
};

}  // namespace specdec::traces
