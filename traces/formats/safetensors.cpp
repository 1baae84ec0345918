#include "traces/formats/safetensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/half_float.hpp"
#include "traces/formats/little_endian.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"
#include "traces/formats/unique_keys.hpp"

namespace specdec::traces {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors data are little-endian");

using nlohmann::json;

struct TypeEntry {
  ElementType type;
  std::string_view name;
  std::int64_t size;
};
constexpr std::array<TypeEntry, 8> type_entries = {{{ElementType::f64, "F64", 8},
                                                    {ElementType::f32, "F32", 4},
                                                    {ElementType::f16, "F16", 2},
                                                    {ElementType::bf16, "BF16", 2},
                                                    {ElementType::i64, "I64", 8},
                                                    {ElementType::i32, "I32", 4},
                                                    {ElementType::u8, "U8", 1},
                                                    {ElementType::boolean, "BOOL", 1}}};

const TypeEntry& entry_of(ElementType type) { return type_entries.at(static_cast<std::size_t>(type)); }

constexpr std::uint64_t length_bytes = 8;
constexpr std::uint64_t longest_header = 100'000'000;

/// Reads the header of one file; every error names the file.
class HeaderReader {
 public:
  HeaderReader(const std::filesystem::path& path, std::span<const std::byte> file) : path_(path), file_(file) {}

  void read(std::vector<Tensor>& tensors, std::map<std::string, std::string>& metadata) {
    const json header = parse();
    require_whole(header);
    for (const auto& [name, entry] : header.items()) {
      if (name == "__metadata__") {
        read_metadata(entry, metadata);
      } else {
        tensors.push_back(read_tensor(name, entry));
      }
    }
    std::stable_sort(tensors.begin(), tensors.end(), [](const Tensor& a, const Tensor& b) {
      return std::pair(a.offset, a.bytes.size()) < std::pair(b.offset, b.bytes.size());
    });
    require_contiguous(tensors);
  }

 private:
  [[noreturn]] void refuse(std::uint64_t offset, std::string field, std::string found, std::string expected) const {
    throw FileError(path_, FileError::byte(static_cast<std::int64_t>(offset)), std::move(field), std::move(found),
                    std::move(expected));
  }
  [[noreturn]] void refuse(std::string field, const json& found, std::string expected) const {
    refuse(length_bytes, std::move(field), found.dump(-1, ' ', true, json::error_handler_t::replace).substr(0, 80),
           std::move(expected));
  }

  json parse() {
    if (file_.size() < length_bytes) {
      refuse(0, "file size", fmt::format("{} bytes", file_.size()), "at least 8 bytes for the header's length");
    }
    std::uint64_t length = 0;
    std::memcpy(&length, file_.data(), sizeof length);
    const std::uint64_t limit = std::min<std::uint64_t>(longest_header, file_.size() - length_bytes);
    if (length < 2 || length > limit) {
      refuse(0, "header length", fmt::format("{}", length),
             fmt::format("in [2, {}] in a file of {} bytes", limit, file_.size()));
    }
    data_begin_ = length_bytes + length;
    const std::string_view text = text_of(file_.subspan(length_bytes, length));
    if (!text.starts_with('{')) {
      refuse(length_bytes, "header's first byte", fmt::format("{:#04x}", text.front() & 0xff), "'{'");
    }
    try {
      return json::parse(text, unique_keys([&](const std::string& key) {
                           refuse(length_bytes, "header", printable(key) + " twice", "every key once in its object");
                         }));
    } catch (const json::parse_error& error) {
      refuse(length_bytes + error.byte, "header", "not JSON from there on", "JSON");
    } catch (const json::out_of_range&) {
      refuse(length_bytes, "header", "holding a number beyond the range of double", "JSON with numbers in range");
    }
  }

  /// A file that ends before the data that its header tells of is refused as that, whichever tensor comes first.
  void require_whole(const json& header) const {
    std::uint64_t end = 0;
    for (const auto& [name, entry] : header.items()) {
      const auto found = entry.is_object() ? entry.find("data_offsets") : entry.end();
      if (name == "__metadata__" || found == entry.end() || !found->is_array() || found->size() != 2) continue;
      end = std::max(end, unsigned_integer((*found)[1]).value_or(0));
    }
    if (end <= file_.size() - data_begin_) return;
    const bool countable = end <= std::numeric_limits<std::uint64_t>::max() - data_begin_;
    refuse(0, "file size", fmt::format("{} bytes", file_.size()),
           countable ? fmt::format("at least {} bytes, as its header says: the file is cut off", data_begin_ + end)
                     : fmt::format("at least {} bytes of data, as its header says", end));
  }

  void read_metadata(const json& entry, std::map<std::string, std::string>& metadata) const {
    if (!entry.is_object()) refuse("__metadata__", entry, "an object");
    for (const auto& [key, value] : entry.items()) {
      if (!value.is_string()) refuse("__metadata__." + key, value, "a string");
      metadata.emplace(key, value.get<std::string>());
    }
  }

