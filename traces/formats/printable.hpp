#pragma once

#include <string>
#include <string_view>

namespace specdec::traces {

/// Text of a file as a message shows it: one line of ASCII, cut after `longest` characters.
std::string printable(std::string_view text, std::size_t longest = 60);

}  // namespace specdec::traces
