#pragma once

#include <string>
#include <string_view>

namespace specdec::render {

/// The standard output of gnuplot for this script, which it reads from its standard input. No shell, named
/// file or user settings are involved.
/// @throws planner::QuestionError if gnuplot is not installed
/// @throws std::runtime_error with gnuplot's message if it fails
std::string run_gnuplot(std::string_view script);

}  // namespace specdec::render
