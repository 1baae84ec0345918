#include "traces/formats/npy_array.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "traces/formats/little_endian.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/recording_formats.hpp"
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
  const std::string_view header = text_of(stream_.read(length));
  check_type(value_of(header, "descr"));
  read_shape(value_of(header, "shape"));
  const std::string_view fortran = value_of(header, "fortran_order");
  if (!fortran.starts_with("False") && !fortran.starts_with("True")) refuse_value("fortran_order", fortran, "False");
  if (fortran.starts_with("True") && shape_.size() > 1) {
    refuse("order", "Fortran's", "C order, as numpy.ascontiguousarray makes it");
  }
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

void NpyArray::refuse_value(std::string_view key, std::string_view value, std::string expected) const {
  refuse("header", fmt::format("at '{}' {}", key, value.empty() ? "at its end" : printable(value, 20)),
         std::move(expected));
}

/// A header is a dictionary in Python's words, {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }, whose keys
/// may stand in any order. What stands behind one of them, to the end.
std::string_view NpyArray::value_of(std::string_view header, std::string_view key) const {
  constexpr std::string_view blanks = " \t\r\n";
  for (const char quote : {'\'', '"'}) {
    const std::size_t at = header.find(fmt::format("{0}{1}{0}", quote, key));
    if (at == std::string_view::npos) continue;
    const std::string_view behind = trimmed(header.substr(at + key.size() + 2), blanks);
    if (!behind.starts_with(':')) refuse_value(key, behind, "followed by ':'");
    return trimmed(behind.substr(1), blanks);
  }
  refuse("header", fmt::format("without '{}'", key), "a dictionary of descr, fortran_order and shape");
}

void NpyArray::read_shape(std::string_view tuple) {
  const std::size_t end = tuple.find(')');
  if (!tuple.starts_with('(') || end == std::string_view::npos) refuse_value("shape", tuple, "a tuple of sizes");
  for (std::string_view left = tuple.substr(1, end - 1); !left.empty();) {
    std::string_view part = trimmed(take_part(left, ','));
    if (part.ends_with('L')) part.remove_suffix(1);  // Python 2 wrote it
    if (part.empty()) continue;
    const auto size = number_in<std::int64_t>(part);
    if (!size || *size < 0) refuse_value("shape", part, "a size in [0, 2^63)");
    shape_.push_back(*size);
  }
}

void NpyArray::check_type(std::string_view value) {
  if (value.starts_with('[')) refuse("element type", "structured", "floats, integers or strings");
  const std::size_t end = value.empty() ? std::string_view::npos : value.find(value.front(), 1);
  if (end == std::string_view::npos) refuse_value("descr", value, "a string that ends");
  const std::string descr(value.substr(1, end - 1));
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

void NpyArray::join_first_axes() {
  shape_[1] *= shape_[0];
  shape_.erase(shape_.begin());
}

std::int64_t NpyArray::row_elements() const {
  std::int64_t elements = 1;
  for (std::size_t i = 1; i < shape_.size(); ++i) elements *= shape_[i];
  return elements;
}

std::int64_t integer_at(NpyType type, const std::byte* from) {
  return load_integer(from, type.bytes, type.kind == 'i');
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
