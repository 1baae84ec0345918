#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/json_lines.hpp"
#include "traces/formats/recording_formats.hpp"
#include "traces/formats/token_pair_columns.hpp"

namespace specdec::traces {
namespace {

namespace dom = simdjson::dom;

constexpr std::array all_columns = {
    PairColumn::target, PairColumn::draft,  PairColumn::sequence, PairColumn::place,       PairColumn::token,
    PairColumn::task,   PairColumn::prompt, PairColumn::overlap,  PairColumn::target_rank, PairColumn::draft_rank};

/// One value for each column.
template <class T>
class ByColumn {
 public:
  T& operator[](PairColumn column) { return values_[static_cast<std::size_t>(column)]; }
  const T& operator[](PairColumn column) const { return values_[static_cast<std::size_t>(column)]; }

 private:
  std::array<T, all_columns.size()> values_{};
};

/// The column of each key. Documents mostly have the same keys in the same order, so that place is tried first.
class KeyColumns {
 public:
  explicit KeyColumns(PairColumnNames& names) : names_(names) {}

  void begin_document() { at_ = 0; }

  std::optional<PairColumn> column_of(std::string_view key) {
    if (at_ < order_.size() && order_[at_]->first == key) return order_[at_++]->second;
    if (key.size() > longest_key) return std::nullopt;
    auto found = columns_.find(key);
    if (found == columns_.end()) {
      if (columns_.size() == most_keys) return std::nullopt;
      found = columns_.emplace(key, names_.add(key)).first;
    }
    order_.resize(at_);
    order_.push_back(found);
    ++at_;
    return found->second;
  }

 private:
  using Columns = std::map<std::string, std::optional<PairColumn>, std::less<>>;
  static constexpr std::size_t longest_key = 256;
  static constexpr std::size_t most_keys = 4096;

  PairColumnNames& names_;
  Columns columns_;
  std::vector<Columns::const_iterator> order_;
  std::size_t at_ = 0;
};

class JsonPairs final : public TokenPairSource<JsonLines> {
 public:
  JsonPairs(const std::filesystem::path& path, const ArrayNames& options)
      : TokenPairSource(path, options), keys_(names_) {
    if (!next_record()) throw FileError(path, "file", "empty", "an object for each token or sequence");
    decide_spaces();
  }

  std::string format() const override { return "JSONL of token pairs"; }

 private:
  std::optional<RowSpace> space_shown(PairColumn column) const override {
    const dom::element value = *values_[column];
    if (!value.is_array()) return space_shown_by(number(column, value));
    const dom::array array = value.get_array();
    for (const dom::element entry : array) {
      if (const auto space = space_shown_by(number(column, entry))) return space;
    }
    return std::nullopt;
  }

  [[noreturn]] void refuse(PairColumn column, std::string found, std::string expected) const {
    std::string name = names_.name_of(column);
    if (in_sequence_) name += fmt::format("[{}]", index_ - 1);
    records_.refuse(std::move(name), std::move(found), std::move(expected));
  }

  double number(PairColumn column, dom::element value) const {
    const auto found = number_of(value);
    if (!found) refuse(column, excerpt(value), "a number");
    return *found;
  }
  std::int64_t integer(PairColumn column, dom::element value) const {
    const auto found = integer_of(value);
    if (!found) refuse(column, excerpt(value), "an integer");
    return *found;
  }
  /// A string, or an integer written into `buffer`.
  std::string_view text(PairColumn column, dom::element value, std::string& buffer) const {
    if (value.is_string()) return value.get_string();
    if (!integer_of(value)) refuse(column, excerpt(value), "a string or an integer");
    buffer = fmt::format("{}", *integer_of(value));
    return buffer;
  }

  /// A name, a number, the prompt itself, its tokens or its messages.
  std::string_view prompt(dom::element value) {
    if (!value.is_array() && !value.is_object()) return text(PairColumn::prompt, value, prompt_);
    prompt_ = simdjson::minify(value);
    if (is_empty(value)) refuse(PairColumn::prompt, prompt_, "a prompt that is not empty");
    return prompt_;
  }

  /// Parses the next object and finds its columns.
  bool next_record() override {
    if (!records_.next()) return false;
    if (!records_.document().is_object()) records_.refuse("line", records_.document(), "an object");
    values_ = {};
    keys_.begin_document();
    const dom::object object = records_.document().get_object();
    for (const auto [key, value] : object) {
      const auto column = keys_.column_of(key);
      if (column && !value.is_null()) values_[*column] = value;
    }
    if (const auto error = names_.error()) records_.refuse(error->field, error->found, error->expected);
    for (const PairColumn model : {PairColumn::target, PairColumn::draft}) {
      if (!values_[model])
        records_.refuse(names_.name_of(model), "missing or null", "a number, or an array of numbers");
    }
    return true;
  }

  /// Advances to the next token, in the sequence's arrays or in the next document.
  bool next_row() override {
    while (true) {
      if (in_sequence_ && index_ < length_) {
        ++index_;
        return true;
      }
      in_sequence_ = false;
      if (!next_record()) return false;
      if (!values_[PairColumn::target]->is_array()) return true;
      begin_sequence();
    }
  }

  static bool has_array(PairColumn column) {
    return column != PairColumn::sequence && column != PairColumn::task && column != PairColumn::prompt;
  }

