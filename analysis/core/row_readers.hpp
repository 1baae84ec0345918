// Included once for each instruction set, behind hwy/foreach_target.h: no `#pragma once`.
#if defined(SPECDEC_ROW_READERS) == defined(HWY_TARGET_TOGGLE)
#ifdef SPECDEC_ROW_READERS
#undef SPECDEC_ROW_READERS
#else
#define SPECDEC_ROW_READERS
#endif

#include <hwy/highway.h>

#include <cstring>
#include <type_traits>

#include "analysis/core/row_kernels.hpp"

HWY_BEFORE_NAMESPACE();
namespace specdec::core::row_kernels::HWY_NAMESPACE {
namespace {

// A header of the library's own sources; it is not installed. Rows read vector by vector, and sums of what is read.

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using Floats = hn::Vec<FloatTag>;
using IntTag = hn::RebindToSigned<FloatTag>;
using Ints = hn::Vec<IntTag>;
constexpr FloatTag float_tag;
constexpr IntTag int_tag;
constexpr hn::RebindToUnsigned<FloatTag> bits_tag;
constexpr hn::Rebind<std::uint16_t, FloatTag> half_tag;
constexpr std::size_t lanes = hn::MaxLanes(float_tag);

/// A lane of floats adds this many terms before its sum continues in double. Equal terms are the worst case: n of them
/// are summed with a relative error of n/3 * 2^-24.
constexpr std::size_t vectors_per_sum = lanes == 16 ? 32 : 16;
constexpr std::size_t group = vectors_per_sum * lanes;
static_assert(block_tokens % group == 0);

/// Tokens are needed this many bytes after they are prefetched.
constexpr std::size_t prefetch_bytes = 3072;

template <class Tag>
hn::Vec<Tag> load_anywhere(Tag tag, const std::byte* from) {
#if HWY_TARGET == HWY_SCALAR
  hn::TFromD<Tag> value;
  std::memcpy(&value, from, sizeof value);
  return hn::Set(tag, value);
#else
  return hn::LoadU(tag, reinterpret_cast<const hn::TFromD<Tag>*>(from));
#endif
}

struct StoredF32 {
  static constexpr std::size_t size = 4;
  static constexpr std::uint32_t minus_infinity = 0xff800000U;
  static Floats load(const std::byte* from) { return load_anywhere(float_tag, from); }
};

struct StoredF16 {
  static constexpr std::size_t size = 2;
  static constexpr std::uint16_t minus_infinity = 0xfc00U;
  static Floats load(const std::byte* from) {
    const auto halves = load_anywhere(half_tag, from);
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    constexpr hn::Rebind<hwy::float16_t, FloatTag> f16_tag;
    return hn::PromoteTo(float_tag, hn::BitCast(f16_tag, halves));
#else
    // As traces::float_from_f16.
    const auto bits = hn::PromoteTo(bits_tag, halves);
    const auto magnitude = hn::ShiftLeft<13>(hn::And(bits, hn::Set(bits_tag, 0x7fffU)));
    const auto sign = hn::ShiftLeft<16>(hn::And(bits, hn::Set(bits_tag, 0x8000U)));
    const auto value = hn::Mul(hn::BitCast(float_tag, magnitude), hn::Set(float_tag, 0x1p112F));
    const auto special = hn::BitCast(float_tag, hn::Or(magnitude, hn::Set(bits_tag, 0x7f800000U)));
    const auto is_special = hn::Ge(value, hn::Set(float_tag, 0x1p16F));
    return hn::Or(hn::IfThenElse(is_special, special, value), hn::BitCast(float_tag, sign));
#endif
  }
};

struct StoredBf16 {
  static constexpr std::size_t size = 2;
  static constexpr std::uint16_t minus_infinity = 0xff80U;
  static Floats load(const std::byte* from) {
    return hn::BitCast(float_tag, hn::ShiftLeft<16>(hn::PromoteTo(bits_tag, load_anywhere(half_tag, from))));
  }
  /// The even ones and the odd ones: no conversion.
  static HWY_INLINE void load_two(const std::byte* from, Floats& even, Floats& odd) {
    const auto words = load_anywhere(bits_tag, from);
    even = hn::BitCast(float_tag, hn::ShiftLeft<16>(words));
    odd = hn::BitCast(float_tag, hn::And(words, hn::Set(bits_tag, 0xffff0000U)));
  }
};

/// Reads a stored row vector by vector, wherever it lies, the last ones from a copy that is padded with 0.
template <class Format>
class StoredReader {
 public:
  StoredReader(const std::byte* data, std::size_t vocab) : data_(data), whole_(vocab / group * group) {
    std::memcpy(rest_, data + whole_ * Format::size, (vocab - whole_) * Format::size);
  }

