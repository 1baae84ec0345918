#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <optional>
#include <thread>

#include "analysis/core/run_hooks.hpp"

namespace specdec::python {

/// To be called now and then in long work without the interpreter's lock: a Ctrl-C ends it as Python's exception.
/// @throws nanobind::python_error
void end_if_interrupted();

/// A Ctrl-C that ends long work with what there is: the signal is remembered as Python's exception.
class Interruption {
 public:
  /// @param progress  Python's, to be told of the share that is done; None for no one
  /// @return hooks without the interpreter's lock, valid as long as this and `progress`
  core::RunHooks hooks(const nanobind::object& progress);
  /// Throws the exception, if there is one and it is not KeyboardInterrupt or there is no answer.
  /// @throws nanobind::python_error
  void end_unless(bool has_answer) const;

 private:
  /// Whether it has come; from any thread, without the interpreter's lock. It is noticed on the thread that made this.
  bool requested();
  /// Tells unless it has come, also while that is told.
  void tell(const nanobind::object& progress, double share);

  std::thread::id owner_ = std::this_thread::get_id();
  std::atomic<bool> requested_ = false;
  std::optional<nanobind::python_error> raised_;
};

}  // namespace specdec::python
