#include "python/interruption.hpp"

#include <nanobind/nanobind.h>

namespace specdec::python {

void end_if_interrupted() {
  const nanobind::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
}

}  // namespace specdec::python