  Tensor read_tensor(const std::string& name, const json& entry) const {
    if (!entry.is_object()) refuse(name, entry, "an object with dtype, shape and data_offsets");
    Tensor tensor;
    tensor.name = name;
    tensor.type = read_type(name, member(name, entry, "dtype"));
    const std::uint64_t size = read_shape(name, member(name, entry, "shape"), tensor);
    const auto [begin, end] = read_offsets(name, member(name, entry, "data_offsets"));
    if (end - begin != size) {
      refuse(data_begin_ + begin, name, fmt::format("{} bytes long", end - begin),
             fmt::format("{} bytes long, as {} {} is", size, name_of(tensor.type), shape_text(tensor.shape)));
    }
    tensor.offset = static_cast<std::int64_t>(data_begin_ + begin);
    tensor.bytes = file_.subspan(data_begin_ + begin, size);
    return tensor;
  }

  const json& member(const std::string& name, const json& entry, const char* key) const {
    const auto found = entry.find(key);
    if (found == entry.end()) refuse(length_bytes, name + "." + key, "missing", "present");
    return *found;
  }

  ElementType read_type(const std::string& name, const json& value) const {
    if (value.is_string()) {
      const auto& spelled = value.get_ref<const std::string&>();
      const auto* found =
          std::find_if(type_entries.begin(), type_entries.end(), [&](const TypeEntry& e) { return e.name == spelled; });
      if (found != type_entries.end()) return found->type;
    }
    refuse(name + ".dtype", value, "one of F64, F32, F16, BF16, I64, I32, U8, BOOL");
  }

  /// Reads the shape and returns the number of bytes it takes. A product beyond the file's size is rejected at once,
  /// so that it never overflows.
  std::uint64_t read_shape(const std::string& name, const json& value, Tensor& tensor) const {
    if (!value.is_array()) refuse(name + ".shape", value, "an array of sizes");
    const bool empty = std::any_of(value.begin(), value.end(), [](const json& size) { return size == 0; });
    std::uint64_t bytes = static_cast<std::uint64_t>(size_of(tensor.type));
    for (const json& size : value) {
      const auto n = unsigned_integer(size);
      if (!n || *n > (std::uint64_t{1} << 62U)) refuse(name + ".shape", value, "an array of sizes");
      tensor.shape.push_back(static_cast<std::int64_t>(*n));
      if (empty) continue;
      if (*n > file_.size() / bytes) {
        refuse(name + ".shape", value, fmt::format("no more than the file's {} bytes", file_.size()));
      }
      bytes *= *n;
    }
    return empty ? 0 : bytes;
  }

  std::pair<std::uint64_t, std::uint64_t> read_offsets(const std::string& name, const json& value) const {
    const std::uint64_t data_size = file_.size() - data_begin_;
    if (value.is_array() && value.size() == 2) {
      const auto begin = unsigned_integer(value[0]);
      const auto end = unsigned_integer(value[1]);
      if (begin && end && *begin <= *end && *end <= data_size) return {*begin, *end};
    }
    refuse(name + ".data_offsets", value, fmt::format("[begin, end] within the {} bytes of data", data_size));
  }

  static std::optional<std::uint64_t> unsigned_integer(const json& value) {
    if (!value.is_number_unsigned()) return std::nullopt;
    return value.get<std::uint64_t>();
  }

  void require_contiguous(std::span<const Tensor> sorted) const {
    std::uint64_t end = data_begin_;
    for (const Tensor& tensor : sorted) {
      const auto begin = static_cast<std::uint64_t>(tensor.offset);
      if (begin != end) {
        refuse(begin, "begin of " + tensor.name, fmt::format("data offset {}", begin - data_begin_),
               fmt::format("{}, where the tensor before it ends", end - data_begin_));
      }
      end += tensor.bytes.size();
    }
    if (end != file_.size()) {
      refuse(end, "end of the last tensor", fmt::format("byte {}", end),
             fmt::format("the end of the file, {}", file_.size()));
    }
  }

  const std::filesystem::path& path_;
  std::span<const std::byte> file_;
  std::uint64_t data_begin_ = 0;
};

template <float (*convert)(std::uint16_t)>
void read_halves(const std::byte* from, std::span<float> out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = convert(load<std::uint16_t>(from + i * sizeof(std::uint16_t)));
}

}  // namespace

std::string_view name_of(ElementType type) { return entry_of(type).name; }

std::int64_t size_of(ElementType type) { return entry_of(type).size; }

std::string shape_text(std::span<const std::int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

SafetensorsFile::SafetensorsFile(std::filesystem::path path) : path_(std::move(path)), file_(path_) {
  HeaderReader(path_, file_.bytes()).read(tensors_, metadata_);
}

const Tensor* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& t) { return t.name == name; });
  return found == tensors_.end() ? nullptr : &*found;
}

void read_floats(const Tensor& tensor, std::int64_t first, std::span<float> out) {
  const auto count = static_cast<std::int64_t>(out.size());
  if (first < 0 || count > tensor.elements() - first) {
    throw std::domain_error(fmt::format("read_floats: the range [{}, {}) must lie within the {} elements of {}", first,
                                        first + count, tensor.elements(), tensor.name));
  }
  const std::byte* from = tensor.bytes.data() + first * size_of(tensor.type);
  switch (tensor.type) {
    case ElementType::f32:
      if (count > 0) std::memcpy(out.data(), from, out.size_bytes());
      return;
    case ElementType::f16:
      return read_halves<float_from_f16>(from, out);
    case ElementType::bf16:
      return read_halves<float_from_bf16>(from, out);
    default:
      throw std::invalid_argument(
          fmt::format("read_floats: {} is {}, but must be F32, F16 or BF16", tensor.name, name_of(tensor.type)));
  }
}

}  // namespace specdec::traces
