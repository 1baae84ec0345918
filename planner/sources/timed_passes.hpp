#pragma once

#include <string>
#include <string_view>

#include "traces/formats/timing_table.hpp"

namespace specdec::planner {

/// The timed passes that a file holds.
/// @param option  what the file was given by, for messages
/// @throws QuestionError if the file counts rounds or times answers, and times no passes; traces::FileError if it is
///   no table of times that can be read
traces::TimingTable timed_passes(std::string_view option, const std::string& file);

}  // namespace specdec::planner
