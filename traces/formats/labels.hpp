#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace specdec::traces {

// Internal header of the library; it is not installed.

/// The error in a label: the last three fields of a FileError.
struct LabelError {
  std::string field;
  std::string found;
  std::string expected;
};

/// Numbers the sequences of a recording 0, 1, 2, ... and the places within each from the labels of its rows: names or
/// numbers of sequences, places, both or neither.
///
/// A sequence's rows are contiguous: a label that returns after another is an error. Names that do not rise as numbers
/// need memory, about 40 bytes each, so at most a million are accepted.
class SequenceNumbers {
 public:
  static constexpr std::size_t most_names = std::size_t{1} << 20U;

  std::int64_t sequence() const { return sequence_; }
  std::int64_t place() const { return place_; }

  /// Takes the next row's label and place, if it has them; sequence() and place() are then the row's.
  ///
  /// With a label, places rise by one within it; without one, a place that does not rise begins a new sequence. Rows
  /// without a place count from 0.
  std::optional<LabelError> next(std::optional<std::string_view> label, std::optional<std::int64_t> place);

  /// Begins a new sequence with the next row, for formats that need no labels.
  void begin() { begin_ = true; }

 private:
  std::optional<LabelError> enter(std::string_view label);

  std::int64_t sequence_ = -1;
  std::int64_t place_ = -1;
  bool begin_ = true;
  std::string label_;
  std::optional<std::int64_t> largest_number_;
  std::unordered_set<std::uint64_t> seen_;
};

/// Ids 0, 1, 2, ... for task names in the order of their first use.
class TaskIds {
 public:
  static constexpr std::size_t most_tasks = 4096;
  static constexpr std::size_t longest_name = 256;

  /// The id of a name, -1 for an empty one; empty if the name is too long or there would be too many. New names are
  /// appended to `names`.
  std::optional<std::int32_t> id_of(std::string_view name, std::vector<std::string>& names);
  /// The requirement that is violated if id_of() is empty.
  static std::string expected();

 private:
  std::map<std::string, std::int32_t, std::less<>> ids_;
};

}  // namespace specdec::traces
