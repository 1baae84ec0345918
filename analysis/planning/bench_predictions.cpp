#include "analysis/planning/bench_predictions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <iterator>
#include <utility>

#include "analysis/core/normal_interval.hpp"

namespace specdec::planning::bench {
namespace {

/// A batch within this factor of the runs' single batch is treated as that batch.
constexpr double one_batch = 1.25;

/// The interval around the seconds of an output token: the errors of the round and of its tokens are independent.
estimate::Interval interval_of_token(double seconds, double round, const cost::Range& rounds,
                                     const estimate::TokensPerStep& tokens) {
  const double fewer = std::log(tokens.value / tokens.ci95.lo), more = std::log(tokens.ci95.hi / tokens.value);
  return {seconds * std::exp(-core::half_of_both(std::log(round / rounds.lo), more)),
          seconds * std::exp(core::half_of_both(std::log(rounds.hi / round), fewer))};
}

/// The tokens per step of a run, whose own counts have the same kind of error as those that predict them.
PredictedFigure tokens_of(const Run& run, const estimate::TokensPerStep& predicted) {
  const CountedRun counted[] = {run.counted()};
  const estimate::TokensPerStep own = bench_acceptance(counted).tokens_per_step(run.figures.gamma);
  const double fewer = std::log(predicted.value / predicted.ci95.lo),
               more = std::log(predicted.ci95.hi / predicted.value);
  return {predicted.value,
          run.figures.tokens_per_step,
          {predicted.value * std::exp(-core::half_of_both(fewer, std::log(own.ci95.hi / own.value))),
           predicted.value * std::exp(core::half_of_both(more, std::log(own.value / own.ci95.lo)))}};
}

/// What the other runs say of the tokens per step of one more run of this gamma: those of its gamma, where there are
/// any.
double tokens_of_another(std::int64_t gamma, const std::vector<CountedRun>& others) {
  std::vector<CountedRun> its;
  std::copy_if(others.begin(), others.end(), std::back_inserter(its),
               [gamma](const CountedRun& run) { return run.gamma == gamma; });
  return bench_acceptance(its.empty() ? others : its).tokens_per_step(gamma).value;
}

}  // namespace

std::vector<BenchPrediction> predict_left_out(const Runs& runs, std::span<const cost::ObservedRound> rounds,
                                              const cost::FitOptions& options) {
  const auto seconds = cost::leave_one_out(rounds, options, runs.size());
  std::vector<BenchPrediction> rows;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    BenchPrediction row;
    row.file = run.figures.file;
    row.line = run.figures.line;
    row.measured = run.figures.seconds_per_output_token;
    const std::vector<CountedRun> others = counted_runs(runs, run.figures.tree, &run);
    if (!seconds[i]) {
      row.reason = run.speculative() ? "no other run drafted" : "all other runs drafted";
    } else if (run.says_acceptance() && others.empty()) {
      row.reason =
          run.figures.tree ? "no other run of its tree says what is accepted" : "no other run says what is accepted";
    } else {
      const double per_step =
          run.says_acceptance() ? tokens_of_another(run.figures.gamma, others) : run.figures.tokens_per_step;
      row.predicted = *seconds[i] / per_step;
      row.relative_error = *row.predicted / row.measured - 1;
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

BenchPrediction predict(const Run& run, const Prices& prices) {
  BenchPrediction row;
  row.file = run.figures.file;
  row.line = run.figures.line;
  row.measured = run.figures.seconds_per_output_token;
  const auto tree = run.figures.tree ? prices.trees.find(*run.figures.tree) : prices.trees.end();
  const bool is_tree = tree != prices.trees.end();
  if (run.speculative() && !is_tree && (run.figures.tree || prices.acceptance == nullptr)) {
    row.reason = "no run of its tree, or of a chain, is among those that predict it";
    return row;
  }
  const estimate::TokensPerStep tokens = is_tree             ? tree->second.tokens
                                         : run.speculative() ? prices.acceptance->tokens_per_step(run.figures.gamma)
                                                             : estimate::TokensPerStep{.full_accepts = 1};
  const cost::RoundCost& cost = is_tree ? *tree->second.cost : *prices.cost;
  const double batch = run.figures.batch;
  const bool joined = prices.batch && batch <= one_batch * *prices.batch && *prices.batch <= one_batch * batch;
  const cost::RoundPoint point = {run.figures.gamma, joined ? *prices.batch : batch, run.figures.context,
                                  tokens.full_accepts};
  const double round = cost.round(point).total();
  row.predicted = round / tokens.value;
  row.relative_error = *row.predicted / row.measured - 1;
  // A run has an error of its own.
  const cost::Range central = cost::central_range(cost, point);
  const double of_run = core::normal_half_width_95 * prices.run_error;
  const cost::Range rounds = {round * std::exp(-core::half_of_both(std::log(round / central.lo), of_run)),
                              round * std::exp(core::half_of_both(std::log(central.hi / round), of_run))};
  row.ci95 = interval_of_token(*row.predicted, round, rounds, tokens);
  row.round = PredictedFigure{round, run.round.seconds, {rounds.lo, rounds.hi}};
  if (run.says_acceptance()) row.tokens = tokens_of(run, tokens);
  return row;
}

std::vector<BenchSpeedup> speedups_of(const Runs& runs, double run_error, std::vector<Note>& notes) {
  std::vector<BenchSpeedup> speedups;
  if (!has_plain_runs(runs)) return speedups;
  const double half_width = core::normal_half_width_95 * core::half_of_both(run_error, run_error);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    if (!run.speculative()) continue;
    std::optional<std::size_t> baseline;
    for (std::size_t j = 0; j < runs.size(); ++j) {
      if (!is_plain_of(runs[j], run)) continue;
      // A plain run of the same start is preferred.
      const auto distance = [&](std::size_t k) {
        return std::pair(runs[k].figures.server != run.figures.server,
                         std::abs(std::log(runs[k].figures.batch / run.figures.batch)));
      };
      if (!baseline || distance(j) < distance(*baseline)) baseline = j;
    }
    if (!baseline) {
      notes.push_back(
          {"unmatched_run",
           fmt::format("{} has no plain run of the same lengths at {}: it says what rounds cost and no speedup",
                       run.counts->place(), load_text(run))});
      continue;
    }
    BenchSpeedup speedup;
    speedup.baseline = *baseline;
    speedup.speculative = i;
    const double ratio = runs[*baseline].figures.seconds_per_output_token / run.figures.seconds_per_output_token;
    speedup.speedup = {ratio, estimate::Interval{ratio * std::exp(-half_width), ratio * std::exp(half_width)},
                       "ratio of two runs, each with the error of a run"};
    speedups.push_back(std::move(speedup));
  }
  return speedups;
}

void allow_for_chance(std::vector<BenchPrediction>& backtest) {
  double compared = 0;
  for (const BenchPrediction& held : backtest)
    compared += (held.ci95 ? 1 : 0) + (held.round ? 1 : 0) + (held.tokens ? 1 : 0);
  if (compared == 0) return;
  const double widths = boost::math::quantile(boost::math::normal(), 1 - 0.025 / compared) / core::normal_half_width_95;
  for (BenchPrediction& held : backtest) held.widths = widths;
}

}  // namespace specdec::planning::bench
