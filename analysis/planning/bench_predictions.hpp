#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "analysis/planning/bench_runs.hpp"
#include "traces/note.hpp"

namespace specdec::planning::bench {

// A header of the library's own sources; it is not installed.

/// What is known of a tree that ran.
struct MeasuredTree {
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance;
  estimate::TokensPerStep tokens;
  std::shared_ptr<const cost::RoundCost> cost;
};

/// What runs are predicted by.
struct Prices {
  /// Of chains; null if none ran.
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance;
  std::shared_ptr<const cost::RoundCost> cost;
  std::map<cost::DraftTree, MeasuredTree> trees;
  /// The batch at which all rounds are taken to be, if they have only one.
  std::optional<double> batch;
  /// Standard deviation of ln(measured / true) of one more run.
  double run_error = 0;
};

/// Each run from the others: its rounds by a fit without it, its tokens per step by the counts of the others.
std::vector<BenchPrediction> predict_left_out(const Runs& runs, std::span<const cost::ObservedRound> rounds,
                                              const cost::FitOptions& options);
/// A run that the prices do not know.
BenchPrediction predict(const Run& run, const Prices& prices);
/// Sets how far off predictions may be by chance, as many as there are.
void allow_for_chance(std::vector<BenchPrediction>& backtest);

/// Runs with drafts beside their plain ones, each with an error of that size; a run without a plain one is noted.
std::vector<BenchSpeedup> speedups_of(const Runs& runs, double run_error, std::vector<Note>& notes);

}  // namespace specdec::planning::bench
