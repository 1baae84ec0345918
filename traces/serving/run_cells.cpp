#include "traces/serving/run_cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "traces/file_error.hpp"
#include "traces/formats/printable.hpp"
#include "traces/serving/counted_fields.hpp"

namespace specdec::traces {
namespace {

/// Longest text of a file that a message repeats.
constexpr std::size_t longest_shown = 80;

bool is_figure(RunColumn what) { return RunColumn::concurrency <= what && what <= RunColumn::total_output; }

bool may_repeat(RunColumn what) {
  return what == RunColumn::unknown || what == RunColumn::unused || what == RunColumn::unclear ||
         what == RunColumn::setting;
}

}  // namespace

RunCells::RunCells(const std::filesystem::path& path, const TextTable& table) : path_(path), table_(&table) {
  for (const std::string& name : table.names) {
    columns_.push_back(column_of(name));
    take_unit_of_cells(columns_.size() - 1);
    place(columns_.size() - 1);
  }
  positions_.erase(std::find(positions_.begin(), positions_.end(), columns_.size()), positions_.end());
  resolve_steps();
  resolve_draft_tokens();
  find_setting();
  find_dividing();
  for (const TextTable::Row& row : table.rows) {
    for (std::size_t i = 0; i < std::min(row.cells.size(), columns_.size()); ++i)
      decimal_comma_ = decimal_comma_ || (is_figure(columns_[i].what) && has_decimal_comma(row.cells[i]));
  }
  find_scale(positions_);
  if (has(RunColumn::acceptance_rate)) find_scale({places_.at(RunColumn::acceptance_rate)});
}

void RunCells::place(std::size_t i) {
  const NamedColumn& column = columns_[i];
  if (column.what == RunColumn::accepted_at) {
    // Columns in another order than their positions leave gaps until the last of them comes.
    const std::size_t none = table_->names.size();
    if (column.position >= none) return;
    if (positions_.size() <= column.position) positions_.resize(column.position + 1, none);
    positions_[column.position] = i;
    return;
  }
  const auto known = places_.find(column.what);
  if (known != places_.end() && columns_[known->second].by_words != column.by_words) {
    // A heading that is known as a whole comes before one of which some words are.
    const std::size_t weaker = column.by_words ? i : known->second;
    known->second = column.by_words ? known->second : i;
    columns_[weaker].what = RunColumn::unknown;
    return;
  }
  const auto [placed, is_new] = places_.emplace(column.what, i);
  if (is_new || (may_repeat(column.what) && column.what != RunColumn::setting)) return;
  const NamedColumn& before = columns_[placed->second];
  if (column.what == RunColumn::setting || before.statistic == Statistic::mean ||
      column.statistic == Statistic::median || table_->summary)
    return;
  if (before.statistic == column.statistic) {
    refuse_column(i, fmt::format("there twice, also as {}", printable(table_->names[placed->second], longest_shown)),
                  "there once");
  }
  placed->second = i;
}

/// A speed is that of tokens where its cells say so.
void RunCells::take_unit_of_cells(std::size_t i) {
  NamedColumn& column = columns_[i];
  if (column.what != RunColumn::unclear || !column.unit.empty()) return;
  for (const TextTable::Row& row : table_->rows) {
    const auto number = any_number(row, i);
    if (!number || number->unit.empty()) continue;
    if (scale_of_unit(RunColumn::throughput, number->unit)) column.what = RunColumn::throughput;
    return;
  }
}

/// Nobody drafts as many tokens as a run has rounds.
bool RunCells::exceeds_drafts(std::size_t i) const {
  constexpr double longest = 64;
  return std::any_of(table_->rows.begin(), table_->rows.end(), [&](const TextTable::Row& row) {
    const auto number = any_number(row, i);
    return number && number->value > longest;
  });
}

void RunCells::resolve_steps() {
  const auto found = places_.find(RunColumn::steps);
  if (found == places_.end()) return;
  NamedColumn& column = columns_[found->second];
  column.what = exceeds_drafts(found->second) ? RunColumn::rounds : RunColumn::gamma;
  places_.emplace(column.what, found->second);
  places_.erase(RunColumn::steps);
}

/// The first column whose cells say how a run drafts, else one that is named for it. Beside gamma it tells the method.
void RunCells::find_setting() {
  const std::size_t none = table_->names.size();
  std::size_t i = has(RunColumn::gamma) ? none : setting_column(*table_);
  for (std::size_t named = 0; i == none && named < none; ++named) {
    const auto tells = [named](const TextTable::Row& row) {
      return named < row.cells.size() && !method_in_setting(row.cells[named]).empty();
    };
    if (columns_[named].what == RunColumn::setting && std::any_of(table_->rows.begin(), table_->rows.end(), tells))
      i = named;
  }
  if (i == none) return;
  columns_[i].what = RunColumn::setting;
  places_[RunColumn::setting] = i;
  const std::string& name = columns_[i].name;
  counts_in_setting_ = name == "spec" || name == "speculation" || name == "speculative";
}

void RunCells::find_dividing() {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (columns_[i].what != RunColumn::unknown) continue;
    std::set<std::string_view> values;
    for (const TextTable::Row& row : table_->rows)
      if (i < row.cells.size()) values.insert(row.cells[i]);
    if (values.size() > 1 && 2 * values.size() <= table_->rows.size()) dividing_.push_back(i);
  }
}

