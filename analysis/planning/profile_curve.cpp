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

}  // namespace

ProfileCurve::ProfileCurve(core::AcceptanceProfile acceptance, std::optional<std::int64_t> measured_at)
    : acceptance_(acceptance), low_(acceptance), high_(std::move(acceptance)), exact_(true), measured_at_(measured_at) {
  require_measured_at(measured_at);
}

ProfileCurve::ProfileCurve(core::AcceptanceProfile acceptance, core::AcceptanceProfile low,
                           core::AcceptanceProfile high, std::optional<std::int64_t> measured_at)
    : acceptance_(std::move(acceptance)),
      low_(std::move(low)),
      high_(std::move(high)),
      exact_(false),
      measured_at_(measured_at) {
  require_measured_at(measured_at);
  const std::int64_t positions =
      std::max({acceptance_.measured_positions(), low_.measured_positions(), high_.measured_positions()}) + 1;
  for (std::int64_t j = 1; j <= positions; ++j) {
    if (low_.survival(j) <= acceptance_.survival(j) && acceptance_.survival(j) <= high_.survival(j)) continue;
    throw std::domain_error("ProfileCurve: the ends of the interval must be below and above the acceptance");
  }
}

estimate::TokensPerStep ProfileCurve::tokens_per_step(std::int64_t gamma) const {
  core::require_in("ProfileCurve::tokens_per_step", "gamma", gamma, 0, std::numeric_limits<std::int64_t>::max());
  estimate::TokensPerStep tokens;
  tokens.value = theory::expected_tokens(acceptance_, gamma);
  tokens.readings = {tokens.value, tokens.value};
  tokens.ci95 = tokens.readings;
  if (!exact_) {
    tokens.ci95 = {std::min(tokens.value, theory::expected_tokens(low_, gamma)),
                   std::max(tokens.value, theory::expected_tokens(high_, gamma))};
  }
  tokens.full_accepts = acceptance_.survival(gamma);
  tokens.extrapolated = measured_at_ ? gamma > *measured_at_ : acceptance_.extrapolates(gamma);
  return tokens;
}

}  // namespace specdec::planning
