#pragma once

#include <filesystem>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/temporary_folder.hpp"
#include "traces/file_error.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::tests {

/// All that the files' readers hand over.
struct AllCounts {
  std::vector<traces::ServingCounts> units;
  std::vector<Note> warnings;

  explicit AllCounts(const std::vector<std::filesystem::path>& files, bool plain_windows = false) {
    traces::read_serving_counts(files, {[&](const traces::ServingCounts& unit) { units.push_back(unit); },
                                        [&](const Note& warning) { warnings.push_back(warning); }, plain_windows});
  }

  bool warns(std::string_view code) const {
    for (const Note& warning : warnings) {
      if (warning.code == code) return true;
    }
    return false;
  }
};

/// Reads contents as the files 1.txt, 2.txt, ... in that order.
inline AllCounts counts_of(std::initializer_list<std::string> contents, bool plain_windows = false) {
  const TemporaryFolder folder;
  std::vector<std::filesystem::path> files;
  for (const std::string& content : contents) {
    files.push_back(folder.write(std::to_string(files.size() + 1) + ".txt", content));
  }
  return AllCounts(files, plain_windows);
}

/// A text without the folder in front of files' names.
inline std::string without_folder(std::string text, const std::filesystem::path& folder) {
  const std::string prefix = folder.string() + "/";
  for (std::size_t at = 0; (at = text.find(prefix, at)) != std::string::npos;) text.erase(at, prefix.size());
  return text;
}

/// The error with which reading contents as counts_of() does is refused; "" if it is not.
inline std::string counts_refusal(std::initializer_list<std::string> contents, bool plain_windows = false) {
  const TemporaryFolder folder;
  std::vector<std::filesystem::path> files;
  for (const std::string& content : contents) {
    files.push_back(folder.write(std::to_string(files.size() + 1) + ".txt", content));
  }
  return without_folder(message_of<traces::FileError>([&] { AllCounts counts(files, plain_windows); }), folder.path());
}

}  // namespace specdec::tests
