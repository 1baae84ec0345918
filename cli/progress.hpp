#pragma once

#include <functional>
#include <string>

namespace specdec::cli {

/// Takes the share of the work done, in [0, 1].
using Progress = std::function<void(double share)>;

/// One line on standard error, "specdec: validating, 40%", rewritten in place and removed at the end; nothing where
/// that is no terminal, or if `quiet`: then it may not be called.
Progress progress_line(const std::string& what, bool quiet);

}  // namespace specdec::cli
