#pragma once

#include <cstdint>
#include <span>

namespace specdec::estimate {

/// How often each of K things is drawn when K are drawn with replacement; a function of its arguments alone.
///
///   draw i: floor(w K / 2^32), w the word i mod 4 of Philox4x32-10 with key = seed and
///   counter = (i / 4, resampling low, resampling high, stratum)
///
/// A thing's probability is off by at most 2^-32.
/// Source:   Salmon et al. 2011 (Random123); docs/theory.md#the-best-gamma-of-a-recording
/// @param counts  (K), K < 2^32; overwritten
void draw_with_replacement(std::uint64_t seed, std::uint64_t resampling, std::uint32_t stratum,
                           std::span<double> counts);

}  // namespace specdec::estimate
