#include "traces/formats/npy_array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <utility>

#include "traces/formats/little_endian.hpp"
#include "traces/formats/numpy.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/safetensors.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

constexpr std::int64_t version_bytes = 8;
/// numpy itself pads to 64; only structured types, which are not read here, need thousands.
constexpr std::int64_t longest_npy_header = 65535;

void append_utf8(std::string& text, std::uint32_t code) {
  const auto tail = [&](unsigned shift) { text += static_cast<char>(0x80U | ((code >> shift) & 0x3fU)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0U | (code >> 6U));
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0U | (code >> 12U));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xf0U | ((code >> 18U) & 7U));
    tail(12);
    tail(6);
    tail(0);
  }
}

}  // namespace

std::string NpyType::text() const {
  const char order = bytes == 1 || kind == 'S' ? '|' : '<';
  return fmt::format("{}{}{}", order, kind, kind == 'U' ? bytes / 4 : bytes);
}

/// Parses the Python literal of a header: a dictionary of a string, a truth value and a tuple of integers.
class NpyArray::HeaderParser {
 public:
  HeaderParser(const NpyArray& array, std::string_view text) : array_(array), left_(text) {}

  std::string descr;
  bool fortran_order = false;
  std::vector<std::int64_t> shape;

  void parse() {
    expect("{");
    while (!take("}")) {
      const std::string key = string();
      expect(":");
      read_value(key);
      if (!take(",")) {
        expect("}");
        break;
      }
    }
    for (const char* key : {"descr", "fortran_order", "shape"}) {
      if (std::find(seen_.begin(), seen_.end(), key) == seen_.end()) {
        array_.refuse("header", fmt::format("without '{}'", key), "a dictionary of descr, fortran_order and shape");
      }
    }
  }

 private:
  [[noreturn]] void refuse(const std::string& expected) const {
    array_.refuse("header", left_.empty() ? "at its end" : fmt::format("at \"{}\"", printable(left_, 20)), expected);
  }

  void skip_space() { left_.remove_prefix(std::min(left_.find_first_not_of(" \t\r\n"), left_.size())); }

  bool take(std::string_view token) {
    skip_space();
    if (!left_.starts_with(token)) return false;
    left_.remove_prefix(token.size());
    return true;
  }
  void expect(std::string_view token) {
    if (!take(token)) refuse(fmt::format("'{}'", token));
  }

  std::string string() {
    const std::string_view quote = take("'") ? "'" : "\"";
    if (quote == "\"") expect(quote);
    const std::size_t end = left_.find(quote);
    if (end == std::string_view::npos) refuse("a string that ends");
    std::string value(left_.substr(0, end));
    left_.remove_prefix(end + 1);
    return value;
  }

  void read_value(const std::string& key) {
    if (std::find(seen_.begin(), seen_.end(), key) != seen_.end()) {
      array_.refuse("header", fmt::format("one with '{}' twice", printable(key)), "a dictionary with each key once");
    }
    seen_.push_back(key);
    if (key == "descr") {
      skip_space();
      if (left_.starts_with('[')) array_.refuse("element type", "structured", "floats, integers or strings");
      descr = string();
    } else if (key == "fortran_order") {
      fortran_order = take("True");
      if (!fortran_order) expect("False");
    } else if (key == "shape") {
      read_shape();
    } else {
      array_.refuse("header", fmt::format("one with the key '{}'", printable(key)),
                    "a dictionary of descr, fortran_order and shape");
    }
  }

  void read_shape() {
    expect("(");
    while (!take(")")) {
      shape.push_back(size());
      if (shape.size() > 32) refuse("at most 32 dimensions");
      if (!take(",")) {
        expect(")");
        break;
      }
    }
  }

  std::int64_t size() {
    skip_space();
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(left_.data(), left_.data() + left_.size(), value);
    if (error != std::errc() || value < 0) refuse("a size in [0, 2^63)");
    left_.remove_prefix(static_cast<std::size_t>(end - left_.data()));
    take("L");  // Python 2 wrote it
    return value;
  }

  const NpyArray& array_;
  std::string_view left_;
  std::vector<std::string> seen_;
};

NpyArray::NpyArray(const std::filesystem::path& path, std::string name, std::int64_t offset, ByteStream stream)
    : path_(path), name_(std::move(name)), offset_(offset), stream_(std::move(stream)) {
  read_header();
}

void NpyArray::refuse(const std::string& field, std::string found, std::string expected) const {
  throw FileError(path_, FileError::byte(offset_), printable(name_) + ": " + field, std::move(found),
                  std::move(expected));
}

