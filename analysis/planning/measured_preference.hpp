#pragma once

#include <algorithm>

namespace specdec::planning {

/// The loss that is accepted for staying within the longest measured draft, as a share of the speedup, [0, 1). A gamma
/// beyond it is recommended only if it gains more than this by every reading of how acceptance continues, including the
/// one that falls most, less the sampling error that the two do not share. Of several such it is the fastest by the
/// estimate.
///
/// Source:   docs/theory.md#plans-over-batch-and-context
inline constexpr double measured_preference = 0.05;

/// The part of a gamma's sampling error that a shorter one does not share: rates that are carried further are those of
/// the shorter one, whose error moves both the same way.
/// @param gamma, shorter  how far the 95% intervals of their tokens per step reach below the estimates, as logarithms
constexpr double further_error(double gamma, double shorter) { return std::max(0.0, gamma - shorter); }

/// True if a gamma beyond the longest measured one may be taken in place of the best up to there: what it gives by
/// every reading is more than `preference` faster, or is `enough` where the other is not.
/// @param least       speedup of that gamma by the reading that says least, less its own sampling error, > 0
/// @param measured    that of the best gamma up to the longest measured one, > 0
/// @param enough      speedup that is asked for, > 0
/// @param preference  [0, 1)
constexpr bool surely_gains(double least, double measured, double enough, double preference) {
  return measured < (1 - preference) * least || (least >= enough && measured < enough);
}

}  // namespace specdec::planning
