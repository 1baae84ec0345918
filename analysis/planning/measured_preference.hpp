#pragma once

namespace specdec::planning {

/// The loss that is accepted for staying within the longest measured draft, as a share of the speedup, [0, 1). A gamma
/// beyond it is recommended only if it gains more than this by every reading of how acceptance continues, including the
/// one that falls most.
///
/// Source:   docs/theory.md#plans-over-batch-and-context
inline constexpr double measured_preference = 0.05;

/// True if the best gamma up to the longest measured one is taken in place of one beyond: it is within `preference` of
/// what that surely gives, and no gain of `enough` that is sure is given up for one that is less.
/// @param measured, sure, enough  speedups over plain decoding, > 0
/// @param preference              [0, 1)
constexpr bool prefers_measured(double measured, double sure, double enough, double preference) {
  if (sure >= enough && measured < enough) return false;
  return measured >= (1 - preference) * sure;
}

}  // namespace specdec::planning
