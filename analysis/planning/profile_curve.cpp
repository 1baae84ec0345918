#include "analysis/planning/profile_curve.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::planning {
ProfileCurve::ProfileCurve(core::AcceptanceProfile acceptance, core::AcceptanceProfile low,
                           core::AcceptanceProfile high)
    : ProfileCurve(std::move(acceptance)) {
  ends_ = {std::move(low), std::move(high)};
  std::int64_t positions = acceptance_.measured_positions();
  for (const core::AcceptanceProfile& end : ends_) positions = std::max(positions, end.measured_positions());
  for (std::int64_t j = 1; j <= positions + 1; ++j) {
    if (ends_[0].survival(j) <= acceptance_.survival(j) && acceptance_.survival(j) <= ends_[1].survival(j)) continue;
    throw std::domain_error("ProfileCurve: the ends of the interval must be below and above the acceptance");
  }
}

estimate::TokensPerStep ProfileCurve::tokens_per_step(std::int64_t gamma) const {
  core::require_in("ProfileCurve::tokens_per_step", "gamma", gamma, 0, std::numeric_limits<std::int64_t>::max());
  estimate::TokensPerStep tokens;
  tokens.value = theory::expected_tokens(acceptance_, gamma);
  tokens.ci95 = estimate::exactly(tokens.value);
  if (!ends_.empty())
    tokens.ci95 = {theory::expected_tokens(ends_[0], gamma), theory::expected_tokens(ends_[1], gamma)};
  tokens.full_accepts = acceptance_.survival(gamma);
  tokens.extrapolated = acceptance_.extrapolates(gamma);
  return tokens;
}

estimate::TokenWorlds ProfileCurve::draw(std::int64_t max_gamma, const estimate::DrawOptions& /*options*/) const {
  std::vector<core::AcceptanceProfile> worlds = ends_;
  if (worlds.empty()) worlds.push_back(acceptance_);
  estimate::TokenWorlds drawn;
  for (std::size_t world = 0; world < worlds.size(); ++world) drawn.alternative.push_back(static_cast<int>(world));
  for (std::int64_t gamma = 0; gamma <= max_gamma; ++gamma) {
    std::vector<double>& tokens = drawn.tokens.emplace_back();
    for (const core::AcceptanceProfile& world : worlds) tokens.push_back(theory::expected_tokens(world, gamma));
  }
  return drawn;
}

}  // namespace specdec::planning
