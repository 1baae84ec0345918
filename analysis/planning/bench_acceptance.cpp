#include "analysis/planning/bench_acceptance.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/core/checks.hpp"
#include "analysis/estimate/measured_acceptance.hpp"

namespace specdec::planning {
namespace {

using estimate::TokensPerStep;

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

BenchAcceptance::BenchAcceptance(std::span<const CountedRun> runs, std::optional<cost::DraftKind> kind) {
  if (runs.empty()) throw std::invalid_argument("BenchAcceptance: there are no runs");
  for (const CountedRun& run : runs) {
    if (this->measured(run.gamma)) continue;
    const estimate::ServingSummary sum = summed(runs, run.gamma);
    const estimate::MeasuredAcceptance measured(sum, {kind, requests_of(runs, run.gamma)});
    const estimate::PopulationCurve::Evidence& its = measured.evidence();
    evidence_.prior = its.prior;
    evidence_.lengths.insert(evidence_.lengths.end(), its.lengths.begin(), its.lengths.end());
    evidence_.counts.insert(evidence_.counts.end(), its.counts.begin(), its.counts.end());
    evidence_.measured[run.gamma] = measured.tokens_per_step(run.gamma);
  }
}

estimate::TokenWorlds BenchAcceptance::draw(std::int64_t max_gamma, const estimate::DrawOptions& options) const {
  return estimate::PopulationCurve(evidence_).draw(max_gamma, options);
}

TokensPerStep BenchAcceptance::tokens_per_step(std::int64_t gamma) const {
  TokensPerStep tokens = estimate::beside_measured(evidence_.measured, gamma, drawn_, *this);
  tokens.extrapolated = gamma > longest();
  return tokens;
}

}  // namespace specdec::planning
