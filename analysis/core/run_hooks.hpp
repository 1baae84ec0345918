#pragma once

#include <functional>

namespace specdec::core {

/// Calls that a long run makes now and then, to tell and to ask. Either may be empty.
struct RunHooks {
  /// Receives the share of the work that is done, in [0, 1].
  std::function<void(double share)> progress = {};
  /// Returning true ends the run with what there is. Called by every thread.
  std::function<bool()> interrupt = {};

  void tell(double share) const {
    if (progress) progress(share);
  }
  bool interrupted() const { return interrupt && interrupt(); }
};

}  // namespace specdec::core
