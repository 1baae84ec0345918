#include "sim/replay_draws.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "sim/random.hpp"

// Highway compiles this file once per instruction set and picks one at run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sim/replay_draws.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "sim/philox_lanes.hpp"

HWY_BEFORE_NAMESPACE();
namespace specdec::sim::kernels::HWY_NAMESPACE {
namespace {

// Bit i is set if the draw of lane i lies below its threshold.
HWY_INLINE std::uint64_t accepted_lanes(const PhiloxKeys& keys, Wide slot, const std::uint64_t* sequences,
                                        const std::uint64_t* rounds, const std::uint64_t* thresholds) {
  Wide w0 = hn::LoadU(wide, sequences);
  Wide w1 = high_word(w0);
  Wide w2 = hn::LoadU(wide, rounds);
  Wide w3 = slot;
  philox(keys, w0, w1, w2, w3);
  const Wide bits = hn::Or(low_word(w0), hn::ShiftLeft<32>(w1));
  std::uint8_t mask[8] = {};
  hn::StoreMaskBits(wide, less(hn::ShiftRight<11>(bits), hn::LoadU(wide, thresholds)), mask);
  return mask[0];
}

void draw(std::uint64_t seed, const std::uint64_t* sequences, const std::uint64_t* rounds, std::uint64_t slot,
          const std::uint64_t* thresholds, std::size_t n, std::uint64_t* accepted) {
  const PhiloxKeys keys(seed);
  const Wide slots = hn::Set(wide, slot);
  const std::size_t lanes = hn::Lanes(wide);
  std::fill(accepted, accepted + (n + 63) / 64, std::uint64_t{0});
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    accepted[i / 64] |= accepted_lanes(keys, slots, sequences + i, rounds + i, thresholds + i) << (i % 64);
  }
  if (i == n) return;
  // Lanes behind the last have threshold 0, below which no draw lies.
  std::uint64_t rest[3][hn::MaxLanes(wide)] = {};
  std::copy(sequences + i, sequences + n, rest[0]);
  std::copy(rounds + i, rounds + n, rest[1]);
  std::copy(thresholds + i, thresholds + n, rest[2]);
  accepted[i / 64] |= accepted_lanes(keys, slots, rest[0], rest[1], rest[2]) << (i % 64);
}

}  // namespace
}  // namespace specdec::sim::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace specdec::sim::kernels {

HWY_EXPORT(draw);

void draw_acceptances(std::uint64_t seed, std::span<const std::int64_t> sequences, std::span<const std::int64_t> rounds,
                      std::int64_t slot, std::span<const std::uint64_t> thresholds, std::span<std::uint64_t> accepted) {
  const auto purpose = std::uint64_t{static_cast<std::uint32_t>(Purpose::acceptance)} << 28;
  // Signed and unsigned integers of one size may read each other.
  HWY_DYNAMIC_DISPATCH(draw)
  (seed, reinterpret_cast<const std::uint64_t*>(sequences.data()),
   reinterpret_cast<const std::uint64_t*>(rounds.data()), static_cast<std::uint64_t>(slot) | purpose, thresholds.data(),
   thresholds.size(), accepted.data());
}

}  // namespace specdec::sim::kernels
#endif
