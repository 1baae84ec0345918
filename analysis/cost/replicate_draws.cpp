#include "analysis/cost/replicate_draws.hpp"

#include <Random123/philox.h>

#include <algorithm>
#include <cmath>
#include <numbers>

namespace specdec::cost {
namespace {

std::uint32_t low_half(std::uint64_t x) { return static_cast<std::uint32_t>(x & 0xffff'ffff); }
std::uint32_t high_half(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); }

double open_unit(std::uint32_t low, std::uint32_t high) {
  const std::uint64_t bits = (std::uint64_t{high} << 32 | low) >> 11;
  return std::ldexp(static_cast<double>(bits) + 0.5, -53);
}

}  // namespace

ReplicateDraws::Pair ReplicateDraws::pair(std::uint64_t index) const {
  const r123::Philox4x32::key_type key = {{low_half(seed_), high_half(seed_)}};
  const r123::Philox4x32::ctr_type counter = {{low_half(index), high_half(index), replicate_, stream_}};
  const r123::Philox4x32::ctr_type words = r123::Philox4x32()(counter, key);
  return {open_unit(words[0], words[1]), open_unit(words[2], words[3])};
}

double ReplicateDraws::standard_normal(std::uint64_t index) const {
  const Pair uniforms = pair(index);
  return std::sqrt(-2 * std::log(uniforms.first)) * std::cos(2 * std::numbers::pi * uniforms.second);
}

double ReplicateDraws::exponential(std::uint64_t index) const { return -std::log(uniform(index)); }

std::size_t ReplicateDraws::below(std::uint64_t index, std::size_t count) const {
  return std::min(static_cast<std::size_t>(uniform(index) * static_cast<double>(count)), count - 1);
}

}  // namespace specdec::cost