  void begin_sequence() {
    length_ = length_of(PairColumn::target);
    for (const PairColumn column : all_columns) {
      if (!values_[column] || !has_array(column)) continue;
      if (length_of(column) != length_) {
        records_.refuse(names_.name_of(column), fmt::format("{} long", length_of(column)),
                        fmt::format("{} long, as {} is", length_, names_.name_of(PairColumn::target)));
      }
      entries_[column] = dom::array(values_[column]->get_array()).begin();
    }
    index_ = 0;
    in_sequence_ = true;
    columns_.begin_sequence();
  }

  std::int64_t length_of(PairColumn column) const {
    if (!values_[column]->is_array()) records_.refuse(names_.name_of(column), *values_[column], "an array");
    // simdjson's array::size() saturates at 2^24 - 1, which a document within the size limit can exceed.
    std::int64_t length = 0;
    const dom::array array = values_[column]->get_array();
    for ([[maybe_unused]] const dom::element entry : array) ++length;
    return length;
  }

  /// The column's value for this token; empty if it is missing or null.
  std::optional<dom::element> take(PairColumn column) {
    if (!values_[column]) return std::nullopt;
    if (!in_sequence_ || !has_array(column)) return values_[column];
    const dom::element entry = *entries_[column];
    ++entries_[column];
    return entry.is_null() ? std::nullopt : std::optional(entry);
  }
  double take_model(PairColumn column) {
    const auto value = take(column);
    if (!value) refuse(column, "null", "a number (-Infinity or -9999 for probability 0)");
    return number(column, *value);
  }

  void append_row() override {
    PairRow row;
    row.target = take_model(PairColumn::target);
    row.draft = take_model(PairColumn::draft);
    if (const auto value = take(PairColumn::sequence)) row.label = text(PairColumn::sequence, *value, label_);
    if (const auto value = take(PairColumn::place)) row.place = integer(PairColumn::place, *value);
    if (const auto value = take(PairColumn::token)) row.token = integer(PairColumn::token, *value);
    if (const auto value = take(PairColumn::task)) row.task = text(PairColumn::task, *value, task_);
    if (const auto value = take(PairColumn::prompt)) row.prompt = prompt(*value);
    if (const auto value = take(PairColumn::overlap)) row.overlap = number(PairColumn::overlap, *value);
    if (const auto value = take(PairColumn::target_rank)) row.target_rank = integer(PairColumn::target_rank, *value);
    if (const auto value = take(PairColumn::draft_rank)) row.draft_rank = integer(PairColumn::draft_rank, *value);
    const auto error = columns_.append(row, records_.line(), metadata_);
    if (error) refuse(error->column, error->found, error->expected);
  }

  KeyColumns keys_;
  ByColumn<std::optional<dom::element>> values_;
  ByColumn<dom::array::iterator> entries_;
  bool in_sequence_ = false;
  std::int64_t index_ = 0;  ///< number of tokens of the sequence's arrays already taken
  std::int64_t length_ = 0;
  std::string label_;
  std::string task_;
  std::string prompt_;
};

/// The keys of the first object of a text that may be cut off, on its outermost level.
class FirstObjectKeys {
 public:
  explicit FirstObjectKeys(std::string_view text) : left_(text) {}

  std::optional<std::string_view> next() {
    while (!left_.empty()) {
      const char c = left_.front();
      left_.remove_prefix(1);
      if (c == '{' || c == '[') ++depth_;
      if ((c == '}' || c == ']') && --depth_ == 0) left_ = {};
      if (c != '"') continue;
      const std::string_view string = take_string();
      const std::size_t colon = left_.find_first_not_of(" \t\r\n");
      if (depth_ == 1 && colon != std::string_view::npos && left_[colon] == ':') return string;
    }
    return std::nullopt;
  }

 private:
  std::string_view take_string() {
    std::size_t end = 0;
    while (end < left_.size() && left_[end] != '"') end += left_[end] == '\\' ? 2 : 1;
    const std::string_view string = left_.substr(0, end);
    left_.remove_prefix(std::min(left_.size(), string.size() + 1));
    return string;
  }

  std::string_view left_;
  std::int64_t depth_ = 0;
};

PairColumnNames names_in_first_object(std::string_view head, const ArrayNames& options) {
  if (head.starts_with('[')) head.remove_prefix(1);
  PairColumnNames names(options);
  FirstObjectKeys keys(head);
  while (const auto key = keys.next()) names.add(*key);
  return names;
}

}  // namespace

bool names_a_model_jsonl(std::string_view head, const ArrayNames& options) {
  return names_in_first_object(head, options).has_a_model();
}

bool is_token_pairs_jsonl(std::string_view head) {
  const PairColumnNames names = names_in_first_object(head, {});
  // Arrays may be longer than the visible part, so that the other model's key lies beyond it.
  constexpr std::size_t cut_off = 60000;
  const bool goes_on = head.size() >= cut_off && head.find('\n') == std::string_view::npos;
  return names.has_both_models() || (names.has_a_model() && goes_on);
}

std::unique_ptr<PositionSource> open_token_pairs_jsonl(const std::filesystem::path& path, const ArrayNames& options) {
  return std::make_unique<JsonPairs>(path, options);
}

}  // namespace specdec::traces
