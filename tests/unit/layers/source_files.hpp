#pragma once

#include <filesystem>
#include <vector>

#include "tests/support/source_dir.hpp"

namespace specdec::tests {

/// The headers and sources of all layers, relative to source_dir().
inline std::vector<std::filesystem::path> source_files() {
  const std::filesystem::path source = source_dir();
  std::vector<std::filesystem::path> files;
  for (const char* layer : {"traces", "analysis", "sim", "planner", "render", "cli", "python", "web"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(source / layer)) {
      const auto extension = entry.path().extension();
      if (extension == ".hpp" || extension == ".cpp") files.push_back(std::filesystem::relative(entry.path(), source));
    }
  }
  return files;
}

}  // namespace specdec::tests
