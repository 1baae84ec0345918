#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/estimate/acceptance_curve.hpp"

namespace specdec::planning {

/// Stated acceptance: a rate, an interval of rates, or the survival at each position. Tokens per step
/// are E[K] (theory::expected_tokens).
class ProfileCurve : public estimate::AcceptanceCurve {
 public:
  /// @param acceptance  taken as exact
  explicit ProfileCurve(core::AcceptanceProfile acceptance) : acceptance_(std::move(acceptance)) {}
  /// An interval of one rate, given as a 95% interval.
  /// @param low, high  low <= acceptance <= high at every position
  /// @throws std::domain_error if they are in another order
  ProfileCurve(core::AcceptanceProfile acceptance, core::AcceptanceProfile low, core::AcceptanceProfile high);

  estimate::TokensPerStep tokens_per_step(std::int64_t gamma) const override;
  /// One world; of an interval its two ends, which are alternatives.
  estimate::TokenWorlds draw(std::int64_t max_gamma, const estimate::DrawOptions& options) const override;

 private:
  core::AcceptanceProfile acceptance_;
  /// Both ends of the interval; none if acceptance is exact.
  std::vector<core::AcceptanceProfile> ends_;
};

}  // namespace specdec::planning