void NpyArray::read_header() {
  if (stream_.left() < version_bytes) {
    refuse("size", fmt::format("{} bytes", stream_.left()), fmt::format("at least {} bytes", version_bytes));
  }
  const auto magic = stream_.read(version_bytes);
  if (!is_npy(text_of(magic))) refuse("magic", "something else", "\"\\x93NUMPY\", as NPY files begin");
  const auto major = static_cast<unsigned>(magic[6]);
  if (major < 1 || major > 3) refuse("version", fmt::format("{}", major), "1, 2 or 3");
  const std::int64_t length_bytes = major == 1 ? 2 : 4;
  if (stream_.left() < length_bytes) refuse("size", "too small for a header", "larger");
  const std::byte* length_at = stream_.read(length_bytes).data();
  const std::int64_t length = major == 1 ? load<std::uint16_t>(length_at) : load<std::uint32_t>(length_at);
  const std::int64_t limit = std::min(longest_npy_header, stream_.left());
  if (length > limit) refuse("header length", fmt::format("{}", length), fmt::format("at most {}", limit));
  HeaderParser header(*this, text_of(stream_.read(length)));
  header.parse();
  check_type(header.descr);
  if (header.fortran_order && header.shape.size() > 1) {
    refuse("order", "Fortran's", "C order, as numpy.ascontiguousarray makes it");
  }
  shape_ = std::move(header.shape);
  if (std::find(shape_.begin(), shape_.end(), 0) != shape_.end()) {
    refuse("shape", shape_text(shape_), "of at least one element");
  }
  std::int64_t size = type_.bytes;
  bool fits = true;
  for (const std::int64_t extent : shape_) fits = fits && !__builtin_mul_overflow(size, extent, &size);
  if (!fits || size != stream_.left()) {
    refuse("data", fmt::format("{} bytes long", stream_.left()),
           fmt::format("{} bytes long, as {} {} is", fits ? fmt::format("{}", size) : "more than 2^63", type_.text(),
                       shape_text(shape_)));
  }
}

void NpyArray::check_type(const std::string& descr) {
  const auto refuse_type = [&](const char* expected) {
    refuse("element type", fmt::format("\"{}\"", printable(descr)), expected);
  };
  if (descr.find('O') != std::string::npos) refuse_type("numbers, not Python objects");
  if (descr.starts_with('>')) refuse_type("little-endian");
  std::string_view text = descr;
  if (text.starts_with('<') || text.starts_with('|') || text.starts_with('=')) text.remove_prefix(1);
  const std::int64_t count = text.empty() ? 0 : number_in<std::int64_t>(text.substr(1)).value_or(0);
  const auto one_of = [&](std::initializer_list<std::int64_t> sizes) {
    return std::find(sizes.begin(), sizes.end(), count) != sizes.end();
  };
  constexpr std::int64_t longest_string = 4096;
  const char kind = text.empty() ? ' ' : text.front();
  const bool number = (kind == 'f' && one_of({2, 4, 8})) || ((kind == 'i' || kind == 'u') && one_of({1, 2, 4, 8}));
  const bool string = (kind == 'U' || kind == 'S') && 0 < count && count <= longest_string;
  if (!number && !string) refuse_type("f2, f4, f8, an integer or a string of up to 4096 characters");
  type_ = {kind, kind == 'U' ? 4 * count : count};
}

std::int64_t NpyArray::row_elements() const {
  std::int64_t elements = 1;
  for (std::size_t i = 1; i < shape_.size(); ++i) elements *= shape_[i];
  return elements;
}

std::int64_t integer_at(NpyType type, const std::byte* from) {
  const auto of = [&](auto as_signed, auto as_unsigned) -> std::int64_t {
    if (type.kind == 'i') return load<decltype(as_signed)>(from);
    const std::uint64_t value = load<decltype(as_unsigned)>(from);
    constexpr std::uint64_t largest = std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(std::min(value, largest));
  };
  switch (type.bytes) {
    case 1:
      return of(std::int8_t{}, std::uint8_t{});
    case 2:
      return of(std::int16_t{}, std::uint16_t{});
    case 4:
      return of(std::int32_t{}, std::uint32_t{});
    default:
      return of(std::int64_t{}, std::uint64_t{});
  }
}

std::string string_at(NpyType type, const std::byte* from) {
  std::string text;
  const std::int64_t unit = type.kind == 'U' ? 4 : 1;
  for (std::int64_t i = 0; i < type.bytes; i += unit) {
    if (unit == 1) {
      text += static_cast<char>(load<std::uint8_t>(from + i));
    } else {
      append_utf8(text, load<std::uint32_t>(from + i));
    }
  }
  text.erase(text.find_last_not_of('\0') + 1);
  return text;
}

}  // namespace specdec::traces
