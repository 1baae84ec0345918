#include "analysis/estimate/lookup_curve.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

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

double LookupCurve::share_of(std::int64_t k) const {
  const double reached = included_.reaches(k);
  return reached > 0 ? law_.hit_rate / included_.hit_rate * law_.reaches(k) / reached : 0;
}

UnknownLookups::UnknownLookups(std::shared_ptr<const AcceptanceCurve> proposed)
    : proposed_(require_given("UnknownLookups", std::move(proposed))) {}

std::vector<double> LookupCurve::survival(std::int64_t gamma) const {
  // By gains, which change little from one gamma to the next where lengths are changed.
  std::vector<double> survival = proposed_->AcceptanceCurve::survival(gamma);
  double before = 1;
  for (std::size_t k = 0; k < survival.size(); ++k)
    before = survival[k] = std::min(before, survival[k] * share_of(static_cast<std::int64_t>(k) + 1));
  return survival;
}

TokensPerStep LookupCurve::tokens_per_step(std::int64_t gamma) const {
  TokensPerStep tokens = proposed_->tokens_per_step(gamma);
  if (gamma == 0) return tokens;
  double accepted = 0;
  for (const double share : survival(gamma)) accepted += share;
  const double kept = tokens.value > 1 ? accepted / (tokens.value - 1) : 0;
  const double most = static_cast<double>(gamma) + 1;
  const auto scaled = [&](const Interval& range) {
    return Interval{std::min(most, 1 + kept * (range.lo - 1)), std::min(most, 1 + kept * (range.hi - 1))};
  };
  tokens.value = 1 + accepted;
  tokens.ci95 = scaled(tokens.ci95);
  if (tokens.bracket) tokens.bracket = scaled(*tokens.bracket);
  tokens.full_accepts = std::min(1.0, tokens.full_accepts * share_of(gamma));
  return tokens;
}

TokenWorlds LookupCurve::draw(std::int64_t max_gamma, const DrawOptions& options) const {
  std::vector<double> shares;
  for (std::int64_t k = 1; k <= max_gamma; ++k) shares.push_back(share_of(k));
  return thinned(proposed_->draw(max_gamma, options), shares);
}

TokenWorlds UnknownLookups::draw(std::int64_t max_gamma, const DrawOptions& options) const {
  TokenWorlds worlds = proposed_->draw(max_gamma, options);
  TokenWorlds nothing;
  nothing.tokens.assign(worlds.tokens.size(), {1.0});
  nothing.alternative = {0};
  return joined(std::move(worlds), nothing);
}

}  // namespace specdec::estimate
