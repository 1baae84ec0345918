#include "analysis/estimate/lookup_curve.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/estimate/population_curve.hpp"

namespace specdec::estimate {

namespace {

std::shared_ptr<const AcceptanceCurve> require_given(const char* who, std::shared_ptr<const AcceptanceCurve> proposed) {
  if (!proposed) throw std::invalid_argument(std::string(who) + ": there is no acceptance of what is proposed");
  return proposed;
}

}  // namespace

LookupCurve::LookupCurve(std::shared_ptr<const AcceptanceCurve> proposed, const core::LookupLaw& law,
                         const core::LookupLaw& included)
    : proposed_(require_given("LookupCurve", std::move(proposed))), law_(law), included_(included) {
  law.require_valid();
  included.require_valid();
  if (!(included.hit_rate > 0)) throw std::domain_error("LookupCurve: included.hit_rate is 0, but must be above 0");
}

UnknownLookups::UnknownLookups(std::shared_ptr<const AcceptanceCurve> proposed)
    : proposed_(require_given("UnknownLookups", std::move(proposed))) {}

double LookupCurve::share_reaching(std::int64_t k) const {
  const double reached = included_.reaches(k);
  return reached > 0 ? law_.reaches(k) / reached : 0;
}

LookupCurve::Mixed LookupCurve::mixed(double tokens, double counted) const {
  const double hits = law_.hit_rate / included_.hit_rate, most = core::largest_double;
  if (!law_.counted_at) return {1 + hits * (tokens - 1), hits};
  const double missed = (1 - hits) / (1 + hits * (counted - 1));
  const double rounds_of_hits = (1 - missed) / tokens, rounds = missed + rounds_of_hits;
  return rounds > 0 ? Mixed{1 / rounds, rounds_of_hits / rounds} : Mixed{most, most};
}

TokensPerStep LookupCurve::of_hits(std::int64_t gamma) const {
  TokensPerStep tokens = proposed_->tokens_per_step(gamma);
  if (gamma == 0) return tokens;
  const std::vector<double> survival = proposed_->AcceptanceCurve::survival(gamma);
  double accepted = 0;
  for (std::size_t k = 0; k < survival.size(); ++k)
    accepted += std::min(1.0, survival[k] * share_reaching(static_cast<std::int64_t>(k) + 1));
  const double kept = tokens.value > 1 ? accepted / (tokens.value - 1) : 0;
  const auto scaled = [&](const Interval& range) {
    const double most = static_cast<double>(gamma) + 1;
    return Interval{std::min(most, 1 + kept * (range.lo - 1)), std::min(most, 1 + kept * (range.hi - 1))};
  };
  tokens.value = 1 + accepted;
  tokens.ci95 = scaled(tokens.ci95);
  if (tokens.bracket) tokens.bracket = scaled(*tokens.bracket);
  tokens.full_accepts *= share_reaching(gamma);
  return tokens;
}

TokensPerStep LookupCurve::tokens_per_step(std::int64_t gamma) const {
  TokensPerStep tokens = of_hits(gamma);
  const TokensPerStep counted = law_.counted_at ? of_hits(law_.counted_at->gamma) : TokensPerStep{};
  const double most = static_cast<double>(gamma) + 1;
  const auto with_misses = [&](double hits, double there) { return std::min(most, mixed(hits, there).tokens); };
  tokens.full_accepts = std::min(1.0, tokens.full_accepts * mixed(tokens.value, counted.value).hit_rate);
  tokens.value = with_misses(tokens.value, counted.value);
  tokens.ci95 = {with_misses(tokens.ci95.lo, counted.ci95.lo), with_misses(tokens.ci95.hi, counted.ci95.hi)};
  if (tokens.bracket) {
    const Interval there = counted.bracket.value_or(Interval{counted.value, counted.value});
    tokens.bracket = Interval{with_misses(tokens.bracket->lo, there.lo), with_misses(tokens.bracket->hi, there.hi)};
  }
  return tokens;
}

TokenWorlds LookupCurve::draw(std::int64_t max_gamma, const DrawOptions& options) const {
  const std::int64_t counted_at = law_.counted_at ? law_.counted_at->gamma : 0;
  const std::int64_t longest = std::max(max_gamma, counted_at);
  std::vector<double> shares;
  for (std::int64_t k = 1; k <= longest; ++k) shares.push_back(share_reaching(k));
  TokenWorlds worlds = thinned(proposed_->draw(longest, options), shares);
  const std::vector<double> counted = worlds.tokens[static_cast<std::size_t>(counted_at)];
  worlds.tokens.resize(static_cast<std::size_t>(max_gamma) + 1);
  for (std::size_t gamma = 1; gamma < worlds.tokens.size(); ++gamma) {
    const double most = static_cast<double>(gamma) + 1;
    for (std::size_t world = 0; world < counted.size(); ++world) {
      double& tokens = worlds.tokens[gamma][world];
      tokens = std::min(most, mixed(tokens, counted[world]).tokens);
    }
  }
  return worlds;
}

TokenWorlds UnknownLookups::draw(std::int64_t max_gamma, const DrawOptions& options) const {
  TokenWorlds worlds = proposed_->draw(max_gamma, options);
  TokenWorlds nothing;
  nothing.tokens.assign(worlds.tokens.size(), {1.0});
  nothing.alternative = {0};
  return joined(std::move(worlds), nothing);
}

}  // namespace specdec::estimate
