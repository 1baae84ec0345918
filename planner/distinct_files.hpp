#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace specdec::planner {

/// Refuses a file that is listed twice, under whatever names, since it would count twice.
/// @throws QuestionError naming the option and the file
void require_distinct(std::string_view option, const std::vector<std::filesystem::path>& files);
/// Refuses files that are also listed under the option `other`.
/// @throws QuestionError naming both options and the file
void require_apart(std::string_view option, const std::vector<std::filesystem::path>& files, std::string_view other,
                   const std::vector<std::filesystem::path>& others);

/// Whether two files hold the same bytes; false for a stream, which can be read once alone.
/// @throws traces::FileError for a file that cannot be read
bool same_bytes(const std::string& a, const std::string& b);

}  // namespace specdec::planner
