#pragma once

#include <string>
#include <string_view>

namespace specdec::render {

/// What gnuplot writes to its standard output for this script, which it reads from its standard input. No shell, no
/// file with a name and no settings of the user's are between.
/// @throws planner::QuestionError where gnuplot is not installed
/// @throws std::runtime_error with gnuplot's complaint where it fails
std::string run_gnuplot(std::string_view script);

}  // namespace specdec::render
