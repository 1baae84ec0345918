#include "analysis/estimate/resampling.hpp"

#include <Random123/philox.h>

#include <cmath>

namespace specdec::estimate {
namespace {

std::uint32_t low_half(std::uint64_t x) { return static_cast<std::uint32_t>(x & 0xffff'ffff); }
std::uint32_t high_half(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

double resampling_weight(std::uint64_t seed, std::uint64_t resampling, std::uint64_t cluster) {
  const r123::Philox4x32::key_type key = {{low_half(seed), high_half(seed)}};
  const r123::Philox4x32::ctr_type counter = {
      {low_half(cluster), high_half(cluster), low_half(resampling), high_half(resampling)}};
  const r123::Philox4x32::ctr_type words = r123::Philox4x32()(counter, key);
  const std::uint64_t bits = (std::uint64_t{words[0]} << 32U | words[1]) >> 11U;
  return -std::log((static_cast<double>(bits) + 0.5) * 0x1p-53);
}

}  // namespace specdec::estimate
