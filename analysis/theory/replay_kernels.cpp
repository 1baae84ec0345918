#include "analysis/theory/replay_kernels.hpp"

// Highway compiles this file once per instruction set and picks one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "analysis/theory/replay_kernels.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace specdec::theory::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<double> wide;
const hn::CappedTag<double, 1> single;

// Calls step(tag, i) for whole vectors, then for the remaining positions.
template <class Step>
HWY_INLINE void for_each_vector(std::size_t n, Step step) {
  const std::size_t lanes = hn::Lanes(wide);
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) step(wide, i);
  for (; i < n; ++i) step(single, i);
}

// Two running sums, so that one addition need not wait for the last one.
template <class Add>
HWY_INLINE double sum_of(std::size_t n, Add add) {
  const std::size_t lanes = hn::Lanes(wide);
  auto even = hn::Zero(wide);
  auto odd = hn::Zero(wide);
  std::size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    even = add(wide, i, even);
    odd = add(wide, i + lanes, odd);
  }
  auto rest = hn::Zero(single);
  for (; i < n; ++i) rest = add(single, i, rest);
  return hn::GetLane(hn::SumOfLanes(wide, hn::Add(even, odd))) + hn::GetLane(rest);
}

void multiply_lanes(const double* a, const double* b, double* out, std::size_t n) {
  for_each_vector(n, [=](auto d, std::size_t i)
                         HWY_ATTR { hn::StoreU(hn::Mul(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i); });
}

// Row by row each value would wait for the one `lag` before it; in stretches the rows fill each other's waits.
void advance_starts_lanes(const double* acceptance, const double* products, double* starts, std::size_t rows,
                          std::size_t stride, std::size_t n) {
  const std::size_t lanes = hn::Lanes(wide);
  for (std::size_t begin = 0; begin < n; begin += lanes) {
    const std::size_t count = HWY_MIN(lanes, n - begin);
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t lag = row + 1;
      const double* product = products + row * stride + begin;
      double* out = starts + row * stride + begin;
      const auto step = [=](auto d, std::size_t i) HWY_ATTR {
        const auto rejected = hn::Sub(hn::Set(d, 1.0), hn::LoadU(d, acceptance + begin + i - 1));
        hn::StoreU(hn::MulAdd(hn::LoadU(d, product + i), hn::LoadU(d, out + i - lag), rejected), d, out + i);
      };
      // A vector may refer back to results of earlier vectors only.
      if (lag >= lanes && count == lanes) {
        step(wide, 0);
      } else {
        for (std::size_t i = 0; i < count; ++i) step(single, i);
      }
    }
  }
}

double sum_lanes(const double* values, std::size_t n) {
  return sum_of(n, [=](auto d, std::size_t i, auto sum) HWY_ATTR { return hn::Add(sum, hn::LoadU(d, values + i)); });
}

double dot_lanes(const double* a, const double* b, std::size_t n) {
  return sum_of(n, [=](auto d, std::size_t i, auto sum)
                       HWY_ATTR { return hn::MulAdd(hn::LoadU(d, a + i), hn::LoadU(d, b + i), sum); });
}

}  // namespace
}  // namespace specdec::theory::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace specdec::theory::kernels {

HWY_EXPORT(multiply_lanes);
HWY_EXPORT(advance_starts_lanes);
HWY_EXPORT(sum_lanes);
HWY_EXPORT(dot_lanes);

void multiply(const double* a, const double* b, double* out, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(multiply_lanes)(a, b, out, n);
}

void advance_starts(const double* acceptance, const double* products, double* starts, std::size_t rows,
                    std::size_t stride, std::size_t n) {
  HWY_DYNAMIC_DISPATCH(advance_starts_lanes)(acceptance, products, starts, rows, stride, n);
}

double sum(const double* values, std::size_t n) { return HWY_DYNAMIC_DISPATCH(sum_lanes)(values, n); }

double dot(const double* a, const double* b, std::size_t n) { return HWY_DYNAMIC_DISPATCH(dot_lanes)(a, b, n); }

}  // namespace specdec::theory::kernels
#endif
