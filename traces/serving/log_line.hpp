#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// Positions of a draft that a log may tell of.
inline constexpr std::size_t most_logged_positions = 1024;

/// Where `what` begins in the text, at `from` or behind it; npos where it does not.
std::size_t find_text(std::string_view text, std::string_view what, std::size_t from);

/// A number at the beginning of a text, and what follows it.
struct LeadingNumber {
  double value = 0;
  std::string_view rest;
};

std::optional<LeadingNumber> leading_number(std::string_view text);

/// `KEY = NUMBER` with nothing else on the line but a prefix, as llama.cpp's programs print it. `percent` stands
/// behind.
std::optional<double> printed_value(std::string_view line, std::string_view key, bool percent = false);

/// One line of a log and the values on it.
class LogLine {
 public:
  LogLine(const std::filesystem::path& file, std::int64_t number, std::string_view text);
  LogLine(const LogLine&) = delete;
  LogLine& operator=(const LogLine&) = delete;

  std::string_view text() const { return text_; }
  std::int64_t number() const { return number_; }

  [[noreturn]] void refuse(std::string_view field, std::string found, std::string expected) const;

  /// The text behind a key; empty if the key is missing.
  std::optional<std::string_view> after(std::string_view key) const;
  /// The number behind a key with `unit` behind it; empty if the key is missing.
  std::optional<double> number(std::string_view key, std::string_view unit = {}) const;
  /// The text in quotes right behind a key; empty if there is none.
  std::string quoted(std::string_view key) const;
  double needed(std::string_view key, std::string_view unit = {}) const;
  double count(std::string_view key, std::string_view unit = {}) const;
  void require_count(std::string_view field, double value) const;
  /// Fractions separated by commas, none above the one before it; empty where there are none.
  std::vector<double> rates(std::string_view field, std::string_view text) const;

 private:
  const std::filesystem::path& file_;
  std::int64_t number_;
  std::string_view text_;
  std::string plain_;
};

/// A log's text with a place in it, line by line.
class LogText {
 public:
  explicit LogText(std::string_view text) : text_(text) {}

  /// To the line that holds this place.
  void go_to(std::size_t place);
  /// To the next line; false where there is none.
  bool go_on();

  std::string_view text() const { return text_; }
  std::string_view line() const { return text_.substr(begin_, end_ - begin_); }
  /// Where the line ends.
  std::size_t end() const { return end_; }
  bool is_last_line() const { return end_ == text_.size(); }
  /// From 1.
  std::int64_t line_number();

 private:
  std::size_t end_of_line(std::size_t begin) const;

  std::string_view text_;
  std::size_t begin_ = 0, end_ = 0;
  std::size_t counted_ = 0;  // bytes whose newlines are in lines_
  std::int64_t lines_ = 0;
};

}  // namespace specdec::traces
