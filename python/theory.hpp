#pragma once

#include <nanobind/nanobind.h>

namespace specdec::python {

/// The closed forms of analysis/theory over arrays, for specdec/theory.py: each takes one-dimensional arrays of one
/// entry or of as many as `out` has columns, and writes a row of `out` for each of its results.
void bind_theory(nanobind::module_& module);

}  // namespace specdec::python
