#pragma once

#include <nanobind/nanobind.h>

#include "planner/acceptance.hpp"

namespace specdec::python {

/// The options of a call for reading a recording; a Ctrl-C ends it.
planner::RecordingOptions recording_options(const nanobind::dict& given);

/// Acceptance and Cost, for specdec/acceptance.py and specdec/cost.py.
void bind_nouns(nanobind::module_& module);

}  // namespace specdec::python
