#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/column_names.hpp"
#include "traces/formats/labels.hpp"
#include "traces/formats/recording_formats.hpp"
#include "traces/owned_batch.hpp"
#include "traces/position_source.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::traces {

// Internal header of the library; it is not installed. Code shared by the two text formats of token_pairs.hpp.

/// Assigns the names of a file's columns.
class PairColumnNames {
 public:
  explicit PairColumnNames(const ArrayNames& options) : options_(options) {}

  /// Takes a name; empty if the column is not read. If two columns mean the same, the later one is `ambiguous`.
  std::optional<PairColumn> add(std::string_view name);

  bool has(PairColumn column) const { return names_.count(column) > 0; }
  bool has_a_model() const { return has(PairColumn::target) || has(PairColumn::draft); }
  bool has_both_models() const { return has(PairColumn::target) && has(PairColumn::draft); }
  /// The column's name in the file.
  std::string name_of(PairColumn column) const;
  /// The kind of a model's numbers by the name or the options; empty if the numbers must determine it.
  std::optional<RowSpace> space_of(PairColumn column) const;

  /// The error in the names as a whole: a model without a column, with two, or with logits.
  std::optional<LabelError> error() const;
  /// The columns that are not read, for a note.
  std::vector<Note> notes() const;

 private:
  std::optional<PairColumn> column_of(std::string_view name);

  ArrayNames options_;
  std::map<PairColumn, std::string> names_;
  std::map<PairColumn, RowSpace> spaces_;
  std::vector<std::string> not_read_;
  std::optional<LabelError> ambiguous_;
};

/// One token as a file gives it; fields that it does not give have the defaults.
struct PairRow {
  std::optional<std::string_view> label;
  std::optional<std::int64_t> place;
  std::int64_t token = -1;
  std::string_view task;
  /// As taken by prompt_id().
  std::string_view prompt;
  double target = 0;
  double draft = 0;
  double overlap = std::numeric_limits<double>::quiet_NaN();
  std::int64_t target_rank = 0;
  std::int64_t draft_rank = 0;
};

/// The error in a row.
struct PairError {
  PairColumn column;
  std::string found;
  std::string expected;
};

/// The columns of a batch, filled by a reader.
class PairColumns {
 public:
  static constexpr std::int64_t most_rows = 65536;

  /// Sets the kind of a model's numbers.
  void set_space(PairColumn model, RowSpace space) {
    (model == PairColumn::target ? target_space_ : draft_space_) = space;
  }
  RowSpace space_of(PairColumn model) const { return model == PairColumn::target ? target_space_ : draft_space_; }

  /// Makes the next row begin a sequence.
  void begin_sequence() { numbers_.begin(); }
  /// Checks and appends a row from a line. Names of tasks are appended to the metadata's.
  std::optional<PairError> append(const PairRow& row, std::int64_t line, TraceMetadata& metadata);

  std::int64_t size() const { return batch_.size; }
  /// The line of a position of the batch, numbered over the whole recording.
  std::int64_t line_of(std::int64_t position) const {
    return lines_.at(static_cast<std::size_t>(position - batch_.first));
  }

  /// Removes the rows.
  void clear();
  /// The current rows, with the columns that the file has.
  PositionBatch shown(const PairColumnNames& names) const;

 private:
  SequenceNumbers numbers_;
  TaskIds task_ids_;
  RowSpace target_space_ = RowSpace::log_probabilities;
  RowSpace draft_space_ = RowSpace::log_probabilities;
  OwnedBatch batch_;
  std::vector<std::int64_t> lines_;
};

/// The kind of numbers that a value implies for columns whose names do not state it: empty if it is 0 or NaN.
std::optional<RowSpace> space_shown_by(double value);

/// What the readers of both formats share; Records are their lines.
template <class Records>
class TokenPairSource : public PositionSource {
 public:
  const TraceMetadata& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override { return {records_.path()}; }
  std::vector<Note> notes() const override { return names_.notes(); }

  bool read(PositionBatch& batch) override {
    columns_.clear();
    while (columns_.size() < PairColumns::most_rows && next_row()) append_row();
    batch = columns_.shown(names_);
    return batch.size > 0;
  }

  FileError refusal(std::int64_t position, Role role, std::string found, std::string expected) const override {
    const auto model = role == Role::target ? PairColumn::target : PairColumn::draft;
    return {records_.path(), FileError::line(columns_.line_of(position)), names_.name_of(model), std::move(found),
            std::move(expected)};
  }

 protected:
  TokenPairSource(const std::filesystem::path& path, const ArrayNames& options) : records_(path), names_(options) {}

  virtual bool next_record() = 0;
  virtual bool next_row() { return next_record(); }
  virtual void append_row() = 0;
  /// The kind of numbers that this record has of a model; empty if all are 0.
  virtual std::optional<RowSpace> space_shown(PairColumn model) const = 0;

  /// Determines the kinds of the models' numbers, by records from this one on, and returns to the beginning.
  void decide_spaces() {
    std::vector<PairColumn> undecided;
    for (const PairColumn model : {PairColumn::target, PairColumn::draft}) {
      columns_.set_space(model, names_.space_of(model).value_or(RowSpace::probabilities));
      if (!names_.space_of(model)) undecided.push_back(model);
    }
    std::optional<RowSpace> space;
    for (bool more = !undecided.empty(); more && !space; more = !space && next_record()) {
      for (const PairColumn model : undecided)
        if (!space) space = space_shown(model);
    }
    if (!undecided.empty() && !space) {
      records_.refuse(names_.name_of(undecided.front()), "0 in every line",
                      "said to be probabilities or log-probabilities");
    }
    for (const PairColumn model : undecided) columns_.set_space(model, *space);
    records_.rewind();
  }

  Records records_;
  PairColumnNames names_;
  PairColumns columns_;
  TraceMetadata metadata_;
};

}  // namespace specdec::traces
