#include "analysis/planning/bench_acceptance.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::planning {
namespace {

using estimate::Interval;
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

estimate::MeasuredAcceptance::Options reading_of(std::span<const CountedRun> runs, std::int64_t gamma, bool may_miss) {
  estimate::MeasuredAcceptance::Options reading;
  reading.may_miss = may_miss;
  const auto is_longer = [gamma](const CountedRun& run) { return run.gamma > gamma; };
  const auto is_its = [gamma](const CountedRun& run) { return run.gamma == gamma; };
  reading.falls_beyond = std::none_of(runs.begin(), runs.end(), is_longer);
  if (std::count_if(runs.begin(), runs.end(), is_its) == 1) {
    reading.design_effect = BenchAcceptance::lone_run_design_effect;
  }
  return reading;
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

TokensPerStep BenchAcceptance::Measured::tokens_at(std::int64_t gamma) const {
  TokensPerStep tokens = acceptance.tokens_per_step(gamma);
  if (pooled == 1) return tokens;
  const auto moved = [&](double its) { return std::clamp(pooled * its, 1.0, static_cast<double>(gamma) + 1); };
  tokens.value = moved(tokens.value);
  tokens.ci95 = {moved(tokens.ci95.lo), moved(tokens.ci95.hi)};
  tokens.readings = {std::min(tokens.readings.lo, moved(tokens.readings.lo)),
                     std::max(tokens.readings.hi, moved(tokens.readings.hi))};
  return tokens;
}

BenchAcceptance::BenchAcceptance(std::span<const CountedRun> runs, bool may_miss) {
  if (runs.empty()) throw std::invalid_argument("BenchAcceptance: there are no runs");
  for (const CountedRun& run : runs) {
    if (by_gamma_.count(run.gamma) > 0) continue;
    const estimate::ServingSummary sum = summed(runs, run.gamma);
    by_gamma_.emplace(run.gamma, Measured{estimate::MeasuredAcceptance(sum, reading_of(runs, run.gamma, may_miss)),
                                          sum.rounds.value_or(1)});
  }
  pool();
}

void BenchAcceptance::pool() {
  struct Block {
    double rounds = 0, tokens = 0;
    std::vector<std::pair<Measured*, double>> its;
    double mean() const { return tokens / rounds; }
  };
  std::vector<Block> blocks;
  for (auto& [gamma, measured] : by_gamma_) {
    const double counted = measured.acceptance.tokens_per_step(gamma).value;
    Block block{measured.rounds, measured.rounds * counted, {{&measured, counted}}};
    for (; !blocks.empty() && blocks.back().mean() > block.mean(); blocks.pop_back()) {
      Block& before = blocks.back();
      block.rounds += before.rounds;
      block.tokens += before.tokens;
      block.its.insert(block.its.end(), before.its.begin(), before.its.end());
    }
    blocks.push_back(std::move(block));
  }
  for (const Block& block : blocks) {
    if (block.its.size() == 1) continue;
    for (const auto& [measured, counted] : block.its) measured->pooled = block.mean() / counted;
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
  if (above == by_gamma_.end()) return std::prev(above)->second.tokens_at(gamma);
  if (above->first == gamma || above == by_gamma_.begin()) return above->second.tokens_at(gamma);
  return between_runs(gamma, std::prev(above)->first, above->first);
}

TokensPerStep BenchAcceptance::between_runs(std::int64_t gamma, std::int64_t shorter, std::int64_t longer) const {
  const Measured& below = by_gamma_.at(shorter);
  const Measured& above = by_gamma_.at(longer);
  const auto mixed = [&](std::int64_t at) {
    return between(below.tokens_at(at), above.tokens_at(at),
                   static_cast<double>(at - shorter) / static_cast<double>(longer - shorter));
  };
  TokensPerStep tokens = mixed(gamma);
  for (std::int64_t at = shorter + 1; at < gamma; ++at) tokens.value = std::max(tokens.value, mixed(at).value);
  tokens.value = std::clamp(tokens.value, below.tokens_at(shorter).value, above.tokens_at(longer).value);
  tokens.ci95 = {std::min(tokens.ci95.lo, tokens.value), std::max(tokens.ci95.hi, tokens.value)};
  return tokens;
}

}  // namespace specdec::planning
