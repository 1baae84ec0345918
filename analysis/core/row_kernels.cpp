#include "analysis/core/row_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "analysis/core/row_kernels.cpp"
// Vectors whose length is only known at run time cannot be members of structures.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h must be included before highway.h.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace specdec::core::row_kernels::HWY_NAMESPACE {
namespace {

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

/// Makes a nonnegative number normal, for the logarithm. Nonnegative floats compare like integers, and integers are
/// compared at twice the speed.
Floats at_least_normal(Floats x) {
  const Ints least = hn::BitCast(int_tag, hn::Set(float_tag, std::numeric_limits<float>::min()));
  return hn::BitCast(float_tag, hn::Max(hn::BitCast(int_tag, x), least));
}

// ---------------------------------------------------------------------------------------------- reading

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

// ---------------------------------------------------------------------------------------- sums of pairs

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

/// The largest entry of a row so far, and the group in which it first occurred.
struct Largest {
  float value = -1;
  std::size_t first = 0;

  /// @param at_least_all  no entry of the group's lanes is larger, apart from roundings: in most groups that settles it
  template <class Reader>
  void look_at(const Reader& row, Floats at_least_all, std::size_t group_first) {
    const Floats enough = hn::Set(float_tag, value - 1e-5F * value);
    if (hn::AllFalse(float_tag, hn::Ge(at_least_all, enough))) return;
    const float most = largest_probability(row);
    if (!(most > value)) return;
    value = most;
    first = group_first;
  }

 private:
  template <class Reader>
  static HWY_NOINLINE float largest_probability(const Reader& row) {
    Ints most = hn::Zero(int_tag);
    for (std::size_t i = 0; i < group; i += lanes) {
      most = hn::Max(most, hn::BitCast(int_tag, row.probability(i)));
    }
    return hn::GetLane(hn::MaxOfLanes(float_tag, hn::BitCast(float_tag, most)));
  }
};

/// The running sums of a row, group by group.
struct RunningSums {
  LongSum overlap, missing, rejected, target_logs, acceptance, surprisal;
  Largest target_largest, draft_largest;
};

/// The sums of one group, in float, lane by lane.
struct GroupSums {
  Floats overlap, missing, rejected, target_logs, squares, log_squares;

  // Written out: compiler-generated code is not compiled for the instruction set.
  GroupSums() {
    overlap = missing = rejected = target_logs = squares = log_squares = hn::Zero(float_tag);
  }

  HWY_INLINE void add(Floats x, Floats y, Floats m) {
    const Floats x_positive = at_least_normal(x);
    overlap = hn::Add(overlap, m);
    missing = hn::Add(missing, hn::Sub(x, m));
    rejected = hn::Add(rejected, hn::Sub(y, m));
    squares = hn::MulAdd(m, hn::Div(m, x_positive), squares);
    const Floats log_x = hn::Log(float_tag, x_positive);
    const Floats x_log_x = hn::Mul(x, log_x);
    target_logs = hn::Add(target_logs, x_log_x);
    log_squares = hn::MulAdd(x_log_x, log_x, log_squares);
  }

