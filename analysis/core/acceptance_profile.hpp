#pragma once

#include <cstdint>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"

namespace specdec::core {

/// The number of accepted drafts of a step, by its law: survival(j) = P(at least j drafts accepted), j = 0, 1, 2, ...
///
/// Either one rate for every position (survival = alpha^j, the paper's i.i.d. assumption) or the measured survival at
/// the first positions; beyond the last of them the last conditional rate is held. An AcceptanceRate converts
/// implicitly, so every function of a profile also takes a rate.
class AcceptanceProfile {
 public:
  AcceptanceProfile(const AcceptanceRate& rate) : tail_(rate) {}  // NOLINT: a rate is a profile

  /// @param survival  survival(1), survival(2), ...; at least one, each in [0, 1] and none above the one before it
  /// @throws std::invalid_argument if survival is empty
  /// @throws std::domain_error if an entry is NaN, outside [0, 1], or above the one before it; the position is named
  static AcceptanceProfile from_survival(std::vector<double> survival);

  /// survival(j) = prod_{i <= j} conditional(i).
  /// @param conditional  P(draft i accepted | all before it accepted), i = 1, 2, ...; at least one
  /// @throws std::invalid_argument if conditional is empty
  static AcceptanceProfile from_conditional(const std::vector<AcceptanceRate>& conditional);

  /// P(at least j drafts accepted), in [0, 1], not increasing in j.
  /// @param j  >= 0
  /// @throws std::domain_error if j < 0
  double survival(std::int64_t j) const;
  /// P(the j-th draft is the first one rejected) = survival(j - 1) - survival(j), in [0, 1], without cancellation
  /// if the rates themselves are known.
  /// @param j  >= 1
  /// @throws std::domain_error if j < 1
  double first_rejection(std::int64_t j) const;

  /// The number of positions given one by one; 0 for a single rate.
  std::int64_t measured_positions() const { return static_cast<std::int64_t>(survival_.size()); }
  /// True if gamma drafts go beyond the given positions; never for a single rate.
  bool extrapolates(std::int64_t gamma) const { return !survival_.empty() && gamma > measured_positions(); }
  /// The conditional rate held beyond the given positions; the rate itself for a single rate.
  const AcceptanceRate& tail() const { return tail_; }

 private:
  AcceptanceProfile(std::vector<double> survival, std::vector<double> first_rejection, AcceptanceRate tail);

  std::vector<double> survival_;         // [j - 1] = survival(j)
  std::vector<double> first_rejection_;  // [j - 1] = first_rejection(j)
  AcceptanceRate tail_;
};

}  // namespace specdec::core
