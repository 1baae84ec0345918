#include "cli/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>

#include "cli/standard_streams.hpp"

namespace specdec::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Shown {
  std::mutex lock;
  Clock::time_point begin = Clock::now(), last = {};
  std::optional<double> first_share;
};

/// ", 12 s left", ", 5 min left", ", 3 h 20 min left".
std::string left_text(double seconds) {
  constexpr double minute = 60, hour = 3600;
  if (seconds < minute) return fmt::format(", {:.0f} s left", seconds);
  if (seconds < hour) return fmt::format(", {:.0f} min left", seconds / minute);
  const auto minutes = static_cast<long long>(seconds / minute);
  return fmt::format(", {} h {} min left", minutes / 60, minutes % 60);
}

}  // namespace

Progress progress_line(const std::string& what, bool quiet) {
  if (quiet || isatty(STDERR_FILENO) == 0) return {};
  return [what, shown = std::make_shared<Shown>()](double share) {
    constexpr std::size_t width_of_rest = 40;
    const std::size_t width = what.size() + width_of_rest;
    const std::lock_guard hold(shown->lock);
    if (share >= 1) return say(fmt::format("\r{:{}}\r", "", width));
    const Clock::time_point now = Clock::now();
    if (!shown->first_share) shown->first_share = share;
    if (now - shown->last < std::chrono::milliseconds(50)) return;
    shown->last = now;
    const double seconds = std::chrono::duration<double>(now - shown->begin).count();
    const double done = share - *shown->first_share;
    const std::string left = seconds >= 2 && done > 0 ? left_text(seconds * (1 - share) / done) : "";
    say(fmt::format("\r{:<{}}", fmt::format("specdec: {}, {:.0f}%{}", what, 100 * share, left), width));
  };
}

}  // namespace specdec::cli
