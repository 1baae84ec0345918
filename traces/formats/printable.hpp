#pragma once

#include <string>
#include <string_view>

namespace specdec::traces {

/// A file's text as messages show it: one line of ASCII, truncated to `longest` characters.
std::string printable(std::string_view text, std::size_t longest = 60);

}  // namespace specdec::traces
