#pragma once

#include <functional>
#include <string>

namespace specdec::cli {

/// Takes the share of the work done, in [0, 1].
using Progress = std::function<void(double share)>;

/// One line on standard error, "specdec: validating, 40%, 12 s left", rewritten in place and removed at the end;
/// empty if that is no terminal or if `quiet`, and must not be called then. The time left is told from the second
/// second on as if the rest took as long as the shares that were told; what was done before the first one does not
/// count.
Progress progress_line(const std::string& what, bool quiet);

}  // namespace specdec::cli
