#pragma once

#include <nanobind/nanobind.h>

namespace specdec::python {

/// Plans and capacities, for specdec/answers.py.
void bind_answers(nanobind::module_& module);

}  // namespace specdec::python
