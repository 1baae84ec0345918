#include "analysis/estimate/lookup_curve.hpp"

#include <stdexcept>
#include <utility>

namespace specdec::estimate {

namespace {

std::shared_ptr<const AcceptanceCurve> require_given(const char* who, std::shared_ptr<const AcceptanceCurve> proposed) {
  if (!proposed) throw std::invalid_argument(std::string(who) + ": there is no acceptance of what is proposed");
  return proposed;
}

}  // namespace

LookupCurve::LookupCurve(std::shared_ptr<const AcceptanceCurve> proposed, const core::LookupLaw& law)
    : proposed_(require_given("LookupCurve", std::move(proposed))), law_(law) {
  law.require_valid();
}

UnknownLookups::UnknownLookups(std::shared_ptr<const AcceptanceCurve> proposed)
    : proposed_(require_given("UnknownLookups", std::move(proposed))) {}

std::vector<double> LookupCurve::survival(std::int64_t gamma) const {
  std::vector<double> survival = proposed_->survival(gamma);
  for (std::size_t k = 0; k < survival.size(); ++k)
    survival[k] *= law_.hit_rate * law_.reaches(static_cast<std::int64_t>(k) + 1);
  return survival;
}

TokensPerStep LookupCurve::tokens_per_step(std::int64_t gamma) const {
  TokensPerStep tokens = proposed_->tokens_per_step(gamma);
  if (gamma == 0) return tokens;
  double accepted = 0;
  for (const double share : survival(gamma)) accepted += share;
  const double kept = tokens.value > 1 ? accepted / (tokens.value - 1) : 0;
  const auto scaled = [&](const Interval& range) {
    return Interval{1 + kept * (range.lo - 1), 1 + kept * (range.hi - 1)};
  };
  tokens.value = 1 + accepted;
  tokens.readings = scaled(tokens.readings);
  tokens.ci95 = scaled(tokens.ci95);
  if (tokens.bracket) tokens.bracket = scaled(*tokens.bracket);
  tokens.full_accepts *= law_.hit_rate * law_.reaches(gamma);
  return tokens;
}

}  // namespace specdec::estimate
