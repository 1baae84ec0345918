#include "sim/serving/replica_figures.hpp"

#include <utility>
#include <vector>

#include "sim/serving/request_percentiles.hpp"
#include "sim/serving/run_intervals.hpp"

namespace specdec::sim {
namespace {

/// A replication's figures at one load.
struct RunFigures {
  std::vector<double> ttft, tpot;
  /// Over all requests.
  double mean_ttft = 0;
  std::vector<GapCount> gaps;
  double requests_per_second = 0;
  double mean_batch = 0;
  double preemptions_per_request = 0;
};

double mean_first_token_seconds(const ServingResult& run) {
  double sum = 0;
  for (const ServedRequest& request : run.requests) sum += request.first_token_seconds;
  return sum / static_cast<double>(run.requests.size());
}

RunFigures figures_of(ServingResult run, double requests_per_second) {
  RunFigures figures;
  figures.requests_per_second = requests_per_second;
  figures.ttft = first_token_seconds(run);
  figures.mean_ttft = mean_first_token_seconds(run);
  figures.tpot = seconds_per_token(run);
  figures.mean_batch = run.mean_batch;
  figures.preemptions_per_request = static_cast<double>(run.preemptions) / static_cast<double>(run.requests.size());
  figures.gaps = std::move(run.gaps);
  return figures;
}

template <class Value>
std::vector<Value> values_of(const std::vector<RunFigures>& runs, Value RunFigures::*figure) {
  std::vector<Value> values;
  for (const RunFigures& run : runs) values.push_back(run.*figure);
  return values;
}

}  // namespace

std::optional<double> cost_per_million_tokens(const CapacityQuestion& question, double gpu_seconds_per_token) {
  if (!question.price_per_gpu_hour) return std::nullopt;
  return *question.price_per_gpu_hour / 3600 * gpu_seconds_per_token * 1e6;
}

ReplicaAtLoad replica_at(ReplicaRuns& runs, const ReplicaLoad& load) {
  const CapacityQuestion& question = runs.question();
  const std::vector<RunFigures> figures = runs.of_replications([&](std::size_t r) {
    ServingResult run = runs.run(r, load, true);
    const double rate = runs.served_rate(r, run);
    return figures_of(std::move(run), rate);
  });
  const auto mean = [&](double RunFigures::*figure) { return mean_of(values_of(figures, figure)); };
  const double percent = question.limits.percentile, rate = load.requests_per_second;
  ReplicaAtLoad result;
  result.at_requests_per_second =
      load.clients > 0 ? mean(&RunFigures::requests_per_second) : SimulatedValue{rate, rate, rate};
  result.ttft_seconds = percentiles_over(values_of(figures, &RunFigures::ttft), percent);
  if (load.clients > 0 && result.ttft_seconds) result.ttft_seconds->mean = mean(&RunFigures::mean_ttft);
  result.tpot_seconds = percentiles_over(values_of(figures, &RunFigures::tpot), percent);
  result.gap_seconds = percentiles_over(values_of(figures, &RunFigures::gaps), percent);
  result.mean_batch = mean(&RunFigures::mean_batch);
  // Not what was counted while a run filled up and ran empty: what is served is what comes, as in the cost of a token.
  const double tokens = runs.planned().output_tokens();
  const SimulatedValue& served = result.at_requests_per_second;
  result.output_tokens_per_second = {tokens * served.value, tokens * served.lo, tokens * served.hi};
  result.preemptions_per_request = mean(&RunFigures::preemptions_per_request).value;
  result.gpu_seconds_per_token = static_cast<double>(question.gpus_per_replica) / result.output_tokens_per_second.value;
  result.cost_per_million_tokens = cost_per_million_tokens(question, result.gpu_seconds_per_token);
  return result;
}

}  // namespace specdec::sim
