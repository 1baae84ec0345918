#include "analysis/estimate/resampling.hpp"

#include <Random123/philox.h>

#include <algorithm>

namespace specdec::estimate {
namespace {

std::uint32_t low_half(std::uint64_t x) { return static_cast<std::uint32_t>(x & 0xffff'ffff); }
std::uint32_t high_half(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

}  // namespace

void draw_with_replacement(std::uint64_t seed, std::uint64_t resampling, std::uint32_t stratum,
                           std::span<double> counts) {
  std::fill(counts.begin(), counts.end(), 0.0);
  const r123::Philox4x32::key_type key = {{low_half(seed), high_half(seed)}};
  r123::Philox4x32::ctr_type words{};
  for (std::uint64_t i = 0; i < counts.size(); ++i) {
    if (i % 4 == 0) {
      const r123::Philox4x32::ctr_type counter = {
          {low_half(i / 4), low_half(resampling), high_half(resampling), stratum}};
      words = r123::Philox4x32()(counter, key);
    }
    counts[words[i % 4] * counts.size() >> 32] += 1;
  }
}

}  // namespace specdec::estimate
