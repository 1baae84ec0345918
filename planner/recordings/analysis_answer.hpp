#pragma once

#include "planner/recordings/analysis.hpp"

namespace specdec::planner {

/// The answer before anything has been read.
/// @throws QuestionError if a member of the question is out of range
Analysis empty_answer(const AnalysisQuestion& question);

/// Adds to an answer that has all results what it rests on and what is to be said of it.
void complete(Analysis& answer, const std::vector<Note>& notes_of_reader);

}  // namespace specdec::planner
