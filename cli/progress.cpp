#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace specdec::cli {

Progress progress_line(const std::string& what, bool quiet) {
  if (quiet || isatty(STDERR_FILENO) == 0) return {};
  return [what](double share) {
    if (share < 1) {
      fmt::print(stderr, "\rspecdec: {}, {:.0f}%", what, 100 * share);
    } else {
      fmt::print(stderr, "\r{:{}}\r", "", what.size() + 15);
    }
    std::fflush(stderr);
  };
}

}  // namespace specdec::cli
