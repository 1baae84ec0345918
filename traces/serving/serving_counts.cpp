#include "traces/serving/serving_counts.hpp"

#include <fmt/format.h>

#include <utility>

namespace specdec::traces {

std::vector<TimesBetween> RoundTimes::buckets() const {
  std::vector<TimesBetween> buckets;
  double edge = 0, counted = 0;
  for (const auto& [high, below] : up_to) {
    if (below > counted) buckets.push_back({edge, high, below - counted});
    edge = high;
    counted = below;
  }
  return buckets;
}

std::string_view ServingCounts::label(std::string_view name) const {
  for (const CountLabel& label : labels) {
    if (label.name == name) return label.value;
  }
  return {};
}

std::string ServingCounts::place() const {
  return line > 0 ? fmt::format("{}:{}", file.string(), line) : file.string();
}

FileError ServingCounts::refusal(std::string field, std::string found, std::string expected) const {
  return FileError(file, line > 0 ? FileError::line(line) : FileError::whole_file(), std::move(field), std::move(found),
                   std::move(expected));
}

}  // namespace specdec::traces
