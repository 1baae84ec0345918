#include "traces/formats/gguf_header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "traces/file_error.hpp"
#include "traces/formats/little_endian.hpp"
#include "traces/formats/printable.hpp"
#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

/// Types of values, by their number: unsigned ('u', a flag too) and signed integers, floats, strings and arrays.
constexpr std::string_view value_kinds = "uiuiuifusauif";
/// 0 if the size is not fixed.
constexpr std::array<std::uint8_t, value_kinds.size()> value_bytes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
constexpr std::size_t value_string = value_kinds.find('s'), value_array = value_kinds.find('a');

struct GgmlType {
  std::uint32_t id;
  std::string_view name;
  /// Elements of a block and the bytes that store them.
  std::int64_t block, block_bytes;
};
constexpr std::array<GgmlType, 34> ggml_types = {
    {{0, "F32", 1, 4},         {1, "F16", 1, 2},         {2, "Q4_0", 32, 18},      {3, "Q4_1", 32, 20},
     {6, "Q5_0", 32, 22},      {7, "Q5_1", 32, 24},      {8, "Q8_0", 32, 34},      {9, "Q8_1", 32, 36},
     {10, "Q2_K", 256, 84},    {11, "Q3_K", 256, 110},   {12, "Q4_K", 256, 144},   {13, "Q5_K", 256, 176},
     {14, "Q6_K", 256, 210},   {15, "Q8_K", 256, 292},   {16, "IQ2_XXS", 256, 66}, {17, "IQ2_XS", 256, 74},
     {18, "IQ3_XXS", 256, 98}, {19, "IQ1_S", 256, 50},   {20, "IQ4_NL", 32, 18},   {21, "IQ3_S", 256, 110},
     {22, "IQ2_S", 256, 82},   {23, "IQ4_XS", 256, 136}, {24, "I8", 1, 1},         {25, "I16", 1, 2},
     {26, "I32", 1, 4},        {27, "I64", 1, 8},        {28, "F64", 1, 8},        {29, "IQ1_M", 256, 56},
     {30, "BF16", 1, 2},       {34, "TQ1_0", 256, 54},   {35, "TQ2_0", 256, 66},   {39, "MXFP4", 32, 17},
     {40, "NVFP4", 64, 36},    {41, "Q1_0", 128, 18}}};

constexpr std::uint64_t default_alignment = 32;
constexpr std::uint64_t most_alignment = std::uint64_t{1} << 20U;
constexpr int deepest_array = 4;

}  // namespace

/// Walks through a header from front to back; every error names the byte.
class GgufHeaderReader {
 public:
  explicit GgufHeaderReader(GgufHeader& header) : header_(header), bytes_(header.file_.bytes()) {}

  void read() {
    require_magic();
    constexpr std::uint64_t least_tensor = 8 + 4 + 8 + 4 + 8, least_entry = 8 + 4 + 1;
    const std::uint64_t tensors = read_count("number of tensors", least_tensor);
    const std::uint64_t entries = read_count("number of metadata entries", least_entry);
    for (std::uint64_t i = 0; i < entries; ++i) read_entry();
    std::vector<std::uint64_t> offsets;
    for (std::uint64_t i = 0; i < tensors; ++i) offsets.push_back(read_tensor());
    require_data(offsets);
  }

 private:
  [[noreturn]] void refuse(std::uint64_t at, std::string field, std::string found, std::string expected) const {
    throw FileError(header_.path_, FileError::byte(static_cast<std::int64_t>(at)), std::move(field), std::move(found),
                    std::move(expected));
  }

  std::uint64_t left() const { return bytes_.size() - at_; }

  std::span<const std::byte> take(std::uint64_t count, std::string_view field) {
    if (count > left()) {
      refuse(at_, std::string(field), fmt::format("{} bytes long", count),
             fmt::format("at most the {} bytes that are left", left()));
    }
    const auto taken = bytes_.subspan(at_, count);
    at_ += count;
    return taken;
  }

  template <class T>
  T take_number(std::string_view field) {
    return load<T>(take(sizeof(T), field).data());
  }

  std::string_view take_string(std::string_view field) {
    const auto length = take_number<std::uint64_t>(field);
    return text_of(take(length, field));
  }

