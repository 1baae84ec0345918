#include "analysis/core/row_kernels.hpp"

#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "analysis/core/row_kernels.cpp"
// Vectors whose length is only known at run time cannot be members of structures.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#include <hwy/foreach_target.h>
// foreach_target.h must be included before highway.h.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "analysis/core/row_readers.hpp"

HWY_BEFORE_NAMESPACE();
namespace specdec::core::row_kernels::HWY_NAMESPACE {
namespace {

/// Makes a nonnegative number normal, for the logarithm. Nonnegative floats compare like integers, and integers are
/// compared at twice the speed.
Floats at_least_normal(Floats x) {
  const Ints least = hn::BitCast(int_tag, hn::Set(float_tag, std::numeric_limits<float>::min()));
  return hn::BitCast(float_tag, hn::Max(hn::BitCast(int_tag, x), least));
}

// ---------------------------------------------------------------------------------------- sums of pairs

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
  GroupSums() { overlap = missing = rejected = target_logs = squares = log_squares = hn::Zero(float_tag); }

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
    *blocks = {drafted.value(), confidence.value(), accepted.value(), hn::GetLane(hn::MaxOfLanes(float_tag, largest))};
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
