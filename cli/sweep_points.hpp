#pragma once

#include <string>
#include <vector>

#include "cli/sweep_file.hpp"
#include "planner/sweeps/sweep.hpp"

namespace specdec::cli {

/// The points of a sweep, one section's after the other's; the last option of a section varies fastest.
struct SweepPoints {
  planner::SweepCommand command = planner::SweepCommand::plan;
  std::vector<planner::SweepPoint> points;
  /// SweepSettings::given.
  std::vector<std::string> uncertain;
  /// Files that are read for some of them.
  std::vector<std::string> files;
};

/// No sweep has more.
inline constexpr std::int64_t most_sweep_points = 1'000'000;

/// @param file  its name, for messages
/// @throws UsageError naming the line where a section is of no command that can be swept, a name is no option of it, or
///   a value is illegal whatever else is said
SweepPoints sweep_points(const std::string& file, const std::vector<SweepSection>& sections);

}  // namespace specdec::cli
