#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::cli {

/// One option in a sweep's file: each of `values` is one value of the option, or several of an option that
/// takes several.
struct SweepAxis {
  std::string name;
  std::vector<std::vector<std::string>> values;
  /// Line of the file, counted from 1.
  std::int64_t line = 1;
};

/// One section of a sweep's file, [plan] or [capacity]: the product of its axes.
struct SweepSection {
  std::string command;
  std::vector<SweepAxis> axes;
  std::int64_t line = 1;
};

/// The sections of a sweep's file: what --print-config writes, in which a list of values stands for each of them, one
/// after the other. A section that is there several times is written [[plan]]. In
///
///     [plan]
///     model = "llama-3.1-70b"
///     hardware = ["h100", "h200"]
///     batch = [1, 8, 64]            # three points; "1,8,64" is one point of three batches
///     counters = [["a.txt", "b.txt"], ["c.txt"]]   # two points, the first of them of two files
///
/// @param file  its name, for messages
/// @throws UsageError naming the line
std::vector<SweepSection> sweep_sections(const std::string& file, std::string_view toml);

}  // namespace specdec::cli
