#pragma once

#include <filesystem>

#include "planner/assumption.hpp"
#include "planner/methods/method_question.hpp"
#include "traces/note.hpp"

/// A question about methods as sim takes it.
namespace specdec::planner {

/// The source that methods run on, with its files and notes.
struct AskedSource : Provenance {
  validation::MethodSource source;
};

/// Reads what the question names.
/// @param shipped_models  folder of the shipped pair; need not exist if it is not needed
/// @throws QuestionError, traces::FileError
AskedSource read_source(const MethodQuestion& question, const std::filesystem::path& shipped_models);

/// The parameters of methods, without a cost.
/// @throws QuestionError
validation::MethodSettings settings_of(const MethodQuestion& question);

/// Where a precision ends the run.
inline constexpr std::int64_t most_tokens = 1'000'000'000'000;

}  // namespace specdec::planner
