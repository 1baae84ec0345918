#include "traces/formats/json_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/formats/bare_words.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Length of the JSON value that the text begins with, or npos if it does not end. Brackets are counted, not matched.
std::size_t length_of_value(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '"':
        i = end_of_string(text, i + 1);
        if (i == std::string_view::npos) return i;
        if (depth == 0) return i + 1;
        break;
      case '{':
      case '[':
        ++depth;
        break;
      case '}':
      case ']':
        if (depth <= 1) return depth == 1 ? i + 1 : i;
        --depth;
        break;
      case ',':
      case ' ':
      case '\n':
        if (depth == 0 && i > 0) return i;
        break;
      default:
        break;
    }
  }
  return depth == 0 ? text.size() : std::string_view::npos;
}

/// Records the position at which a text stops being JSON.
class ErrorPosition : public nlohmann::detail::json_sax_acceptor<nlohmann::json> {
 public:
  bool parse_error(std::size_t position, const std::string& /*token*/, const nlohmann::json::exception& /*error*/) {
    found = position;
    return false;
  }

  /// The byte that was read last, from 1.
  std::optional<std::size_t> found;
};

/// Looks for an object with a repeated key, of which a document would show one value and hide the other.
class RepeatedKey {
 public:
  /// Its path; empty if there is none.
  std::optional<std::string> find(simdjson::dom::element value) {
    simdjson::dom::array array;
    simdjson::dom::object object;
    if (value.get(object) == simdjson::SUCCESS) return find_in(object);
    if (value.get(array) != simdjson::SUCCESS) return std::nullopt;
    for (const simdjson::dom::element entry : array) {
      if (!entry.is_array() && !entry.is_object()) continue;
      if (auto found = find(entry)) return found;
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> find_in(simdjson::dom::object object) {
    keys_.clear();
    for (const auto& field : object) keys_.push_back(field.key);
    std::sort(keys_.begin(), keys_.end());
    const auto twice = std::adjacent_find(keys_.begin(), keys_.end());
    if (twice != keys_.end()) return std::string(*twice);
    for (const auto& field : object) {
      if (!field.value.is_array() && !field.value.is_object()) continue;
      if (const auto found = find(field.value)) return fmt::format("{}.{}", field.key, *found);
    }
    return std::nullopt;
  }

  /// Keys of the current object.
  std::vector<std::string_view> keys_;
};

}  // namespace

JsonLines::JsonLines(std::filesystem::path path, std::size_t longest)
    : path_(std::move(path)),
      longest_(longest),
      file_(path_),
      bytes_(text_of(file_.bytes())),
      parser_(std::make_unique<simdjson::dom::parser>()) {
  rewind();
}

JsonLines::~JsonLines() = default;

void JsonLines::rewind() {
  layout_ = Layout::unknown;
  next_ = bytes_.size() - without_byte_order_mark(bytes_).size();
  next_line_ = 1;
  at_end_ = false;
}

void JsonLines::seek(Place place) {
  next_ = place.offset;
  next_line_ = place.line;
  between_elements_ = false;
  at_end_ = false;
}

bool JsonLines::next() {
  skip_space();
  if (layout_ == Layout::unknown) find_layout();
  if (!(layout_ == Layout::array ? find_element() : next_ < bytes_.size())) return false;
  line_ = next_line_;
  begin_ = next_;
  const std::string_view text = layout_ == Layout::lines ? line_text() : value_text();
  next_ = begin_ + text.size();
  next_line_ += std::count(text.begin(), text.end(), '\n');
  parse(text);
  return true;
}

void JsonLines::skip_space() {
  for (; next_ < bytes_.size() && is_space(bytes_[next_]); ++next_) next_line_ += bytes_[next_] == '\n' ? 1 : 0;
}

void JsonLines::find_layout() {
  if (next_ == bytes_.size()) return;
  between_elements_ = false;
  if (bytes_[next_] == '[') {
    layout_ = Layout::array;
    ++next_;
    return skip_space();
  }
  const std::string_view window = bytes_.substr(next_, longest_ + 1);
  const bool several_lines = line_text().size() < window.size();
  layout_ = several_lines && length_of_value(window) > line_text().size() ? Layout::documents : Layout::lines;
}

bool JsonLines::find_element() {
  line_ = next_line_;
  if (at_end_) return false;
  const char byte = next_ < bytes_.size() ? bytes_[next_] : '\0';
  if (byte == ']') {
    ++next_;
    skip_space();
    line_ = next_line_;
    if (next_ < bytes_.size()) refuse("array", "followed by " + printable(bytes_.substr(next_)), "the whole file");
    at_end_ = true;
    return false;
  }
  if (between_elements_) {
    if (next_ == bytes_.size()) refuse("array", "cut off", "closed by ]");
    if (byte != ',') refuse("array", "going on with " + printable(bytes_.substr(next_)), "going on with , or ]");
    ++next_;
    skip_space();
  }
  between_elements_ = true;
  return true;
}

std::string_view JsonLines::line_text() const {
  const std::size_t end = bytes_.find('\n', next_);
  return bytes_.substr(next_, end == std::string_view::npos ? end : end - next_);
}

std::string_view JsonLines::value_text() const {
  const std::string_view window = bytes_.substr(next_, longest_ + 1);
  const std::size_t length = length_of_value(window);
  if (window.empty() || (length == std::string_view::npos && window.size() <= longest_)) {
    refuse("document", "cut off", "closed before the end of the file");
  }
  return window.substr(0, std::max<std::size_t>(length, 1));
}

void JsonLines::parse(std::string_view text) {
  if (text.size() > longest_) {
    refuse("document", fmt::format("longer than {} MiB", longest_ >> 20U),
           "shorter: one request a line, or an array of requests");
  }
  const std::size_t behind = bytes_.size() - (begin_ + text.size());
  const auto error = parser_->parse(text.data(), text.size(), behind < simdjson::SIMDJSON_PADDING).get(document_);
  if (error != simdjson::SUCCESS) parse_tolerantly(text, error);
  if (const auto key = RepeatedKey().find(document_)) {
    refuse(printable(*key), "there twice", "there once in its object");
  }
}

void JsonLines::parse_tolerantly(std::string_view text, simdjson::error_code first_error) {
  if (const auto rewritten = without_bare_words(text)) {
    rewritten_ = simdjson::padded_string(*rewritten);
    if (parser_->parse(rewritten_).get(document_) == simdjson::SUCCESS) return;
  }
  if (first_error == simdjson::DEPTH_ERROR) {
    refuse("document", "nested deeper", fmt::format("at most {} deep", simdjson::DEFAULT_MAX_DEPTH));
  }
  ErrorPosition position;
  // The other parser takes a zero for the end.
  if (const std::size_t zero = text.find('\0'); zero != std::string_view::npos) position.found = zero + 1;
  if (!position.found) nlohmann::json::sax_parse(text, &position);
  if (!position.found) refuse("document", "no JSON", "JSON that can be parsed");
  const std::size_t column = std::max<std::size_t>(*position.found, 1);
  if (column > text.size()) refuse("the JSON", fmt::format("cut off at column {}", column), "whole");
  refuse(fmt::format("column {}", column), printable(text.substr(column - 1)), "JSON");
}

void JsonLines::refuse(std::string field, std::string found, std::string expected) const {
  throw FileError(path_, FileError::line(line_), std::move(field), std::move(found), std::move(expected));
}

void JsonLines::refuse(std::string field, simdjson::dom::element found, std::string expected) const {
  refuse(std::move(field), excerpt(found), std::move(expected));
}

std::optional<double> number_of(simdjson::dom::element value) {
  double number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return std::nullopt;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (text == "-Infinity" || text == "-inf") return -infinity;
  if (text == "Infinity" || text == "inf") return infinity;
  if (text == "NaN" || text == "nan") return std::numeric_limits<double>::quiet_NaN();
  return std::nullopt;
}

bool is_empty(simdjson::dom::element value) {
  simdjson::dom::object object;
  simdjson::dom::array array;
  if (value.get(object) == simdjson::SUCCESS) return object.begin() == object.end();
  return value.get(array) == simdjson::SUCCESS && array.begin() == array.end();
}

std::optional<std::int64_t> integer_of(simdjson::dom::element value) {
  std::int64_t number = 0;
  if (value.get(number) == simdjson::SUCCESS) return number;
  return std::nullopt;
}

std::string excerpt(simdjson::dom::element value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  return printable(simdjson::minify(value));
}

}  // namespace specdec::traces
