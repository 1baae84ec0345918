#pragma once

#include "planner/question_error.hpp"

namespace specdec::cli {

/// Wrong usage or wrong input: the frame prints its one line on standard error and exits with 2.
using UsageError = planner::QuestionError;
using planner::refuse;

}  // namespace specdec::cli
