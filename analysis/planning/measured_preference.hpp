#pragma once

namespace specdec::planning {

/// The loss that is accepted for staying within the measured drafts, as a share of the speedup, [0, 1). A gamma that
/// rests on unmeasured acceptance is recommended only if it gains more than this by every reading of how acceptance
/// continues, including the one that falls most.
///
/// Source:   docs/theory.md#plans-over-batch-and-context
inline constexpr double measured_preference = 0.05;

}  // namespace specdec::planning
