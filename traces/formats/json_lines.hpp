#pragma once

#include <simdjson.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "traces/formats/log_probability.hpp"
#include "traces/formats/mapped_file.hpp"

namespace specdec::traces {

// Internal header of the library; it is not installed, so that users do not include simdjson.
//
// simdjson's document interface is used, not the on-demand one: its parsing is dispatched at run time to the machine's
// instructions inside the shared library and checks the whole document, while the on-demand interface is compiled here,
// for the baseline machine. On lines of numbers the first is nearly twice as fast (docs/benchmarks.md).

/// The JSON documents of a memory-mapped file, one after the other:
///
///   {"id": 1}                       one document per line (JSONL); blank lines do not count
///   {"id": 2}
///
///   [{"id": 1}, {"id": 2}]          an array: its elements are the documents
///
///   {                               documents that run over several lines
///     "id": 1
///   }
///
/// The first document determines which of the three it is. Python's bare NaN, Infinity and -Infinity, and numbers
/// beyond a double such as -1e400, are not JSON: if a document does not parse, they are rewritten as the strings
/// "NaN", "Infinity" and "-Infinity", which number_of() reads as numbers, and it is parsed again.
///
/// Memory: that of one document, about four times its length (twelve times for one that consists of digits only).
class JsonLines {
 public:
  /// A longer document is an error, unless the reader allows another length. Bytes.
  static constexpr std::size_t longest_document = std::size_t{32} << 20;

  /// @param longest  largest accepted length of a document, in bytes
  /// @throws FileError if the file cannot be mapped
  explicit JsonLines(std::filesystem::path path, std::size_t longest = longest_document);
  ~JsonLines();

  /// Parses the next document; false at the end of the file. Previous results of document() become invalid.
  /// @throws FileError with the line, and the column if known, if it is not JSON, not UTF-8, nested deeper than
  ///   1024, or longer than allowed
  bool next();
  /// The document that next() parsed.
  simdjson::dom::element document() const { return document_; }
  /// The 1-based line on which it begins.
  std::int64_t line() const { return line_; }
  const std::filesystem::path& path() const { return path_; }

  /// The beginning of a document, to return to it.
  struct Place {
    std::size_t offset = 0;
    std::int64_t line = 1;
  };
  /// The place of document().
  Place place() const { return {begin_, line_}; }
  /// Makes the document at `place` the next one.
  void seek(Place place);
  void rewind();

  /// Throws a FileError at the line of document().
  [[noreturn]] void refuse(std::string field, std::string found, std::string expected) const;
  [[noreturn]] void refuse(std::string field, simdjson::dom::element found, std::string expected) const;

 private:
  enum class Layout { unknown, lines, array, documents };

  void skip_space();
  void find_layout();
  bool find_element();
  std::string_view line_text() const;
  std::string_view value_text() const;
  void parse(std::string_view text);
  void parse_tolerantly(std::string_view text, simdjson::error_code first_error);

  std::filesystem::path path_;
  std::size_t longest_;
  MappedFile file_;
  std::string_view bytes_;
  Layout layout_ = Layout::unknown;
  bool between_elements_ = false;  ///< in an array: a comma or its end comes next
  bool at_end_ = false;            ///< at the end of an array
  std::size_t next_ = 0;           ///< first byte not yet used by a document,
  std::int64_t next_line_ = 1;     ///< and its line
  std::size_t begin_ = 0;          ///< first byte of the document,
  std::int64_t line_ = 1;          ///< and its line
  /// Its size depends on the macros that simdjson is compiled with, so only json_lines.cpp handles it by value.
  std::unique_ptr<simdjson::dom::parser> parser_;
  simdjson::padded_string rewritten_;
  simdjson::dom::element document_;
};

/// A number, or one of the strings "NaN", "Infinity", "-Infinity" and Python's "nan", "inf", "-inf".
std::optional<double> number_of(simdjson::dom::element value);

/// An integer; empty for other types and for numbers with a fraction.
std::optional<std::int64_t> integer_of(simdjson::dom::element value);

/// True for an object without keys and an array without entries.
bool is_empty(simdjson::dom::element value);

/// The value as JSON, truncated to the length of a message.
std::string excerpt(simdjson::dom::element value);

}  // namespace specdec::traces
