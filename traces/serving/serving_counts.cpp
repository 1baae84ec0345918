#include "traces/serving/serving_counts.hpp"

#include <fmt/format.h>

#include <utility>

namespace specdec::traces {

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
