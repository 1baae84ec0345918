#include "cli/interruption.hpp"

#include <atomic>
#include <csignal>

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

}  // namespace specdec::cli
