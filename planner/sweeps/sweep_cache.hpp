#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "planner/sweeps/sweep_rows.hpp"

namespace specdec::planner {

/// Answers kept in a folder, one file each, named by the SHA-256 of the question, of the program's version and of the
/// figures that come with it. A file appears under its name only when it is whole; several processes may share a
/// folder.
class SweepCache {
 public:
  /// @throws QuestionError if there is no such folder and none can be made
  SweepCache(std::filesystem::path folder, const std::string& version);

  /// Empty if the answer is not there, or its file is damaged.
  std::optional<PointAnswer> answer(std::string_view question) const;
  /// @throws QuestionError if the file cannot be written
  void keep(std::string_view question, const PointAnswer& answer) const;

 private:
  /// The question as it is hashed.
  std::string key(std::string_view question) const;
  std::filesystem::path path(const std::string& key) const;

  std::filesystem::path folder_;
  std::string program_;
};

}  // namespace specdec::planner