  void require_magic() {
    const std::string_view found = text_of(take(4, "file"));
    if (found != "GGUF") refuse(0, "magic", '"' + printable(found) + '"', "\"GGUF\"");
    const auto version = take_number<std::uint32_t>("version");
    if (version != 2 && version != 3) refuse(4, "version", fmt::format("{}", version), "2 or 3, little-endian");
  }

  std::uint64_t read_count(std::string_view field, std::uint64_t least_bytes) {
    const std::uint64_t at = at_;
    const auto count = take_number<std::uint64_t>(field);
    if (count > left() / least_bytes) {
      refuse(at, std::string(field), fmt::format("{}", count),
             fmt::format("at most {}, which {} bytes can hold", left() / least_bytes, left()));
    }
    return count;
  }

  std::uint32_t take_type(std::string_view key) {
    const std::uint64_t at = at_;
    const auto type = take_number<std::uint32_t>(key);
    if (type >= value_kinds.size()) refuse(at, "type of " + printable(key), fmt::format("{}", type), "in [0, 12]");
    return type;
  }

  void read_entry() {
    const std::uint64_t at = at_;
    std::string key(take_string("metadata key"));
    GgufHeader::Value value;
    value.type = take_type(key);
    if (value.type == value_array) {
      value.is_array = true;
      read_array(key, value, 1);
    } else {
      value.offset = static_cast<std::int64_t>(at_);
      value.bytes = take_value(key, value.type);
    }
    const auto [found, inserted] = header_.values_.emplace(std::move(key), value);
    if (!inserted) refuse(at, "metadata key", printable(found->first) + " for the second time", "written once");
  }

  /// A string's bytes follow its length.
  std::span<const std::byte> take_value(std::string_view key, std::uint32_t type) {
    if (type != value_string) return take(value_bytes.at(type), printable(key));
    const std::string_view text = take_string(printable(key));
    return std::as_bytes(std::span(text.data(), text.size()));
  }

  void read_array(std::string_view key, GgufHeader::Value& value, int depth) {
    const std::uint64_t at = at_;
    if (depth > deepest_array) {
      refuse(at, printable(key), "arrays within arrays", fmt::format("no deeper than {}", deepest_array));
    }
    value.type = take_type(key);
    constexpr std::uint64_t least_string = 8, least_array = 12;
    const std::uint64_t fixed = value_bytes.at(value.type);
    const std::uint64_t least = fixed > 0 ? fixed : value.type == value_string ? least_string : least_array;
    value.count = read_count("length of " + printable(key), least);
    value.offset = static_cast<std::int64_t>(at_);
    const std::uint64_t begin = at_;
    if (fixed > 0) {
      take(fixed * value.count, printable(key));
    } else {
      for (std::uint64_t i = 0; i < value.count; ++i) {
        GgufHeader::Value element;
        if (value.type == value_string) {
          take_value(key, value.type);
        } else {
          read_array(key, element, depth + 1);
        }
      }
    }
    value.bytes = bytes_.subspan(begin, at_ - begin);
  }

  /// Returns the offset of its data.
  std::uint64_t read_tensor() {
    GgufTensor tensor;
    tensor.name = take_string("name of a tensor");
    const std::string shown = printable(tensor.name);
    const std::uint64_t at = at_;
    const auto dimensions = take_number<std::uint32_t>(shown);
    if (dimensions < 1 || dimensions > 4) {
      refuse(at, "dimensions of " + shown, fmt::format("{}", dimensions), "in [1, 4]");
    }
    for (std::uint32_t i = 0; i < dimensions; ++i) {
      const auto size = take_number<std::uint64_t>(shown);
      constexpr std::uint64_t most = std::uint64_t{1} << 48U;
      if (size < 1 || size > most) refuse(at_ - 8, "shape of " + shown, fmt::format("{}", size), "in [1, 2^48]");
      tensor.shape.push_back(static_cast<std::int64_t>(size));
    }
    const auto id = take_number<std::uint32_t>(shown);
    const auto* type =
        std::find_if(ggml_types.begin(), ggml_types.end(), [&](const GgmlType& t) { return t.id == id; });
    if (type == ggml_types.end()) refuse(at_ - 4, "type of " + shown, fmt::format("{}", id), "a type of ggml");
    tensor.type = type->name;
    measure(tensor, *type, at);
    header_.tensors_.push_back(std::move(tensor));
    return take_number<std::uint64_t>(shown);
  }

