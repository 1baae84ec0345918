#include "analysis/estimate/population_curve.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <mutex>

#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/estimate/population_posterior.hpp"

namespace specdec::estimate {
namespace {

constexpr std::int64_t first_table = 32;
/// Tokens per step of longer drafts are those of this one.
constexpr std::int64_t longest_drawn = 4096;

/// Sorted, of one alternative.
std::vector<double> values_of(const TokenWorlds& worlds, std::size_t gamma, int alternative) {
  std::vector<double> values;
  for (std::size_t world = 0; world < worlds.worlds(); ++world)
    if (worlds.alternative[world] == alternative) values.push_back(worlds.tokens[gamma][world]);
  std::sort(values.begin(), values.end());
  return values;
}

}  // namespace

struct PopulationCurve::Table {
  std::mutex mutex;
  std::vector<TokensPerStep> by_gamma = {};
};

PopulationCurve::PopulationCurve() : table_(std::make_shared<Table>()) {}

PopulationCurve::PopulationCurve(Evidence evidence) : PopulationCurve() {
  evidence_ = std::move(evidence);
  PopulationEvidence(evidence_.prior, evidence_.lengths, evidence_.counts);
}

TokenWorlds PopulationCurve::draw(std::int64_t max_gamma, const DrawOptions& options) const {
  return population_worlds(evidence_.prior, evidence_.lengths, evidence_.counts, max_gamma, options);
}

TokensPerStep PopulationCurve::drawn(std::int64_t gamma) const {
  core::require_in("tokens_per_step", "gamma", gamma, 0, core::largest_integer);
  if (gamma == 0) return {1, {1, 1}, 1, false};
  gamma = std::min(gamma, longest_drawn);
  const std::lock_guard lock(table_->mutex);
  std::vector<TokensPerStep>& table = table_->by_gamma;
  if (std::ssize(table) <= gamma) {
    const std::int64_t last = std::min(longest_drawn, std::max<std::int64_t>({first_table, gamma, 2 * std::ssize(table)}));
    const TokenWorlds worlds = draw(last, {});
    for (std::int64_t next = std::ssize(table); next <= last; ++next) table.push_back(tokens_of(worlds, next));
  }
  return table[static_cast<std::size_t>(gamma)];
}

TokensPerStep PopulationCurve::tokens_per_step(std::int64_t gamma) const {
  const auto& measured = evidence_.measured;
  const auto found = measured.find(gamma);
  TokensPerStep tokens = found != measured.end() ? found->second : drawn(gamma);
  const auto above = measured.upper_bound(gamma);
  const double least = above == measured.begin() ? 1 : std::prev(above)->second.value;
  const double most = above == measured.end() ? core::largest_double : above->second.value;
  if (found == measured.end() && gamma > 0 && least <= most) {
    tokens.value = std::clamp(tokens.value, least, most);
    tokens.ci95 = {std::min(tokens.ci95.lo, tokens.value), std::max(tokens.ci95.hi, tokens.value)};
  }
  const auto of_measured = measured.empty() ? std::pair<std::int64_t, std::int64_t>(1, 0)
                                            : std::pair(measured.begin()->first, measured.rbegin()->first);
  const auto [shortest, longest] = evidence_.observed.value_or(of_measured);
  tokens.extrapolated = gamma > 0 && (gamma < shortest || longest < gamma);
  return tokens;
}

TokensPerStep as_measured(std::int64_t gamma, double tokens, double relative_error, double full_accepts) {
  const double most = static_cast<double>(gamma) + 1, factor = std::exp(core::normal_half_width_95 * relative_error);
  // Totals scraped separately may slightly exceed what gamma allows.
  const double value = std::clamp(tokens, 1.0, most);
  return {value, {std::max(1.0, value / factor), std::min(most, value * factor)}, full_accepts};
}

TokensPerStep tokens_of(const TokenWorlds& worlds, std::int64_t gamma) {
  const auto at = static_cast<std::size_t>(gamma);
  TokensPerStep tokens;
  const int alternatives = *std::max_element(worlds.alternative.begin(), worlds.alternative.end()) + 1;
  for (int alternative = 0; alternative < alternatives; ++alternative) {
    const std::vector<double> values = values_of(worlds, at, alternative);
    const Interval central = {core::sorted_quantile(values, 0.025), core::sorted_quantile(values, 0.975)};
    if (alternative == 0) tokens.value = core::sorted_quantile(values, 0.5);
    tokens.ci95 = alternative == 0 ? central : hull(tokens.ci95, central);
  }
  const double before = gamma > 0 ? core::sorted_quantile(values_of(worlds, at - 1, 0), 0.5) : 0;
  tokens.full_accepts = std::clamp(tokens.value - before, 0.0, 1.0);
  return tokens;
}

TokenWorlds thinned(TokenWorlds worlds, std::span<const double> shares) {
  std::vector<double> before = worlds.tokens.front();
  for (std::size_t gamma = 1; gamma < worlds.tokens.size(); ++gamma) {
    const std::vector<double> whole = worlds.tokens[gamma];
    for (std::size_t world = 0; world < whole.size(); ++world)
      worlds.tokens[gamma][world] =
          worlds.tokens[gamma - 1][world] + std::min(1.0, shares[gamma - 1] * (whole[world] - before[world]));
    before = whole;
  }
  return worlds;
}

TokenWorlds joined(TokenWorlds worlds, const TokenWorlds& other) {
  const int first = *std::max_element(worlds.alternative.begin(), worlds.alternative.end()) + 1;
  for (const int alternative : other.alternative) worlds.alternative.push_back(first + alternative);
  worlds.tokens.resize(std::min(worlds.tokens.size(), other.tokens.size()));
  for (std::size_t gamma = 0; gamma < worlds.tokens.size(); ++gamma) {
    std::vector<double>& tokens = worlds.tokens[gamma];
    tokens.insert(tokens.end(), other.tokens[gamma].begin(), other.tokens[gamma].end());
  }
  return worlds;
}

}  // namespace specdec::estimate
