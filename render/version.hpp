#pragma once

#include <string_view>

namespace specdec::render {

/// The version of the program and its libraries, "1.2.3".
std::string_view version();

}  // namespace specdec::render
