#include "analysis/core/row_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "analysis/core/row_exponentials.cpp"
// Vectors whose length is only known at run time cannot be members of structures.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h must be included before highway.h.
#include <hwy/highway.h>

#include "analysis/core/row_readers.hpp"

HWY_BEFORE_NAMESPACE();
namespace specdec::core::row_kernels::HWY_NAMESPACE {
namespace {

/// exp(x) / 2^exponent. x = (16 n + k) log(2) / 16 + r:
///   exp x = 2^n 2^(k/16) (1 + r + r^2/2 + r^3/6),   |r| <= log(2) / 32
/// and without a table of 16 the same with steps of log(2) and a polynomial of degree 7.
/// Domain: |x| <= 1e5, and the result a normal number. Accuracy: relative 1.5e-7
class Exponential {
 public:
  explicit Exponential(int exponent) {
    const Ints whole = hn::Set(int_tag, static_cast<std::int32_t>(static_cast<std::uint32_t>(exponent) << 23U));
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
    const Ints k = hn::ShiftLeft<19>(hn::Iota(int_tag, 0));
    powers_ = hn::Sub(hn::Sub(hn::BitCast(int_tag, hn::Load(float_tag, roots)), k), whole);
#else
    powers_ = hn::Sub(hn::BitCast(int_tag, hn::Set(float_tag, 1.0F)), whole);
#endif
  }

  /// Step by step for all of them.
  template <std::size_t count>
  HWY_INLINE void operator()(const Floats (&x)[count], Floats (&out)[count]) const {
    const Floats magic = hn::Set(float_tag, 0x1.8p23F);
    Floats shifted[count];
    Floats r[count];
    for (std::size_t i = 0; i < count; ++i) {
      shifted[i] = hn::MulAdd(x[i], hn::Set(float_tag, 1.44269504F * steps), magic);
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Floats n = hn::Sub(shifted[i], magic);
      const Floats about = hn::NegMulAdd(n, hn::Set(float_tag, step_high), x[i]);
      r[i] = hn::NegMulAdd(n, hn::Set(float_tag, step_low), about);
    }
    for (std::size_t i = 0; i < count; ++i) {
      out[i] = hn::Mul(power_of_two(hn::BitCast(int_tag, shifted[i])), polynomial(r[i]));
    }
  }

 private:
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  static constexpr int steps = 16;
#else
  static constexpr int steps = 1;
#endif
  // log(2) = 0x1.62e4p-1 + 0x1.7f7d1cp-20: the product of the first with a count below 2^12 is exact even without a
  // fused multiplication.
  static constexpr float step_high = 0x1.62e4p-1F / steps;
  static constexpr float step_low = 0x1.7f7d1cp-20F / steps;

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX3_DL
  HWY_ALIGN static constexpr float roots[16] = {0x1.000000p+0F, 0x1.0b5586p+0F, 0x1.172b84p+0F, 0x1.2387a6p+0F,
                                                0x1.306fe0p+0F, 0x1.3dea64p+0F, 0x1.4bfdaep+0F, 0x1.5ab07ep+0F,
                                                0x1.6a09e6p+0F, 0x1.7a1148p+0F, 0x1.8ace54p+0F, 0x1.9c4918p+0F,
                                                0x1.ae89fap+0F, 0x1.c199bep+0F, 0x1.d5818ep+0F, 0x1.ea4afap+0F};

  /// The lowest bits of `shifted` are 16 n + k, and powers_[k] compensates for what k adds to the exponent.
  Floats power_of_two(Ints shifted) const {
    const Ints power{_mm512_permutexvar_epi32(shifted.raw, powers_.raw)};
    return hn::BitCast(float_tag, hn::Add(power, hn::ShiftLeft<19>(shifted)));
  }
  static Floats polynomial(Floats r) {
    const Floats one = hn::Set(float_tag, 1.0F);
    const Floats third = hn::MulAdd(r, hn::Set(float_tag, 1 / 6.0F), hn::Set(float_tag, 0.5F));
    return hn::MulAdd(hn::MulAdd(third, r, one), r, one);
  }
#else
  /// The lowest bits of `shifted` are n.
  Floats power_of_two(Ints shifted) const {
    return hn::BitCast(float_tag, hn::Add(powers_, hn::ShiftLeft<23>(shifted)));
  }
  static Floats polynomial(Floats r) {
    constexpr float coefficients[] = {1 / 720.0F, 1 / 120.0F, 1 / 24.0F, 1 / 6.0F, 0.5F, 1.0F, 1.0F};
    Floats sum = hn::Set(float_tag, 1 / 5040.0F);
    for (const float c : coefficients) sum = hn::MulAdd(sum, r, hn::Set(float_tag, c));
    return sum;
  }
#endif
  Ints powers_;
};

/// The smallest and the largest entry, lane by lane; a NaN may be either kept or passed over.
struct Range {
  Floats least;
  Floats most;

  Range() {
    most = hn::Set(float_tag, -std::numeric_limits<float>::infinity());
    least = hn::Neg(most);
  }

