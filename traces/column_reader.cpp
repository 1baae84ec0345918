#include "traces/column_reader.hpp"

#include <bit>
#include <utility>

#include "traces/formats/little_endian.hpp"

namespace specdec::traces {
namespace {

float float_from_f64(double value) {
  constexpr auto largest = static_cast<double>(std::numeric_limits<float>::max());
  constexpr float infinity = std::numeric_limits<float>::infinity();
  if (value > largest) return infinity;
  if (value < -largest) return -infinity;
  return static_cast<float>(value);
}

}  // namespace

void ColumnReader::require_logprobs(const Tensor* tensor, std::span<const float> values) const {
  if (tensor == nullptr) return;
  const auto highest = static_cast<float>(row_sum_tolerance(tensor->type));
  require(
      tensor, values, [=](float value) { return value <= highest; }, "a log-probability, at most 0");
}

void ColumnReader::require_logprobs_or_nan(const Tensor* tensor, std::span<const float> values) const {
  if (tensor == nullptr) return;
  const auto highest = static_cast<float>(row_sum_tolerance(tensor->type));
  require(
      tensor, values, [=](float value) { return !(value > highest); },
      "a log-probability, at most 0, or NaN where unknown");
}

void ColumnReader::report(const Tensor& tensor, std::int64_t index, std::string found, std::string expected) const {
  const std::int64_t width = width_of(tensor);
  const std::int64_t at = first_ * width + index;
  std::string field = fmt::format("{} row {}", tensor.name, at / width);
  if (width > 1) field += fmt::format(" column {}", at % width);
  sink_(FileError(shard_->file().path(), FileError::byte(tensor.offset + at * size_of(tensor.type)), std::move(field),
                  std::move(found), std::move(expected)));
}

void ColumnReader::convert(const Tensor& tensor, std::int64_t first, std::span<float> out) {
  if (tensor.type != ElementType::f64) return read_floats(tensor, first, out);
  const std::byte* from = tensor.bytes.data() + first * size_of(tensor.type);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = float_from_f64(load<double>(from + i * sizeof(double)));
}

std::int64_t ColumnReader::integer_at(const Tensor& tensor, std::int64_t index) {
  const std::byte* from = tensor.bytes.data() + index * size_of(tensor.type);
  if (tensor.type == ElementType::i64) return load<std::int64_t>(from);
  if (tensor.type == ElementType::i32) return load<std::int32_t>(from);
  return load<std::uint8_t>(from);
}

std::int64_t RepeatFinder::first_repeat(std::span<const std::int32_t> row) {
  const std::size_t slots = std::bit_ceil(2 * row.size() + 1);
  if (table_.size() < slots) table_.assign(slots, {});
  ++row_;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (row[i] >= 0 && !insert(row[i])) return static_cast<std::int64_t>(i);
  }
  return -1;
}

bool RepeatFinder::insert(std::int32_t id) {
  const std::size_t mask = table_.size() - 1;
  for (std::size_t at = (static_cast<std::uint32_t>(id) * 2654435769U) & mask;; at = (at + 1) & mask) {
    if (table_[at].row != row_) {
      table_[at] = {row_, id};
      return true;
    }
    if (table_[at].id == id) return false;
  }
}

}  // namespace specdec::traces
