#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace specdec::traces {

/// 64 bits that look random: fmix64, the finaliser of Appleby's MurmurHash3, a bijection.
constexpr std::uint64_t scrambled(std::uint64_t x) {
  x = (x ^ (x >> 33U)) * 0xff51afd7ed558ccd;
  x = (x ^ (x >> 33U)) * 0xc4ceb9fe1a85ec53;
  return x ^ (x >> 33U);
}

/// Stands for an unknown prompt.
inline constexpr std::int64_t no_prompt = std::numeric_limits<std::int64_t>::min();

/// The number that stands for a prompt in the column `prompt`. Integers stand for themselves; any other text is
///
///   2^62 + the low 62 bits of scrambled(FNV-1a(text)),
///
/// so that a prompt's name or its whole text is the same number in every recording, on every machine. Two of a million
/// texts share one with probability 1e-7.
///
/// Source:   Fowler, Noll and Vo's FNV-1a in 64 bits
/// @param text  empty: no_prompt
std::int64_t prompt_id(std::string_view text);

}  // namespace specdec::traces
