#include "cli/interruption.hpp"

#include <atomic>
#include <csignal>

#include "cli/progress.hpp"

namespace specdec::cli {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

extern "C" void remember_interruption(int) {
  interrupted = true;
  std::signal(SIGINT, SIG_DFL);
}

}  // namespace

Interruption::Interruption() {
  interrupted = false;
  std::signal(SIGINT, remember_interruption);
}

Interruption::~Interruption() { std::signal(SIGINT, SIG_DFL); }

bool Interruption::requested() { return interrupted; }

core::RunHooks interruptible(const std::string& doing, bool quiet) {
  return {progress_line(doing, quiet), Interruption::requested};
}

}  // namespace specdec::cli
