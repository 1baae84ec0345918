#pragma once

#include "cli/command_line.hpp"

/// `specdec trace ...`: read, check, convert and make recordings.
namespace specdec::cli {

/// The content of a recording.
Command trace_info_command();
/// Everything that is wrong with it, with file and place.
Command trace_check_command();
/// Any readable format as a specdec-trace, of any tier that the recording can give.
Command trace_convert_command();
/// A part of it: tasks, sequences, positions.
Command trace_slice_command();
/// Synthetic recordings with known answers.
Command trace_generate_command();
/// Several recordings as one.
Command trace_merge_command();

}  // namespace specdec::cli
