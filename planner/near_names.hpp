#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace specdec::planner {

/// " (near it: h100-sxm, h100-pcie)": up to three of the known names that may have been meant, the nearest first; empty
/// if none is near. A name is near if it contains the given one or is contained in it, or is at most a third of its
/// characters away by insertions, deletions, exchanges and swaps of neighbours; case is ignored.
std::string near_names(std::string_view name, const std::vector<std::string>& known);

}  // namespace specdec::planner
