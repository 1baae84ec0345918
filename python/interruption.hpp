#pragma once

namespace specdec::python {

/// What to call now and then in long work without the interpreter's lock: a Ctrl-C ends it as Python's exception.
/// @throws nanobind::python_error
void end_if_interrupted();

}  // namespace specdec::python
