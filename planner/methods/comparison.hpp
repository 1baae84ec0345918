#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "planner/assumption.hpp"
#include "planner/methods/method_question.hpp"
#include "sim/validation/compare.hpp"
#include "sim/validation/method_share.hpp"
#include "sim/validation/planned_trees.hpp"
#include "traces/note.hpp"
#include "traces/sharded_recording.hpp"

/// Ways to draft and to verify, run on the same prompts with the same random numbers.
namespace specdec::planner {

/// The results of methods.
struct MethodRuns : Provenance {
  /// The result of each method over all tasks, followed by its results for each task if there are several.
  std::vector<validation::MethodResult> results;
  /// Trees of the methods with several drafts of one position.
  std::vector<validation::PlannedTree> trees;
  /// True if it was interrupted: the results are those of the sequences finished until then.
  bool partial = false;
  /// Tokens of all methods, and the time that they took.
  std::int64_t tokens = 0;
  double seconds = 0;
};

struct Comparison : MethodRuns {};
struct Simulation : MethodRuns {};

/// Runs several methods. The answer does not depend on the number of threads.
/// @param shipped_models  folder of the models that come with the program, for what the question does not name; need
/// not
///   exist if it is not needed
/// @param hooks  an interrupted run gives what was finished
/// @throws QuestionError if a member is out of range, belongs to another source or is used by none of the methods, if a
///   method lacks something, or if the run was interrupted before a sequence was finished
/// @throws traces::FileError if a file cannot be read
Comparison compare(const ComparisonQuestion& question, const std::filesystem::path& shipped_models,
                   const core::RunHooks& hooks = {});

/// Runs one method, with the parameters and errors of compare.
Simulation simulate(const SimulationQuestion& question, const std::filesystem::path& shipped_models,
                    const core::RunHooks& hooks = {});

/// Runs the sequences of a share of one method.
/// @param found  receives what they gave
/// @return the answer of that share alone, with no result if it has no sequence
/// @throws QuestionError also for a recording and beside a precision, and if it was interrupted
Simulation simulate_share(const SimulationQuestion& question, const std::filesystem::path& shipped_models,
                          const traces::Shard& shard, validation::MethodShare& found, const core::RunHooks& hooks = {});

/// The answer of shares that were run; the models are read, but do not run.
/// @throws std::invalid_argument if they are not of that question
Simulation simulation_of_shares(const SimulationQuestion& question, const std::filesystem::path& shipped_models,
                                const validation::MethodShare& found);

}  // namespace specdec::planner
