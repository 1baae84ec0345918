#pragma once

#include <string>

namespace specdec::planner {

/// Whether two files hold the same bytes; false for a stream, which can be read once alone.
/// @throws traces::FileError for a file that cannot be read
bool same_bytes(const std::string& a, const std::string& b);

}  // namespace specdec::planner