std::pair<std::string, std::string> RunCells::named(std::size_t i) const {
  return {printable(table_->names[i], longest_shown), printable(bare_cell(row_->cells[i]), longest_shown)};
}

std::size_t setting_column(const TextTable& table) {
  for (std::size_t i = 0; i < table.names.size(); ++i) {
    const RunColumn what = column_of(table.names[i]).what;
    const bool says = std::any_of(table.rows.begin(), table.rows.end(), [i](const TextTable::Row& row) {
      return i < row.cells.size() && (says_plain(row.cells[i]) || gamma_in_setting(row.cells[i]));
    });
    if (says && (what == RunColumn::unknown || what == RunColumn::setting)) return i;
  }
  return table.names.size();
}

void RunCells::resolve_draft_tokens() {
  const auto found = places_.find(RunColumn::draft_tokens);
  if (found == places_.end()) return;
  NamedColumn& column = columns_[found->second];
  const bool by_steps = has(RunColumn::gamma) && this->column(RunColumn::gamma).name.ends_with("steps");
  const bool of_tree = has(RunColumn::topk) || by_steps;
  const bool counted = has(RunColumn::rounds) || has(RunColumn::accepted);
  const bool of_a_round = !has(RunColumn::gamma) && setting_column(*table_) == table_->names.size() &&
                          !column.name.starts_with("num_") && !exceeds_drafts(found->second);
  column.what = of_tree      ? RunColumn::verified
                : counted    ? RunColumn::drafted
                : of_a_round ? RunColumn::gamma
                             : RunColumn::unclear;
  column.advice = "gamma for the drafts of a round, or drafted_tokens beside rounds for all of them";
  places_.emplace(column.what, found->second);
  places_.erase(RunColumn::draft_tokens);
}

/// Whether columns of shares are percentages: by their headings and cells, or by values above 1.
void RunCells::find_scale(const std::vector<std::size_t>& of) {
  bool said = false;
  double largest = 0;
  for (const std::size_t i : of) {
    said = said || columns_[i].unit == "%";
    for (const TextTable::Row& row : table_->rows) {
      const auto number = any_number(row, i);
      if (!number) continue;
      said = said || number->unit == "%";
      largest = std::max(largest, number->value);
    }
  }
  if (said && 0 < largest && largest <= 1 && !(has(RunColumn::rounds) && has(RunColumn::accepted))) {
    refuse_column(of.front(), fmt::format("in per cent, but {} at most, as shares are", shown(largest)),
                  "a percentage, or a share without %");
  }
  // Lengths of drafts are as large.
  constexpr double clearly_percent = 20;
  if (!said && 1 < largest && largest <= clearly_percent) {
    refuse_column(of.front(), fmt::format("{} at most, no share and hardly a percentage", shown(largest)),
                  "a share, a percentage with %, or tokens_per_step for a length");
  }
  for (const std::size_t i : of) scales_[i] = said || largest > 1 ? 0.01 : 1;
}

std::string RunCells::heading(RunColumn what, std::string_view otherwise) const {
  const auto found = places_.find(what);
  return found == places_.end() ? std::string(otherwise) : printable(table_->names[found->second], longest_shown);
}

std::pair<std::string, std::string_view> RunCells::unclear() const {
  const auto found = std::find_if(columns_.begin(), columns_.end(),
                                  [](const NamedColumn& column) { return column.what == RunColumn::unclear; });
  if (found == columns_.end()) return {};
  const auto i = static_cast<std::size_t>(found - columns_.begin());
  return {printable(table_->names[i], longest_shown), found->advice};
}

