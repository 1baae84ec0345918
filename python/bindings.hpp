#pragma once

#include <nanobind/nanobind.h>

#include "planner/acceptance.hpp"
#include "planner/methods/method_question.hpp"

namespace specdec::python {

/// From here on whatever a function of the module throws arrives in Python as the exception that a user expects: a
/// QuestionError names its parameter, a FileError its file.
void translate_errors();

/// The closed forms of analysis/theory over arrays, for specdec/theory.py: each takes one-dimensional arrays of one
/// entry or of as many as `out` has columns, and writes a row of `out` for each of its results.
void bind_theory(nanobind::module_& module);

/// The options of a call for reading a recording; a Ctrl-C ends it.
planner::RecordingOptions recording_options(const nanobind::dict& given);

/// Acceptance and Cost, for specdec/acceptance.py and specdec/cost.py.
void bind_nouns(nanobind::module_& module);

/// Plans and capacities, for specdec/answers.py.
void bind_answers(nanobind::module_& module);

/// The questions of specdec._methods about several methods, and about one.
planner::ComparisonQuestion comparison_question(const nanobind::dict& given);
planner::SimulationQuestion simulation_question(const nanobind::dict& given);

}  // namespace specdec::python