  template <class Reader>
  HWY_INLINE void look_at(const Reader& row) {
    for (std::size_t i = 0; i < group; i += lanes) {
      const Floats x = row.raw(i);
      least = hn::Min(least, x);
      most = hn::Max(most, x);
    }
  }
};

/// True if a block has a NaN; `end` is where it ends.
template <class Reader>
bool has_nan(Reader row, std::size_t first, std::size_t end) {
  for (std::size_t at = first; at < end; at += group) {
    row.start(at);
    for (std::size_t i = 0; i < group; i += lanes) {
      if (!hn::AllFalse(float_tag, hn::IsNaN(row.raw(i)))) return true;
    }
  }
  return false;
}

/// Below this a value would leave the normal numbers; it is computed from the stored logarithm instead.
float lowest_logarithm(const ExponentialBlock& block) {
  return static_cast<float>((block.exponent - 125) * 0.693147180559945309);
}

/// The values of a group of the block; `logarithms` is positioned at it.
/// @tparam plain  all of them are above lowest_logarithm and floor_logarithm, or NaN
/// @return their sum, NaN if one is
template <bool plain, class Reader>
double exponentials_of_group(const Reader& logarithms, const ExponentialBlock& block, float* values) {
  const Exponential exponential(block.exponent);
  const Floats lowest = hn::Set(float_tag, lowest_logarithm(block));
  const Floats floor = hn::Set(float_tag, floor_logarithm);
  // All probabilities are divided by this sum: equal terms must not bias it, so it soon continues in double.
  constexpr std::size_t few = 4;
  static_assert(vectors_per_sum % (2 * few) == 0);
  LongSum total;
  for (std::size_t i = 0; i < group; i += 2 * few * lanes) {
    Floats sums[2];
    for (std::size_t half = 0; half < 2; ++half) {
      const std::size_t at = i + half * few * lanes;
      Floats x[few];
      Floats value[few];
      for (std::size_t k = 0; k < few; ++k) {
        x[k] = logarithms.raw(at + k * lanes);
        // Preserves NaN.
        if (!plain) x[k] = hn::IfThenElse(hn::Lt(x[k], lowest), lowest, x[k]);
      }
      exponential(x, value);
      for (std::size_t k = 0; k < few; ++k) {
        if (!plain) value[k] = hn::IfThenZeroElse(hn::Le(logarithms.raw(at + k * lanes), floor), value[k]);
        hn::Store(value[k], float_tag, values + at + k * lanes);
      }
      sums[half] = hn::Add(hn::Add(value[0], value[1]), hn::Add(value[2], value[3]));
    }
    total.add(hn::Add(sums[0], sums[1]));
  }
  return total.value();
}

template <class Format>
bool exponentials_of(const std::byte* data, std::size_t vocab, float* values, ExponentialBlock* blocks) {
  StoredReader<Format> row(data, vocab);
  row.pad_with_minus_infinity(vocab);
  for (std::size_t first = 0; first < vocab; first += block_tokens) {
    const std::size_t end = std::min(first + block_tokens, (vocab + group - 1) / group * group);
    Range range;
    for (std::size_t at = first; at < end; at += group) {
      row.start(at);
      range.look_at(row);
    }
    ExponentialBlock& block = *blocks++;
    block.largest = hn::GetLane(hn::MaxOfLanes(float_tag, range.most));
    if (!(block.largest <= largest_logarithm)) return false;
    block.sum = 0;
    std::fill(values + end, values + first + block_tokens, 0.0F);
    if (!(block.largest > floor_logarithm)) {
      if (has_nan(row, first, end)) return false;
      block.exponent = 0;
      std::fill(values + first, values + end, 0.0F);
      block.largest = -std::numeric_limits<float>::infinity();
      continue;
    }
    block.exponent = static_cast<int>(std::ceil(double{block.largest} * 1.44269504088896341));
    const Floats low = hn::Set(float_tag, std::max(lowest_logarithm(block), floor_logarithm));
    const bool plain = hn::AllTrue(float_tag, hn::Gt(range.least, low));
    for (std::size_t at = first; at < end; at += group) {
      row.start(at);
      block.sum += plain ? exponentials_of_group<true>(row, block, values + at)
                         : exponentials_of_group<false>(row, block, values + at);
    }
    if (std::isnan(block.sum)) return false;
  }
  return true;
}

bool exponentials_of_row(traces::ElementType type, const std::byte* logarithms, std::size_t vocab, float* values,
                         ExponentialBlock* blocks) {
  if (type == traces::ElementType::f32) return exponentials_of<StoredF32>(logarithms, vocab, values, blocks);
  if (type == traces::ElementType::f16) return exponentials_of<StoredF16>(logarithms, vocab, values, blocks);
  return exponentials_of<StoredBf16>(logarithms, vocab, values, blocks);
}

}  // namespace
}  // namespace specdec::core::row_kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace specdec::core::row_kernels {
namespace {

HWY_EXPORT(exponentials_of_row);

}  // namespace

bool exponentials(traces::ElementType type, const std::byte* logarithms, std::size_t vocab, float* values,
                  ExponentialBlock* blocks) {
  return HWY_DYNAMIC_DISPATCH(exponentials_of_row)(type, logarithms, vocab, values, blocks);
}

}  // namespace specdec::core::row_kernels
#endif