std::vector<std::string> RunCells::left_out() const {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const bool unknown = columns_[i].what == RunColumn::unknown && !table_->summary;
    if (unknown || columns_[i].what == RunColumn::unclear)
      names.push_back(printable(table_->names[i], longest_shown));
  }
  return names;
}

void RunCells::read(const TextTable::Row& row) {
  row_ = &row;
  if (row.cells.size() == table_->names.size()) return;
  const std::string text = fmt::format("{}", fmt::join(row.cells, ", "));
  refuse("row", fmt::format("{} fields long ({})", row.cells.size(), printable(text, longest_shown)),
         fmt::format("{} fields long, as the header is", table_->names.size()));
}

std::string_view RunCells::text(RunColumn what) const {
  const auto found = places_.find(what);
  return found == places_.end() ? std::string_view() : bare_cell(row_->cells[found->second]);
}

/// A number in any unit; empty where there is none.
std::optional<CellNumber> RunCells::any_number(const TextTable::Row& row, std::size_t i) const {
  return i < row.cells.size() ? number_of_cell(row.cells[i], decimal_comma_) : std::nullopt;
}

CellNumber RunCells::number_in(std::size_t i, std::string_view cell) const {
  const NamedColumn& column = columns_[i];
  auto number = number_of_cell(cell, decimal_comma_);
  const auto refuse_cell = [&](std::string expected) {
    refuse(printable(table_->names[i], longest_shown), printable(cell, longest_shown), std::move(expected));
  };
  if (!number) refuse_cell("a number");
  const bool of_share = column.what == RunColumn::acceptance_rate || column.what == RunColumn::accepted_at;
  const auto scale = scale_of_unit(column.what, number->unit.empty() ? column.unit : number->unit);
  if (!scale) {
    refuse_cell(fmt::format("in a unit of this column, which {} is not",
                            printable(number->unit.empty() ? column.unit : number->unit, longest_shown)));
  }
  const double by = of_share ? scales_.at(i) : *scale;
  const bool unit_stated = !column.unit.empty() || !number->unit.empty() || column.name.starts_with("ms");
  number->value *= by;
  number->rounding *= by;
  const bool a_time = column.what == RunColumn::ms_per_token || column.what == RunColumn::ms_between;
  if (a_time && !unit_stated && number->value > 0 && !(0.1 <= number->value && number->value <= 20000))
    refuse_cell(fmt::format("in milliseconds: write {0} (ms), or {0} (s)", printable(table_->names[i], longest_shown)));
  return *number;
}

std::optional<CellNumber> RunCells::number(RunColumn what, double least, bool whole) const {
  const std::string_view cell = text(what);
  if (cell.empty()) return std::nullopt;
  const CellNumber number = number_in(places_.at(what), cell);
  const bool above = least == 0 && !whole;
  const bool legal = (above ? number.value > 0 : number.value >= least) &&
                     !(whole && number.value != std::floor(number.value)) && number.value <= largest_count;
  if (!legal) {
    refuse(what, printable(cell, longest_shown),
           above ? "a number above 0" : fmt::format("a {}number, {:g} or above", whole ? "whole " : "", least));
  }
  return number;
}

std::optional<double> RunCells::value(RunColumn what, double least, bool whole) const {
  const auto found = number(what, least, whole);
  return found ? std::optional(found->value) : std::nullopt;
}

std::optional<CellNumber> RunCells::share_at(std::size_t position) const {
  const std::size_t i = positions_[position];
  const std::string_view cell = bare_cell(row_->cells[i]);
  if (cell.empty()) return std::nullopt;
  const CellNumber number = number_in(i, cell);
  if (!(0 <= number.value && number.value <= 1 + 1e-9))
    refuse(printable(table_->names[i], longest_shown), printable(cell, longest_shown), "a share of the rounds");
  return number;
}

void RunCells::refuse_column(std::size_t i, std::string found, std::string expected) const {
  throw FileError(path_, FileError::line(table_->line),
                  fmt::format("column {}", printable(table_->names[i], longest_shown)), std::move(found),
                  std::move(expected));
}

void RunCells::refuse(RunColumn what, std::string found, std::string expected) const {
  refuse(heading(what), std::move(found), std::move(expected));
}

void RunCells::refuse(std::string field, std::string found, std::string expected) const {
  throw FileError(path_, FileError::line(row_->line), std::move(field), std::move(found), std::move(expected));
}

}  // namespace specdec::traces
