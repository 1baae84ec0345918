#pragma once

#include <string>

#include "analysis/core/run_hooks.hpp"

namespace specdec::cli {

/// Takes the place of the first Ctrl-C (SIGINT) while it lives: the signal is remembered instead of ending the program.
/// A second one ends it. One at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// Whether it has come; may be called from any thread.
  static bool requested();
};

/// Progress on a terminal; the first Ctrl-C ends the run with what there is, while an Interruption lives.
core::RunHooks interruptible(const std::string& doing, bool quiet);

}  // namespace specdec::cli
