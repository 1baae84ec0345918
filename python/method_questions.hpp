#pragma once

#include <nanobind/nanobind.h>

#include "planner/methods/method_question.hpp"

namespace specdec::python {

/// The questions of specdec._methods about several methods, and about one.
planner::ComparisonQuestion comparison_question(const nanobind::dict& given);
planner::SimulationQuestion simulation_question(const nanobind::dict& given);

}  // namespace specdec::python
