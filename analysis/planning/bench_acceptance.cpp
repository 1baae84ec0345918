#include "analysis/planning/bench_acceptance.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>

#include "analysis/core/checks.hpp"

namespace specdec::planning {
namespace {

using estimate::Interval;
using estimate::TokensPerStep;

estimate::MeasuredAcceptance measured(std::span<const CountedRun> runs, std::int64_t gamma) {
  estimate::ServingSummaryOptions options;
  options.gamma = gamma;
  estimate::ServingSummaries summaries(options);
  std::size_t count = 0;
  std::int64_t longest = 0;
  for (const CountedRun& run : runs) {
    longest = std::max(longest, run.gamma);
    if (run.gamma != gamma) continue;
    summaries.add(*run.counts);
    ++count;
  }
  estimate::MeasuredAcceptance::Options reading;
  reading.falls_beyond = gamma == longest;
  if (count == 1) reading.design_effect = BenchAcceptance::lone_run_design_effect;
  return estimate::MeasuredAcceptance(summaries.summaries().front(), reading);
}

/// Interpolates between both at one gamma; `share` of the second.
TokensPerStep between(const TokensPerStep& a, const TokensPerStep& b, double share) {
  const auto mix = [share](double x, double y) { return (1 - share) * x + share * y; };
  TokensPerStep tokens;
  tokens.value = mix(a.value, b.value);
  tokens.readings = {std::min({a.readings.lo, b.readings.lo, a.value, b.value}),
                     std::max({a.readings.hi, b.readings.hi, a.value, b.value})};
  tokens.ci95 = {mix(a.ci95.lo, b.ci95.lo), mix(a.ci95.hi, b.ci95.hi)};
  tokens.full_accepts = mix(a.full_accepts, b.full_accepts);
  tokens.extrapolated = a.extrapolated && b.extrapolated;
  return tokens;
}

}  // namespace

BenchAcceptance::BenchAcceptance(std::span<const CountedRun> runs) {
  if (runs.empty()) throw std::invalid_argument("BenchAcceptance: there are no runs");
  for (const CountedRun& run : runs) {
    if (by_gamma_.count(run.gamma) == 0) by_gamma_.emplace(run.gamma, planning::measured(runs, run.gamma));
  }
}

TokensPerStep BenchAcceptance::tokens_per_step(std::int64_t gamma) const {
  core::require_in("BenchAcceptance::tokens_per_step", "gamma", gamma, 0, std::numeric_limits<std::int64_t>::max());
  if (gamma == 0) {
    TokensPerStep plain;
    plain.full_accepts = 1;
    return plain;
  }
  const auto above = by_gamma_.lower_bound(gamma);
  if (above == by_gamma_.end()) return std::prev(above)->second.tokens_per_step(gamma);
  if (above->first == gamma || above == by_gamma_.begin()) return above->second.tokens_per_step(gamma);
  const auto below = std::prev(above);
  const double share = static_cast<double>(gamma - below->first) / static_cast<double>(above->first - below->first);
  return between(below->second.tokens_per_step(gamma), above->second.tokens_per_step(gamma), share);
}

}  // namespace specdec::planning
