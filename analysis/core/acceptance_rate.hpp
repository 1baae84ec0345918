#pragma once

#include <cstdint>

namespace specdec::core {

/// The probability alpha that a drafted token is accepted, stored so that neither alpha nor epsilon = 1 - alpha loses
/// digits: of the two doubles alpha() and rejection() the smaller is exact, the other is rounded once.
///
/// Every formula is evaluated from the exact one, so that results near alpha = 1 keep all their digits:
/// AcceptanceRate::from_rejection(1e-12) is not AcceptanceRate(1 - 1e-12).
class AcceptanceRate {
 public:
  /// @param alpha  acceptance rate, dimensionless, [0, 1]
  /// @throws std::domain_error if alpha is NaN or outside [0, 1]
  explicit AcceptanceRate(double alpha);

  /// The rate 1 - epsilon.
  /// @param epsilon  rejection rate, dimensionless, [0, 1]
  /// @throws std::domain_error if epsilon is NaN or outside [0, 1]
  static AcceptanceRate from_rejection(double epsilon);

  /// The rate from accepted and rejected masses that were summed separately; the smaller one is kept, and the other is
  /// computed as one minus it. Either may exceed 1 by the rounding of its sum.
  /// @param accepted, rejected  masses, dimensionless, >= 0, one of them at most 1
  /// @throws std::domain_error if a mass is NaN or negative, or both are greater than 1
  static AcceptanceRate from_masses(double accepted, double rejected);

  /// alpha, in [0, 1].
  double alpha() const { return alpha_; }
  /// epsilon = 1 - alpha, in [0, 1].
  double rejection() const { return rejection_; }
  /// ln(alpha) <= 0, -infinity at alpha = 0; in extended precision, since it is multiplied by large numbers.
  /// Accuracy: relative error <= 1e-15
  long double log_alpha() const { return log_alpha_; }

  /// alpha^n; 1 at n = 0, also for alpha = 0.
  /// @param n  >= 0
  /// @throws std::domain_error if n < 0
  /// Accuracy: relative error <= 1e-15 (results below 2^-1022 are rounded to a multiple of 2^-1074)
  double power(std::int64_t n) const;

  /// 1 - alpha^n without cancellation.
  /// @param n  >= 0
  /// @throws std::domain_error if n < 0
  /// Accuracy: relative error <= 1e-15 (results below 2^-1022 as for power)
  double one_minus_power(std::int64_t n) const;

  /// Orders by alpha; rates whose alpha rounds to the same double are distinguished by epsilon.
  friend bool operator==(const AcceptanceRate&, const AcceptanceRate&) = default;
  friend bool operator<(const AcceptanceRate& a, const AcceptanceRate& b) {
    return a.alpha_ < b.alpha_ || (a.alpha_ == b.alpha_ && a.rejection_ > b.rejection_);
  }

 private:
  AcceptanceRate(double alpha, double rejection);

  double alpha_;
  double rejection_;
  long double log_alpha_;
};

}  // namespace specdec::core
