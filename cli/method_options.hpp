#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/checkpoint_pair.hpp"
#include "cli/options.hpp"
#include "cli/report.hpp"
#include "cli/step_cost_options.hpp"
#include "sim/validation/compare.hpp"
#include "sim/validation/planned_trees.hpp"

namespace specdec::cli {

/// The options of `simulate` and `compare`: what is continued, the parameters of the methods, and what steps cost.
struct MethodOptions {
  std::string source = "pair";
  CheckpointPair::Paths paths;
  CheckpointPair::HeadPaths heads;
  std::optional<std::string> tasks;
  std::optional<std::string> ngram_text;
  std::optional<std::int64_t> vocab;
  std::optional<double> noise;
  std::optional<std::string> laws;
  std::optional<double> alpha;
  std::optional<std::string> trace;
  std::optional<std::int64_t> tokens;
  validation::MethodSettings settings;
  std::optional<std::string> schedule;
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> draft_beams;
  std::string tree = "2x3";
  std::optional<std::string> tree_acceptance;
  std::int64_t seed = 1;
  StepCostOptions cost;

  MethodOptions();
  void declare_source(Options& options);
  void declare_settings(Options& options);
};

/// What was run, and the frame of the answer without its text and results.
struct MethodRuns {
  std::vector<validation::MethodResult> results;
  std::vector<validation::PlannedTree> trees;
  /// Ctrl-C ended it: what was finished until then is there.
  bool partial = false;
  std::int64_t tokens = 0;
  double seconds = 0;
  Report report;
};

/// Runs the methods that `methods` chooses for the source; `given` is where the options were declared, and says which
/// of them the user gave. What none of the methods looks at is refused.
/// @throws UsageError, traces::FileError
MethodRuns run_methods(const MethodOptions& options, const Options& given, const std::string& doing,
                       const std::function<std::vector<validation::Method>(const validation::MethodContext&)>& methods);

}  // namespace specdec::cli
