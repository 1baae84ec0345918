#pragma once

#include <cstdint>
#include <span>

/// The draws of a replay, in SIMD lanes chosen at run time: the same numbers on every instruction set.
namespace specdec::sim::kernels {

/// ceil(2^53 a): a number of RandomStream, m 2^-53, lies below a exactly if m lies below this.
/// @param a  [0, 1]
inline std::uint64_t draw_threshold(double a) {
  const double scaled = a * 0x1p53;
  const auto whole = static_cast<std::uint64_t>(scaled);
  return whole + (static_cast<double>(whole) < scaled ? 1 : 0);
}

/// Bit i mod 64 of accepted[i / 64] is set if RandomStream(seed, sequences[i]).uniform(rounds[i], slot, acceptance)
/// lies below the probability of thresholds[i]; the bits behind the last are not.
/// Shape: (n) but for `accepted`, (ceil(n / 64)). Inputs are not checked here.
/// @param rounds      each in [0, RandomStream::max_round]
/// @param slot        [0, RandomStream::max_slot]
/// @param thresholds  draw_threshold of each probability
void draw_acceptances(std::uint64_t seed, std::span<const std::int64_t> sequences, std::span<const std::int64_t> rounds,
                      std::int64_t slot, std::span<const std::uint64_t> thresholds, std::span<std::uint64_t> accepted);

}  // namespace specdec::sim::kernels
