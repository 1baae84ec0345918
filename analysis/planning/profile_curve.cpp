#include "analysis/planning/profile_curve.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/theory/tokens.hpp"

namespace specdec::planning {
namespace {

void require_measured_at(std::optional<std::int64_t> measured_at) {
  if (!measured_at) return;
  core::require_in("ProfileCurve", "measured_at", *measured_at, 1, std::numeric_limits<std::int64_t>::max());
}

estimate::Interval hull_of_tokens(double value, const std::vector<core::AcceptanceProfile>& profiles,
                                  std::int64_t gamma) {
  estimate::Interval hull = {value, value};
  for (const core::AcceptanceProfile& profile : profiles) {
    const double tokens = theory::expected_tokens(profile, gamma);
    hull = {std::min(hull.lo, tokens), std::max(hull.hi, tokens)};
  }
  return hull;
}

}  // namespace

ProfileCurve::ProfileCurve(core::AcceptanceProfile acceptance, std::optional<std::int64_t> measured_at)
    : ProfileCurve(std::move(acceptance), {}, {}, measured_at) {}

ProfileCurve::ProfileCurve(core::AcceptanceProfile acceptance, core::AcceptanceProfile low,
                           core::AcceptanceProfile high, std::optional<std::int64_t> measured_at)
    : ProfileCurve(std::move(acceptance), {}, {std::move(low), std::move(high)}, measured_at) {
  std::int64_t positions = acceptance_.measured_positions();
  for (const core::AcceptanceProfile& end : ci95_) positions = std::max(positions, end.measured_positions());
  for (std::int64_t j = 1; j <= positions + 1; ++j) {
    if (ci95_[0].survival(j) <= acceptance_.survival(j) && acceptance_.survival(j) <= ci95_[1].survival(j)) continue;
    throw std::domain_error("ProfileCurve: the ends of the interval must be below and above the acceptance");
  }
}

ProfileCurve::ProfileCurve(core::AcceptanceProfile acceptance, std::vector<core::AcceptanceProfile> readings,
                           std::vector<core::AcceptanceProfile> ci95, std::optional<std::int64_t> measured_at,
                           std::int64_t measured_from)
    : acceptance_(std::move(acceptance)),
      readings_(std::move(readings)),
      ci95_(std::move(ci95)),
      measured_at_(measured_at),
      measured_from_(measured_from) {
  require_measured_at(measured_at);
}

estimate::TokensPerStep ProfileCurve::tokens_per_step(std::int64_t gamma) const {
  core::require_in("ProfileCurve::tokens_per_step", "gamma", gamma, 0, std::numeric_limits<std::int64_t>::max());
  estimate::TokensPerStep tokens;
  tokens.value = theory::expected_tokens(acceptance_, gamma);
  tokens.readings = hull_of_tokens(tokens.value, readings_, gamma);
  tokens.ci95 = hull_of_tokens(tokens.value, ci95_, gamma);
  tokens.full_accepts = acceptance_.survival(gamma);
  tokens.extrapolated =
      (0 < gamma && gamma < measured_from_) || (measured_at_ ? gamma > *measured_at_ : acceptance_.extrapolates(gamma));
  return tokens;
}

}  // namespace specdec::planning
