#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/estimate/acceptance_curve.hpp"

namespace specdec::planning {

/// Stated acceptance: a rate, an interval of rates, or the survival at each position. Tokens per step
/// are E[K] (theory::expected_tokens).
class ProfileCurve : public estimate::AcceptanceCurve {
 public:
  /// @param acceptance   taken as exact
  /// @param measured_at  the largest gamma it was measured at, if that is not the number of its positions; >= 1
  /// @throws std::domain_error if measured_at < 1
  explicit ProfileCurve(core::AcceptanceProfile acceptance, std::optional<std::int64_t> measured_at = {});
  /// An interval of one rate, given as a 95% interval.
  /// @param low, high  low <= acceptance <= high at every position
  /// @throws std::domain_error if they are in another order or measured_at < 1
  ProfileCurve(core::AcceptanceProfile acceptance, core::AcceptanceProfile low, core::AcceptanceProfile high,
               std::optional<std::int64_t> measured_at = {});

  estimate::TokensPerStep tokens_per_step(std::int64_t gamma) const override;
  /// One world; of an interval its two ends, which are alternatives.
  estimate::TokenWorlds draw(std::int64_t max_gamma, const estimate::DrawOptions& options) const override;

 private:
  core::AcceptanceProfile acceptance_;
  /// Both ends of the interval; none if acceptance is exact.
  std::vector<core::AcceptanceProfile> ends_;
  std::optional<std::int64_t> measured_at_;
};

}  // namespace specdec::planning
