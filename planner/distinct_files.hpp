#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

namespace specdec::planner {

/// A file that stands there twice, by whatever names, would count twice.
/// @throws QuestionError naming the option and the file
void require_distinct(std::string_view option, const std::vector<std::filesystem::path>& files);
/// Refuses files that `other`, an option too, names as well.
/// @throws QuestionError naming both options and the file
void require_apart(std::string_view option, const std::vector<std::filesystem::path>& files, std::string_view other,
                   const std::vector<std::filesystem::path>& others);

}  // namespace specdec::planner
