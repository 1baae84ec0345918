#pragma once

namespace specdec::cli {

/// Takes the place of the first Ctrl-C (SIGINT) while it lives: the signal is remembered instead of ending the program.
/// A second one ends it. One at a time.
class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  /// Whether it has come; from any thread.
  static bool requested();
};

}  // namespace specdec::cli
