#include "python/interruption.hpp"

#include <utility>

namespace specdec::python {

void end_if_interrupted() {
  const nanobind::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

bool Interruption::requested() {
  if (requested_ || std::this_thread::get_id() != owner_) return requested_;
  const nanobind::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) {
    raised_.emplace();
    requested_ = true;
  }
  return requested_;
}

void Interruption::tell(const nanobind::object& progress, double share) {
  if (requested()) return;
  const nanobind::gil_scoped_acquire acquired;
  try {
    progress(share);
  } catch (nanobind::python_error& raised) {
    if (!raised.matches(PyExc_KeyboardInterrupt)) throw;
    raised_.emplace(std::move(raised));
    requested_ = true;
  }
}

core::RunHooks Interruption::hooks(const nanobind::object& progress) {
  core::RunHooks hooks;
  hooks.interrupt = [this] { return requested(); };
  if (!progress.is_none()) hooks.progress = [this, &progress](double share) { tell(progress, share); };
  return hooks;
}

void Interruption::end_unless(bool has_answer) const {
  if (!raised_) return;
  const nanobind::gil_scoped_acquire acquired;
  if (!has_answer || !raised_->matches(PyExc_KeyboardInterrupt)) throw nanobind::python_error(*raised_);
}

}  // namespace specdec::python
