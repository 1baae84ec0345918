// Philox4x32-10 in SIMD lanes, for files that Highway compiles once per instruction set: included by them after
// highway.h, once for each set.
#if defined(SPECDEC_SIM_PHILOX_LANES) == defined(HWY_TARGET_TOGGLE)
#ifdef SPECDEC_SIM_PHILOX_LANES
#undef SPECDEC_SIM_PHILOX_LANES
#else
#define SPECDEC_SIM_PHILOX_LANES
#endif

#include <hwy/highway.h>

#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace specdec::sim::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Every 32-bit word of a block has its own 64-bit lane, whose upper half may hold anything: products read the
// lower half only.
const hn::CappedTag<std::uint64_t, 8> wide;
using Wide = hn::Vec<decltype(wide)>;

constexpr int philox_rounds = 10;

struct PhiloxKeys {
  explicit PhiloxKeys(std::uint64_t key) {
    auto k0 = static_cast<std::uint32_t>(key & 0xffff'ffff);
    auto k1 = static_cast<std::uint32_t>(key >> 32);
    for (int i = 0; i < philox_rounds; ++i) {
      first[i] = k0;
      second[i] = k1;
      k0 += 0x9E3779B9U;
      k1 += 0xBB67AE85U;
    }
  }
  std::uint64_t first[philox_rounds];
  std::uint64_t second[philox_rounds];
};

HWY_INLINE Wide product(Wide a, Wide b) {
#if HWY_TARGET == HWY_SCALAR
  return hn::Set(wide, (hn::GetLane(a) & 0xffff'ffffU) * (hn::GetLane(b) & 0xffff'ffffU));
#else
  const hn::RepartitionToNarrow<decltype(wide)> narrow;
  return hn::MulEven(hn::BitCast(narrow, a), hn::BitCast(narrow, b));
#endif
}

HWY_INLINE Wide low_word(Wide a) { return hn::And(a, hn::Set(wide, 0xffff'ffffU)); }
HWY_INLINE Wide high_word(Wide a) { return hn::ShiftRight<32>(a); }

// Converts counters to random words, in place.
HWY_INLINE void philox(const PhiloxKeys& keys, Wide& w0, Wide& w1, Wide& w2, Wide& w3) {
  const Wide m0 = hn::Set(wide, 0xD2511F53U);
  const Wide m1 = hn::Set(wide, 0xCD9E8D57U);
  for (int i = 0; i < philox_rounds; ++i) {
    const Wide p0 = product(w0, m0);
    const Wide p1 = product(w2, m1);
    w0 = hn::Xor3(high_word(p1), w1, hn::Set(wide, keys.first[i]));
    w1 = p1;
    w2 = hn::Xor3(high_word(p0), w3, hn::Set(wide, keys.second[i]));
    w3 = p0;
  }
}

// a < b for numbers below 2^63: not every instruction set compares unsigned ones.
HWY_INLINE hn::Mask<decltype(wide)> less(Wide a, Wide b) {
  const hn::RebindToSigned<decltype(wide)> with_sign;
  return hn::RebindMask(wide, hn::Lt(hn::BitCast(with_sign, a), hn::BitCast(with_sign, b)));
}

}  // namespace
}  // namespace specdec::sim::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
