#pragma once

#include <nanobind/nanobind.h>

namespace specdec::python {

/// Acceptance and Cost, for specdec/acceptance.py and specdec/cost.py.
void bind_nouns(nanobind::module_& module);

}  // namespace specdec::python