  HWY_INLINE void add_to(RunningSums& sums) const {
    sums.overlap.add(overlap);
    sums.missing.add(missing);
    sums.rejected.add(rejected);
    sums.target_logs.add(target_logs);
    sums.acceptance.add(squares);
    sums.surprisal.add(log_squares);
  }
};

/// Adds one group. Kept separate so that the sums in double take no registers from the loop, which needs all of them.
template <class Reader>
HWY_NOINLINE void sum_group(const Reader& p, const Reader& q, std::size_t first, RunningSums& sums, PairSums& out) {
  GroupSums g;
  Ints m_least = hn::Zero(int_tag);
  for (std::size_t i = 0; i < group; i += 2 * lanes) {
    Floats x[2], y[2];
    p.two_probabilities(i, x[0], x[1]);
    q.two_probabilities(i, y[0], y[1]);
    for (std::size_t k = 0; k < 2; ++k) {
      const Ints m = hn::Min(hn::BitCast(int_tag, x[k]), hn::BitCast(int_tag, y[k]));
      m_least = hn::Min(m_least, m);
      g.add(x[k], y[k], hn::BitCast(float_tag, m));
    }
  }
  g.add_to(sums);
  sums.target_largest.look_at(p, hn::Add(g.overlap, g.missing), first);
  sums.draft_largest.look_at(q, hn::Add(g.overlap, g.rejected), first);
  out.negative |= !hn::AllFalse(int_tag, hn::Lt(m_least, hn::Zero(int_tag)));
}

template <class Reader>
void sum_pair(Reader p, Reader q, std::size_t vocab, PairSums& out) {
  RunningSums sums;
  for (std::size_t first = 0; first < vocab; first += group) {
    p.start(first);
    q.start(first);
    sum_group(p, q, first, sums, out);
  }
  out.overlap = sums.overlap.value();
  out.missing = sums.missing.value();
  out.rejected = sums.rejected.value();
  out.target_logs = sums.target_logs.value();
  out.acceptance_squares = sums.acceptance.value();
  out.surprisal_squares = sums.surprisal.value();
  out.target_max = sums.target_largest.value;
  out.target_max_first = sums.target_largest.first;
  out.draft_max = sums.draft_largest.value;
  out.draft_max_first = sums.draft_largest.first;
}

template <class Format>
void sum_pair_of(const std::byte* target, const std::byte* draft, std::size_t vocab, PairSums& out) {
  sum_pair(StoredReader<Format>(target, vocab), StoredReader<Format>(draft, vocab), vocab, out);
}

void sum_stored_rows(traces::ElementType type, const std::byte* target, const std::byte* draft, std::size_t vocab,
                     PairSums& out) {
  if (type == traces::ElementType::f32) return sum_pair_of<StoredF32>(target, draft, vocab, out);
  if (type == traces::ElementType::f16) return sum_pair_of<StoredF16>(target, draft, vocab, out);
  return sum_pair_of<StoredBf16>(target, draft, vocab, out);
}

void sum_staged_rows(const StagedRow& target, const StagedRow& draft, std::size_t vocab, PairSums& out) {
  sum_pair(StagedReader(target, vocab), StagedReader(draft, vocab), vocab, out);
}

// ----------------------------------------------------------------------------------------- exponentials

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

