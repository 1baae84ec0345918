#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/csv_records.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/recording_formats.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/formats/token_pair_columns.hpp"

namespace specdec::traces {
namespace {

/// A tab may be the field separator.
std::string_view without_spaces(std::string_view text) { return trimmed(text, " "); }

std::string_view without_quotes(std::string_view text) {
  return text.size() >= 2 && text.starts_with('"') && text.ends_with('"') ? text.substr(1, text.size() - 2) : text;
}

class CsvPairs final : public TokenPairSource<CsvRecords> {
 public:
  CsvPairs(const std::filesystem::path& path, const ArrayNames& options) : TokenPairSource(path, options) {
    read_header();
    if (!records_.next()) records_.refuse("file", "at its end", "a line for each token");
    decide_spaces();
    records_.next();
  }

  std::string format() const override { return "CSV of token pairs"; }

 private:
  void read_header() {
    if (!records_.next()) {
      throw FileError(records_.path(), "file", "empty", "a line of column names");
    }
    for (const std::string_view name : records_.fields()) order_.push_back(names_.add(without_spaces(name)));
    if (const auto error = names_.error()) records_.refuse(error->field, error->found, error->expected);
  }

  bool next_record() override { return records_.next(); }

  std::optional<RowSpace> space_shown(PairColumn model) const override {
    check_length();
    return space_shown_by(number(model));
  }

  void check_length() const {
    if (records_.fields().size() == order_.size()) return;
    records_.refuse("line", fmt::format("of {} fields", records_.fields().size()),
                    fmt::format("of {} fields, as the first line is", order_.size()));
  }

  std::string_view field_of(PairColumn column) const {
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (order_[i] == column) return without_spaces(records_.fields()[i]);
    }
    return {};
  }

  [[noreturn]] void refuse(PairColumn column, std::string found, std::string expected) const {
    records_.refuse(names_.name_of(column), std::move(found), std::move(expected));
  }
  [[noreturn]] void refuse_text(PairColumn column, std::string_view text, std::string expected) const {
    refuse(column, text.empty() ? "empty" : printable(text), std::move(expected));
  }

  double number(PairColumn column) const {
    const auto value = double_in(field_of(column));
    if (!value) refuse_text(column, field_of(column), "a number");
    return *value;
  }

  std::int64_t integer(PairColumn column, std::int64_t if_empty) const {
    const std::string_view text = field_of(column);
    if (text.empty()) return if_empty;
    const auto value = number_in<std::int64_t>(text);
    if (!value) refuse_text(column, text, "an integer");
    return *value;
  }

  void append_row() override {
    check_length();
    PairRow row;
    row.target = number(PairColumn::target);
    row.draft = number(PairColumn::draft);
    if (!field_of(PairColumn::overlap).empty()) row.overlap = number(PairColumn::overlap);
    if (names_.has(PairColumn::sequence)) row.label = field_of(PairColumn::sequence);
    row.task = field_of(PairColumn::task);
    row.prompt = field_of(PairColumn::prompt);
    if (names_.has(PairColumn::place)) row.place = integer(PairColumn::place, -1);
    row.token = integer(PairColumn::token, -1);
    row.target_rank = integer(PairColumn::target_rank, 0);
    row.draft_rank = integer(PairColumn::draft_rank, 0);
    const auto error = columns_.append(row, records_.line(), metadata_);
    if (error) refuse(error->column, error->found, error->expected);
  }

  std::vector<std::optional<PairColumn>> order_;
};

PairColumnNames names_in_header(std::string_view head, const ArrayNames& options) {
  head = without_byte_order_mark(head);
  std::string_view line = head.substr(0, head.find_first_of("\r\n"));
  const char separator = csv_separator(line);
  PairColumnNames names(options);
  while (!line.empty()) names.add(without_quotes(without_spaces(take_part(line, separator))));
  return names;
}

}  // namespace

bool is_token_pairs_csv(std::string_view head) { return names_in_header(head, {}).has_both_models(); }

bool names_a_model_csv(std::string_view head, const ArrayNames& options) {
  return names_in_header(head, options).has_a_model();
}

std::unique_ptr<PositionSource> open_token_pairs_csv(const std::filesystem::path& path, const ArrayNames& options) {
  return std::make_unique<CsvPairs>(path, options);
}

}  // namespace specdec::traces