  /// Computes elements and bytes. More bytes than the file has are rejected at once, so that no product overflows.
  void measure(GgufTensor& tensor, const GgmlType& type, std::uint64_t at) const {
    const std::string shown = printable(tensor.name);
    const std::int64_t columns = tensor.shape[0];
    if (columns % type.block != 0) {
      refuse(at, "shape of " + shown, fmt::format("{} columns", columns),
             fmt::format("a multiple of {}, as {} stores them", type.block, type.name));
    }
    const auto most = static_cast<std::int64_t>(bytes_.size());
    tensor.elements = 1;
    tensor.bytes = columns / type.block > most ? most + 1 : columns / type.block * type.block_bytes;
    for (std::size_t i = 1; i < tensor.shape.size() && tensor.bytes <= most; ++i) {
      tensor.bytes = tensor.shape[i] > most / tensor.bytes ? most + 1 : tensor.bytes * tensor.shape[i];
    }
    if (tensor.bytes > most) {
      refuse(at, "shape of " + shown, "larger than the file", fmt::format("at most {} bytes of data", most));
    }
    tensor.elements = tensor.bytes / type.block_bytes * type.block;
  }

  void require_data(std::span<const std::uint64_t> offsets) {
    const std::uint64_t alignment = read_alignment();
    const auto padded = [alignment](std::uint64_t size) { return (size + alignment - 1) / alignment * alignment; };
    const std::uint64_t begin = padded(at_);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      const GgufTensor& tensor = header_.tensors_[i];
      if (offsets[i] != padded(end)) {
        refuse(at_, "offset of " + printable(tensor.name), fmt::format("{}", offsets[i]),
               fmt::format("{}, where the tensor before it ends", padded(end)));
      }
      end = offsets[i] + static_cast<std::uint64_t>(tensor.bytes);
      if (begin + end > bytes_.size()) {
        refuse(bytes_.size(), "file", fmt::format("{} bytes long", bytes_.size()),
               fmt::format("at least {}, where {} ends", begin + end, printable(tensor.name)));
      }
    }
  }

  std::uint64_t read_alignment() const {
    const std::optional<std::int64_t> said = header_.integer("general.alignment");
    if (!said) return default_alignment;
    const auto alignment = static_cast<std::uint64_t>(*said);
    if (alignment < 8 || alignment > most_alignment || alignment % 8 != 0) {
      header_.refuse("general.alignment", fmt::format("{}", alignment), "a multiple of 8 in [8, 2^20]");
    }
    return alignment;
  }

  GgufHeader& header_;
  std::span<const std::byte> bytes_;
  std::uint64_t at_ = 0;
};

GgufHeader::GgufHeader(std::filesystem::path path) : path_(std::move(path)), file_(path_) {
  GgufHeaderReader(*this).read();
}

void GgufHeader::refuse(std::string_view key, std::string found, std::string expected) const {
  const auto value = values_.find(key);
  const auto place = value == values_.end() ? FileError::whole_file() : FileError::byte(value->second.offset);
  throw FileError(path_, place, printable(key), std::move(found), std::move(expected));
}

std::optional<std::int64_t> GgufHeader::integer(std::string_view key) const {
  const std::vector<std::int64_t> values = integers(key);
  if (!has(key)) return std::nullopt;
  if (values_.find(key)->second.is_array) refuse(key, "an array", "an integer");
  return values.front();
}

std::optional<std::string_view> GgufHeader::text(std::string_view key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) return std::nullopt;
  const Value& value = found->second;
  if (value.is_array || value.type != value_string) refuse(key, "something else", "a string");
  return text_of(value.bytes);
}

std::vector<std::int64_t> GgufHeader::integers(std::string_view key) const {
  std::vector<std::int64_t> result;
  const auto found = values_.find(key);
  if (found == values_.end()) return result;
  const Value& value = found->second;
  const std::uint64_t size = value_bytes.at(value.type);
  const char kind = value_kinds[value.type];
  constexpr const char* expected = "an integer in [0, 2147483647]";
  for (std::uint64_t i = 0; i < value.count; ++i) {
    if (kind != 'u' && kind != 'i') refuse(key, "something else", expected);
    const std::int64_t number = load_integer(value.bytes.data() + i * size, value_bytes[value.type], kind == 'i');
    if (number < 0 || number > std::numeric_limits<std::int32_t>::max())
      refuse(key, fmt::format("{}", number), expected);
    result.push_back(number);
  }
  return result;
}

}  // namespace specdec::traces
