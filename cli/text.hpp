#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/estimate/estimate.hpp"

namespace specdec::cli {

/// Width that human output keeps to.
inline constexpr std::size_t text_width = 100;

/// A number for a human, to a few significant digits.
std::string brief(double value, int digits = 4);

/// A number in a column: three decimals where they show it well, else as brief.
std::string in_column(double value);

/// A share in [0, 1] in per cent, to two digits; what is nearly everything is not rounded to 100%.
std::string percent(double share);

/// An estimate to so many decimals with its 95% interval: "1.97 +-0.04" where that lies evenly around the value to a
/// tenth of its half, else "1.97 [1.90, 2.00]"; the value alone where there is none.
std::string with_interval(const estimate::Estimate& estimate, int decimals);

/// `text` broken at blanks into lines of at most text_width characters; continuation lines are indented.
std::string wrapped(std::string_view text, std::size_t indent = 0);

/// `text` with control characters written as \xNN, so that it stays one line and leaves a terminal as it is.
std::string without_control_characters(std::string_view text);

/// Columns aligned under their headings, right-aligned unless told otherwise, two blanks apart.
class TextTable {
 public:
  enum class Align { left, right };
  struct Column {
    std::string heading;
    Align align = Align::right;
  };

  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// @throws std::invalid_argument unless there is one cell for each column
  void add_row(std::vector<std::string> cells);
  /// A line of its own across the columns, above the rows that follow.
  void add_heading(std::string heading) { headings_.emplace_back(rows_.size(), std::move(heading)); }
  std::string to_string() const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
  /// Before which row each stands.
  std::vector<std::pair<std::size_t, std::string>> headings_;
};

}  // namespace specdec::cli
