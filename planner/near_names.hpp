#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace specdec::planner {

/// " (near it: h100-sxm, h100-pcie)": up to three of the known names that were perhaps meant, the nearest first; empty
/// where none is near. Near are names that hold the given one or are held by it, and those at most a third of its
/// characters away by insertions, deletions, exchanges and swaps of neighbours; upper and lower case alike.
std::string near_names(std::string_view name, const std::vector<std::string>& known);

}  // namespace specdec::planner
