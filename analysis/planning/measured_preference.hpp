#pragma once

namespace specdec::planning {

/// What beyond the measured drafts may be lost by staying within them, as a share of the speedup, [0, 1). A gamma that
/// rests on an acceptance that nobody measured is recommended only where it gains more than this by every reading of
/// how acceptance goes on, the one that falls most too.
///
/// Source:   docs/theory.md#plans-over-batch-and-context
inline constexpr double measured_preference = 0.05;

}  // namespace specdec::planning