  /// Step by step for all of them, as in BinaryLogarithm.
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

// --------------------------------------------------------------------------------------------- lenience

void sum_leniences_of_rows(const StagedRow& target, const StagedRow& draft, std::size_t vocab, const float* leniences,
                           const float* inverse, LenienceSums* out) {
  StagedReader p(target, vocab);
  StagedReader q(draft, vocab);
  LongSum accepted[leniences_at_once], rejected[leniences_at_once], excess[leniences_at_once],
      missing[leniences_at_once];
  const Floats zero = hn::Zero(float_tag);
  for (std::size_t first = 0; first < vocab; first += group) {
    p.start(first);
    q.start(first);
    Floats a[leniences_at_once], r[leniences_at_once], e[leniences_at_once], s[leniences_at_once];
    for (std::size_t k = 0; k < leniences_at_once; ++k) a[k] = r[k] = e[k] = s[k] = zero;
    for (std::size_t i = 0; i < group; i += lanes) {
      const Floats x = p.probability(i);
      const Floats y = q.probability(i);
      const Floats strict = hn::Min(x, y);
      for (std::size_t k = 0; k < leniences_at_once; ++k) {
        const Floats taken = hn::Min(hn::Mul(x, hn::Set(float_tag, inverse[k])), y);
        a[k] = hn::Add(a[k], taken);
        r[k] = hn::Add(r[k], hn::Sub(y, taken));
        e[k] = hn::Add(e[k], hn::Sub(taken, strict));
        const Floats lacking = hn::NegMulAdd(y, hn::Set(float_tag, leniences[k]), x);
        s[k] = hn::Add(s[k], hn::Max(zero, lacking));
      }
    }
    for (std::size_t k = 0; k < leniences_at_once; ++k) {
      accepted[k].add(a[k]);
      rejected[k].add(r[k]);
      excess[k].add(e[k]);
      missing[k].add(s[k]);
    }
  }
  for (std::size_t k = 0; k < leniences_at_once; ++k) {
    out[k] = {accepted[k].value(), rejected[k].value(), excess[k].value(), missing[k].value()};
  }
}

void sum_lenient_distances_of_rows(const StagedRow& target, const StagedRow& draft, std::size_t vocab,
                                   const float* leniences, const float* inverse, const float* kappa, double* out) {
  StagedReader p(target, vocab);
  StagedReader q(draft, vocab);
  LongSum distance[leniences_at_once];
  const Floats zero = hn::Zero(float_tag);
  for (std::size_t first = 0; first < vocab; first += group) {
    p.start(first);
    q.start(first);
    Floats d[leniences_at_once];
    for (auto& sum : d) sum = zero;
    for (std::size_t i = 0; i < group; i += lanes) {
      const Floats x = p.probability(i);
      const Floats y = q.probability(i);
      for (std::size_t k = 0; k < leniences_at_once; ++k) {
        const Floats taken = hn::Min(hn::Mul(x, hn::Set(float_tag, inverse[k])), y);
        const Floats lacking = hn::Max(zero, hn::NegMulAdd(y, hn::Set(float_tag, leniences[k]), x));
        const Floats over = hn::MulAdd(lacking, hn::Set(float_tag, kappa[k]), hn::Sub(taken, x));
        d[k] = hn::Add(d[k], hn::Max(zero, over));
      }
    }
    for (std::size_t k = 0; k < leniences_at_once; ++k) distance[k].add(d[k]);
  }
  for (std::size_t k = 0; k < leniences_at_once; ++k) out[k] = distance[k].value();
}

// ------------------------------------------------------------------------------------------- confidence

void sum_confidences_of_rows(const StagedRow& target, const StagedRow& draft, std::size_t vocab,
                             ConfidenceBlock* blocks) {
  StagedReader p(target, vocab);
  StagedReader q(draft, vocab);
  const Floats zero = hn::Zero(float_tag);
  for (std::size_t block = 0; block < vocab; block += block_tokens, ++blocks) {
    LongSum drafted, confidence, accepted;
    Floats largest = zero;
    for (std::size_t first = block; first < block + block_tokens; first += group) {
      p.start(first);
      q.start(first);
      Floats d = zero, c = zero, a = zero;
      for (std::size_t i = 0; i < group; i += lanes) {
        const Floats y = q.probability(i);
        d = hn::Add(d, y);
        c = hn::MulAdd(y, y, c);
        a = hn::Add(a, hn::Min(p.probability(i), y));
        largest = hn::Max(largest, y);
      }
      drafted.add(d);
      confidence.add(c);
      accepted.add(a);
    }
    *blocks = {drafted.value(), confidence.value(), accepted.value(),
               hn::GetLane(hn::MaxOfLanes(float_tag, largest))};
  }
}

}  // namespace
}  // namespace specdec::core::row_kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace specdec::core::row_kernels {
namespace {

HWY_EXPORT(sum_stored_rows);
HWY_EXPORT(sum_staged_rows);
HWY_EXPORT(exponentials_of_row);
HWY_EXPORT(sum_leniences_of_rows);
HWY_EXPORT(sum_lenient_distances_of_rows);
HWY_EXPORT(sum_confidences_of_rows);

}  // namespace

void sum_stored(traces::ElementType type, const std::byte* target, const std::byte* draft, std::size_t vocab,
                PairSums& out) {
  HWY_DYNAMIC_DISPATCH(sum_stored_rows)(type, target, draft, vocab, out);
}

void sum_staged(const StagedRow& target, const StagedRow& draft, std::size_t vocab, PairSums& out) {
  HWY_DYNAMIC_DISPATCH(sum_staged_rows)(target, draft, vocab, out);
}

bool exponentials(traces::ElementType type, const std::byte* logarithms, std::size_t vocab, float* values,
                  ExponentialBlock* blocks) {
  return HWY_DYNAMIC_DISPATCH(exponentials_of_row)(type, logarithms, vocab, values, blocks);
}

void sum_leniences(const StagedRow& target, const StagedRow& draft, std::size_t vocab, const float* leniences,
                   const float* inverse, LenienceSums* out) {
  HWY_DYNAMIC_DISPATCH(sum_leniences_of_rows)(target, draft, vocab, leniences, inverse, out);
}

void sum_lenient_distances(const StagedRow& target, const StagedRow& draft, std::size_t vocab, const float* leniences,
                           const float* inverse, const float* kappa, double* out) {
  HWY_DYNAMIC_DISPATCH(sum_lenient_distances_of_rows)(target, draft, vocab, leniences, inverse, kappa, out);
}

void sum_confidences(const StagedRow& target, const StagedRow& draft, std::size_t vocab, ConfidenceBlock* blocks) {
  HWY_DYNAMIC_DISPATCH(sum_confidences_of_rows)(target, draft, vocab, blocks);
}

}  // namespace specdec::core::row_kernels
#endif
