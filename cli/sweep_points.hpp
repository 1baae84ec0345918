#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

/// A file of options in which a list stands for each of its values, one after the other, and a section that is there
/// several times is written [[plan]]. In
///
///     [plan]
///     model = "llama-3.1-70b"
///     hardware = ["h100", "h200"]
///     batch = [1, 8, 64]            # three points; "1,8,64" is one point of three batches
///     counters = [["a.txt", "b.txt"], ["c.txt"]]   # two points, the first of them of two files
///
/// @param file  its name, for messages
/// @throws UsageError naming the line where a section is of no command that can be swept, a name is no option of it, or
///   a value is illegal whatever else is said
SweepPoints sweep_points(const std::string& file, std::string_view text);

}  // namespace specdec::cli
