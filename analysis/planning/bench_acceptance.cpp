#include "analysis/planning/bench_acceptance.hpp"

#include <stdexcept>
#include <utility>

#include "analysis/estimate/measured_acceptance.hpp"

namespace specdec::planning {
namespace {

/// The sum of the runs of one gamma.
estimate::ServingSummary summed(std::span<const CountedRun> runs, std::int64_t gamma) {
  estimate::ServingSummaryOptions options;
  options.gamma = gamma;
  estimate::ServingSummaries summaries(options);
  for (const CountedRun& run : runs) {
    if (run.gamma == gamma) summaries.add(*run.counts);
  }
  return summaries.summaries().front();
}

/// The requests of the runs of one gamma; empty if one of them does not tell.
std::optional<double> requests_of(std::span<const CountedRun> runs, std::int64_t gamma) {
  double requests = 0;
  for (const CountedRun& run : runs) {
    if (run.gamma != gamma) continue;
    const auto& bench = run.counts->bench;
    const auto its = bench && bench->completed ? bench->completed : bench ? bench->num_prompts : std::nullopt;
    if (!its) return std::nullopt;
    requests += *its;
  }
  return requests;
}

}  // namespace

estimate::PopulationCurve bench_acceptance(std::span<const CountedRun> runs, std::optional<cost::DraftKind> kind) {
  if (runs.empty()) throw std::invalid_argument("bench_acceptance: there are no runs");
  estimate::PopulationCurve::Evidence all;
  for (const CountedRun& run : runs) {
    if (all.measured.count(run.gamma) > 0) continue;
    const estimate::ServingSummary sum = summed(runs, run.gamma);
    const estimate::MeasuredAcceptance measured(sum, {kind, requests_of(runs, run.gamma)});
    const estimate::PopulationCurve::Evidence& its = measured.evidence();
    all.prior = its.prior;
    all.lengths.insert(all.lengths.end(), its.lengths.begin(), its.lengths.end());
    all.counts.insert(all.counts.end(), its.counts.begin(), its.counts.end());
    all.measured[run.gamma] = measured.tokens_per_step(run.gamma);
  }
  all.observed = {1, all.measured.rbegin()->first};
  return estimate::PopulationCurve(std::move(all));
}

}  // namespace specdec::planning
