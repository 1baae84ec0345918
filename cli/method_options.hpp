#pragma once

#include <optional>
#include <string>

#include "cli/options.hpp"
#include "cli/report.hpp"
#include "cli/step_cost_options.hpp"
#include "planner/methods/comparison.hpp"

namespace specdec::cli {

/// The options of `simulate` and `compare`: what is continued, the parameters of the methods, and what steps cost.
struct MethodOptions {
  std::string source = "pair";
  std::optional<std::string> target;
  std::optional<std::string> draft_model;
  std::optional<std::string> prompts;
  std::optional<std::string> tasks;
  std::optional<std::string> ngram_text;
  std::optional<std::string> eagle_head;
  std::optional<std::string> parallel_heads;
  std::optional<std::string> exits;
  std::optional<std::int64_t> vocab;
  std::optional<double> noise;
  std::optional<std::string> laws;
  std::optional<double> alpha;
  std::optional<std::string> trace;
  std::optional<std::int64_t> tokens;
  validation::MethodSettings settings;
  std::optional<std::string> schedule;
  std::optional<std::int64_t> batch;
  std::optional<std::int64_t> end_token;
  std::string tree = "2x3";
  std::optional<std::string> tree_acceptance;
  std::int64_t seed = 1;
  StepCostOptions cost;

  MethodOptions();
  void declare_source(Options& options);
  void declare_settings(Options& options);

  /// Fills in the values that the user gave; `given` is where the options were declared.
  /// @throws UsageError
  void fill(planner::MethodQuestion& question, const Options& given) const;
};

/// The results of the methods.
Report report_of(const planner::MethodRuns& runs, render::Spoken spoken);

}  // namespace specdec::cli
