#pragma once

#include <nanobind/nanobind.h>

#include "planner/methods/method_question.hpp"

namespace specdec::python {

/// What specdec._methods asks of several methods, and of one.
planner::ComparisonQuestion comparison_question(const nanobind::dict& given);
planner::SimulationQuestion simulation_question(const nanobind::dict& given);

}  // namespace specdec::python
