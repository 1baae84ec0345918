#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/formats/json_lines.hpp"
#include "traces/open_trace.hpp"
#include "traces/serving/read_serving_counts.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::traces {

// A header of the library's own sources, as json_lines.hpp is.

/// The counts and measures of one JSON object. A key that is missing or null gives nothing; a value that is none of
/// what it must be is refused with the key, `prefix` in front.
class CountedFields {
 public:
  /// Longer histograms are refused: no engine drafts that much, and a wrong key must not take memory.
  static constexpr std::size_t longest_draft = 4096;

  CountedFields(const JsonLines& file, simdjson::dom::object object, std::string prefix = {})
      : file_(&file), object_(object), prefix_(std::move(prefix)) {}
  /// Those of the file's document, which is refused where it is no object.
  explicit CountedFields(const JsonLines& file);

  /// An integer in [0, 2^53], also written as 22.0.
  std::optional<double> count(std::string_view key) const;
  /// The first of several names of one thing that is given; empty names are passed over.
  std::optional<double> count(std::span<const std::string_view> keys) const;
  /// A count that must be there: `expected` is what the refusal says of it.
  double required(std::string_view key, std::string_view expected = "given") const;
  /// A finite number >= 0; empty for NaN, which programs write for the mean of nothing.
  std::optional<double> measure(std::string_view key) const;
  /// The same above 0; refused where it is missing.
  double above_zero(std::string_view key) const;
  /// As measure() with NaN as it is, for whoever refuses it by that name.
  std::optional<double> measure_or_nan(std::string_view key) const;
  /// A finite or infinite number >= 0; empty for NaN.
  std::optional<double> rate(std::string_view key) const;
  /// A string.
  std::optional<std::string_view> text(std::string_view key) const;
  /// The same where it is a string, and nothing where it is something else.
  std::optional<std::string_view> text_if_any(std::string_view key) const;
  std::optional<simdjson::dom::element> value(std::string_view key) const;
  /// The object under a key, whose own keys messages name behind it; refused where it is something else.
  std::optional<CountedFields> part(std::string_view key) const;
  /// The same, refused where it is missing too.
  CountedFields at(std::string_view key, std::string_view expected = "given") const;
  /// The same where it is an object, and nothing where it is something else.
  std::optional<CountedFields> part_if_any(std::string_view key) const;
  /// Calls with each object of a list, and returns how many entries it has; 0 where it is missing or no list.
  std::int64_t each(std::string_view key, const std::function<void(const CountedFields&)>& take) const;

  /// Counts by the number of accepted drafts, as a list or as an object with the numbers as its keys; false, and an
  /// empty list, where the key is missing or null.
  bool histogram(std::string_view key, std::vector<double>& counts) const;
  /// The same for a value of this object, whose name is `part` below `key`.
  void histogram(simdjson::dom::element value, std::string_view key, std::string_view part,
                 std::vector<double>& counts) const;

  /// A list of counts, one a round; false, and an empty list, where the key is empty, missing or null.
  bool list(std::string_view key, std::vector<double>& counts) const;

  /// The key as messages name it.
  std::string name(std::string_view key) const { return prefix_ + std::string(key); }
  [[noreturn]] void refuse(std::string_view key, std::string found, std::string expected) const {
    file_->refuse(name(key), std::move(found), std::move(expected));
  }
  const JsonLines& file() const { return *file_; }
  simdjson::dom::object object() const { return object_; }

 private:
  std::optional<double> number(std::string_view key, bool infinite, std::string_view expected) const;

  const JsonLines* file_;
  simdjson::dom::object object_;
  std::string prefix_;
};

/// A count: an integer in [0, 2^53], also written as 22.0.
std::optional<double> count_of(simdjson::dom::element value);

/// The integer that a key such as "12" is, in [0, CountedFields::longest_draft]; empty for another key.
std::optional<std::size_t> index_of_key(std::string_view key);

/// Effects of rounding to three and to two decimals, and a little more for what a program adds up before it rounds.
inline constexpr double three_decimals = 5.1e-4;
inline constexpr double two_decimals = 5.1e-3;

/// A number as messages show it: integers without a point, others with 6 digits.
std::string shown(double number);

/// Refuses a mean length of a round's tokens that its counts contradict; where one of them is missing, none does.
void require_counted_length(const CountedFields& fields, std::string_view key, std::optional<double> length,
                            const ServingCounts& counts);

/// Nothing counted yet.
ServingCounts no_counts(std::string_view engine, std::string_view format, CountUnit unit,
                        const std::filesystem::path& file = {});

/// Forgets one record's counts; file, engine, format, unit, id and labels stay.
void clear_counts(ServingCounts& counts);

/// Counts one more round in which so many drafts were accepted.
void add_round(std::vector<double>& rounds_by_accepted, std::size_t accepted);
/// The rounds and accepted drafts of rounds_by_accepted, where nothing else says them.
void add_totals(ServingCounts& counts);

/// Calls with each document of a file, its counts cleared and its line set. An empty file is refused: it must hold what
/// `expected` says.
void each_document(JsonLines& file, ServingCounts& counts, std::string_view expected,
                   const std::function<void(const CountedFields&)>& take);

/// Reads each file by a reader of its own.
template <class Reader>
void read_each(std::span<const std::filesystem::path> files, const CountsSink& sink) {
  for (const std::filesystem::path& path : files) Reader(path, sink).read();
}

/// Sets a label, or removes it where there is no value.
void set_label(ServingCounts& counts, std::string_view name, std::optional<std::string_view> value);

/// Whether the beginning of a JSON file, or where its first document is longer than the beginning that document,
/// passes a test of its text.
bool first_document_passes(const FileHead& head, bool (*test)(std::string_view text));

}  // namespace specdec::traces