  /// Pads a row of logarithms with probability 0 instead.
  void pad_with_minus_infinity(std::size_t vocab) {
    constexpr auto padding = Format::minus_infinity;
    static_assert(sizeof padding == Format::size);
    for (std::size_t i = vocab - whole_; i < group; ++i) std::memcpy(rest_ + i * Format::size, &padding, Format::size);
  }

  /// The group that begins with token `first`.
  void start(std::size_t first) { at_ = first < whole_ ? data_ + first * Format::size : rest_; }
  Floats raw(std::size_t i) const { return Format::load(ahead(i)); }
  Floats probability(std::size_t i) const { return raw(i); }
  /// Probabilities of tokens i to i + 2 lanes, in an order that is the same for all rows of a type.
  HWY_INLINE void two_probabilities(std::size_t i, Floats& a, Floats& b) const {
    if (std::is_same_v<Format, StoredBf16> && lanes > 1) {
      StoredBf16::load_two(ahead(i), a, b);
    } else {
      a = raw(i);
      b = raw(i + lanes);
    }
  }

 private:
  const std::byte* ahead(std::size_t i) const {
    const std::byte* from = at_ + i * Format::size;
    if (i * Format::size % 64 == 0) __builtin_prefetch(from + prefetch_bytes);
    return from;
  }

  const std::byte* data_;
  std::size_t whole_;
  const std::byte* at_ = nullptr;
  std::byte rest_[group * Format::size] = {};
};

class StagedReader {
 public:
  StagedReader(const StagedRow& row, std::size_t) : row_(row) {}

  void start(std::size_t first) {
    at_ = row_.values + first;
    scale_ = hn::Set(float_tag, row_.scale[first / block_tokens]);
    scale_low_ = hn::Set(float_tag, row_.scale_low[first / block_tokens]);
  }
  Floats raw(std::size_t i) const {
    __builtin_prefetch(at_ + i + prefetch_bytes / sizeof(float));
    return hn::Load(float_tag, at_ + i);
  }
  Floats probability(std::size_t i) const {
    const Floats value = raw(i);
    return hn::MulAdd(value, scale_, hn::Mul(value, scale_low_));
  }
  HWY_INLINE void two_probabilities(std::size_t i, Floats& a, Floats& b) const {
    a = probability(i);
    b = probability(i + lanes);
  }

 private:
  const StagedRow& row_;
  const float* at_ = nullptr;
  Floats scale_;
  Floats scale_low_;
};

/// Short sums of floats, added up in double. They stay in memory: the registers are needed for other things in between.
class LongSum {
 public:
  void add(Floats v) {
#if HWY_TARGET == HWY_SCALAR
    const auto halves = v;
#else
    constexpr hn::Half<FloatTag> narrow;
    const auto halves = hn::Add(hn::LowerHalf(narrow, v), hn::UpperHalf(narrow, v));
#endif
    hn::Store(hn::Add(hn::Load(double_tag, line_), hn::PromoteTo(double_tag, halves)), double_tag, line_);
  }
  double value() const {
    double sum = 0;
    for (const double d : line_) sum += d;
    return sum;
  }

 private:
  static constexpr hn::CappedTag<double, 8> double_tag{};
  HWY_ALIGN double line_[hn::MaxLanes(double_tag)] = {};
};

}  // namespace
}  // namespace specdec::core::row_kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
