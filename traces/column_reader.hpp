#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "traces/formats/safetensors.hpp"
#include "traces/trace_shard.hpp"

namespace specdec::traces {

/// Reads and checks columns of the open shard, some rows at a time.
class ColumnReader {
 public:
  explicit ColumnReader(const ErrorSink& sink) : sink_(sink) {}

  void set_shard(const TraceShard* shard) { shard_ = shard; }
  void set_rows(std::int64_t first, std::int64_t count) {
    first_ = first;
    count_ = count;
  }

  /// The values as T: a view of the file if they are stored aligned and as T, else converted into `buffer`.
  template <class T>
  std::span<const T> values(const Tensor* tensor, std::vector<T>& buffer) const {
    if (tensor == nullptr) return {};
    const std::int64_t width = width_of(*tensor);
    const std::byte* from = tensor->bytes.data() + first_ * width * size_of(tensor->type);
    const auto size = static_cast<std::size_t>(count_ * width);
    if (is_stored_as<T>(*tensor) && reinterpret_cast<std::uintptr_t>(from) % alignof(T) == 0) {
      return {reinterpret_cast<const T*>(from), size};
    }
    buffer.resize(size);
    if constexpr (std::is_same_v<T, float>) {
      convert(*tensor, first_ * width, buffer);
    } else {
      for (std::size_t i = 0; i < size; ++i) {
        buffer[i] = narrowed<T>(*tensor, first_ * width + static_cast<std::int64_t>(i));
      }
    }
    return buffer;
  }

  /// Reports the values for which ok() is false.
  template <class T, class Ok>
  void require(const Tensor* tensor, std::span<const T> values, const Ok& ok, const std::string& expected) const {
    bool all = true;
    for (const T value : values) all &= ok(value);
    if (all) return;
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!ok(values[i])) report(*tensor, static_cast<std::int64_t>(i), fmt::format("{}", values[i]), expected);
    }
  }

  template <class T>
  void require_in(const Tensor* tensor, std::span<const T> values, T lowest, T highest) const {
    require(
        tensor, values, [=](T value) { return lowest <= value && value <= highest; },
        highest == std::numeric_limits<T>::max() ? fmt::format("at least {}", lowest)
                                                 : fmt::format("in [{}, {}]", lowest, highest));
  }

  void require_logprobs(const Tensor* tensor, std::span<const float> values) const;
  void require_logprobs_or_nan(const Tensor* tensor, std::span<const float> values) const;

  /// @param index  counted from the first value of these rows
  void report(const Tensor& tensor, std::int64_t index, std::string found, std::string expected) const;

  /// Numbers a position.
  static std::int64_t width_of(const Tensor& tensor) { return tensor.shape.size() == 2 ? tensor.shape[1] : 1; }

 private:
  /// `out[i]` = element first + i of a floating tensor; values beyond the range of float become infinite.
  static void convert(const Tensor& tensor, std::int64_t first, std::span<float> out);
  /// An element of an integer tensor.
  static std::int64_t integer_at(const Tensor& tensor, std::int64_t index);

  template <class T>
  static bool is_stored_as(const Tensor& tensor) {
    if (std::is_same_v<T, float>) return tensor.type == ElementType::f32;
    return tensor.type == (sizeof(T) == sizeof(std::int32_t) ? ElementType::i32 : ElementType::i64);
  }

  template <class T>
  T narrowed(const Tensor& tensor, std::int64_t index) const {
    const std::int64_t value = integer_at(tensor, index);
    if (std::numeric_limits<T>::min() <= value && value <= std::numeric_limits<T>::max()) return static_cast<T>(value);
    report(tensor, index - first_ * width_of(tensor), fmt::format("{}", value), "an integer of 32 bits");
    return -1;
  }

  const ErrorSink& sink_;
  const TraceShard* shard_ = nullptr;
  std::int64_t first_ = 0;
  std::int64_t count_ = 0;
};

/// Finds ids that occur twice in a row. Memory use depends on the longest row only.
class RepeatFinder {
 public:
  /// The index of the first id >= 0 that occurred before in the row, or -1.
  std::int64_t first_repeat(std::span<const std::int32_t> row);

 private:
  struct Slot {
    std::int64_t row = 0;
    std::int32_t id = 0;
  };

  bool insert(std::int32_t id);

  /// A hash table; only the slots that name the current row count.
  std::vector<Slot> table_;
  std::int64_t row_ = 0;
};

}  // namespace specdec::traces
