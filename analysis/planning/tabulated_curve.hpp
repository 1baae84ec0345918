#pragma once

#include <cstdint>
#include <vector>

#include "analysis/estimate/acceptance_curve.hpp"

namespace specdec::planning {

/// The values of another acceptance at gamma = 0, 1, 2, ..., kept without its source; nothing is known beyond.
class TabulatedCurve : public estimate::AcceptanceCurve {
 public:
  /// @param by_gamma  [gamma]; at least gamma = 0
  /// @throws std::invalid_argument if by_gamma is empty
  /// @throws std::domain_error if a value is outside [1, gamma + 1] by more than rounding, an interval does not contain
  ///         it, or a share of full accepts is outside [0, 1]
  explicit TabulatedCurve(std::vector<estimate::TokensPerStep> by_gamma);

  /// @throws std::domain_error if gamma is outside [0, the last of the table]
  estimate::TokensPerStep tokens_per_step(std::int64_t gamma) const override;

 private:
  std::vector<estimate::TokensPerStep> by_gamma_;
};

}  // namespace specdec::planning
