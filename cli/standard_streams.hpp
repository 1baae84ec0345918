#pragma once

#include <string_view>

namespace specdec::cli {

/// Gives standard input, output and error a descriptor where the program was started without one, from which nothing
/// can be read or written; else the next file that is opened would take their place and what is said to a terminal.
void occupy_standard_streams();

/// Lets a write beyond the limit on a file's size (ulimit -f) fail as any other, where a signal would end the program.
void fail_beyond_file_size_limit();

/// Writes to standard error. That it cannot be written changes nothing about a run: there is nobody to tell.
void say(std::string_view text);

}  // namespace specdec::cli
