#include "analysis/estimate/acceptance_curve.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "analysis/core/normal_interval.hpp"
#include "analysis/cost/replicate_draws.hpp"

namespace specdec::estimate {
namespace {

/// Values next to each other, and their mean.
struct Level {
  double sum = 0;
  std::int64_t count = 0;
  double mean() const { return sum / static_cast<double>(count); }
};

/// The closest values in squares that do not rise; their sum stays.
std::vector<double> not_rising(const std::vector<double>& values) {
  std::vector<Level> levels;
  for (const double value : values) {
    levels.push_back({value, 1});
    while (levels.size() > 1 && levels[levels.size() - 2].mean() < levels.back().mean()) {
      const Level last = levels.back();
      levels.pop_back();
      levels.back() = {levels.back().sum + last.sum, levels.back().count + last.count};
    }
  }
  std::vector<double> result;
  for (const Level& level : levels) result.insert(result.end(), static_cast<std::size_t>(level.count), level.mean());
  return result;
}

constexpr std::uint32_t sampling_stream = 48;

/// The value moved by so many standard deviations, within an interval that is its central 95%, on a logarithmic scale.
double moved(double value, const Interval& interval, double deviations) {
  const double half = deviations < 0 ? std::log(value / interval.lo) : std::log(interval.hi / value);
  return std::isfinite(half) ? value * std::exp(deviations * std::max(0.0, half) / core::normal_half_width_95) : value;
}

/// What one alternative says of a gamma: an end of its bracket, if it has one, with the sampling error beyond that end.
struct Alternative {
  double value = 1;
  Interval ci95 = {1, 1};
};

Alternative alternative_of(const TokensPerStep& tokens, int alternative) {
  if (!tokens.bracket) return {tokens.value, tokens.ci95};
  const double end = alternative == 0 ? tokens.bracket->lo : tokens.bracket->hi;
  const double outer = alternative == 0 ? tokens.ci95.lo : tokens.ci95.hi, inner = end * end / outer;
  return {end, {std::min(outer, inner), std::max(outer, inner)}};
}

bool is_uncertain(const TokensPerStep& tokens) { return tokens.ci95.lo < tokens.ci95.hi; }

}  // namespace

std::vector<TokensPerStep> tabulated(const AcceptanceCurve& curve, std::int64_t last_gamma) {
  std::vector<TokensPerStep> by_gamma = {curve.tokens_per_step(0)};
  for (std::int64_t gamma = 1; gamma <= last_gamma; ++gamma) {
    try {
      by_gamma.push_back(curve.tokens_per_step(gamma));
    } catch (const std::domain_error&) {
      break;
    }
  }
  return by_gamma;
}

TokenWorlds AcceptanceCurve::draw(std::int64_t max_gamma, const DrawOptions& options) const {
  const std::vector<TokensPerStep> all = tabulated(*this, max_gamma);
  const auto has_bracket = [](const TokensPerStep& tokens) { return tokens.bracket.has_value(); };
  const int alternatives = std::any_of(all.begin(), all.end(), has_bracket) ? 2 : 1;
  const std::size_t each = std::any_of(all.begin(), all.end(), is_uncertain) ? options.worlds : 1;
  TokenWorlds drawn;
  drawn.tokens.resize(all.size());
  for (int alternative = 0; alternative < alternatives; ++alternative) {
    drawn.alternative.insert(drawn.alternative.end(), each, alternative);
    for (std::size_t world = 0; world < each; ++world) {
      const auto index = static_cast<std::uint32_t>(world);
      const double sampling = cost::ReplicateDraws(options.seed, sampling_stream, index).standard_normal(0);
      double before = 1;
      for (std::size_t gamma = 0; gamma < all.size(); ++gamma) {
        const Alternative own = alternative_of(all[gamma], alternative);
        const double sampled = each == 1 ? own.value : moved(own.value, own.ci95, sampling);
        before = std::clamp(sampled, before, static_cast<double>(gamma) + 1);
        drawn.tokens[gamma].push_back(before);
      }
    }
  }
  return drawn;
}

std::vector<double> AcceptanceCurve::survival(std::int64_t gamma) const {
  std::vector<double> gains;
  double before = tokens_per_step(0).value;
  for (std::int64_t j = 1; j <= gamma; ++j) {
    const double tokens = tokens_per_step(j).value;
    gains.push_back(tokens - before);
    before = tokens;
  }
  std::vector<double> survival = not_rising(gains);
  for (double& one : survival) one = std::clamp(one, 0.0, 1.0);
  return survival;
}

}  // namespace specdec::estimate
