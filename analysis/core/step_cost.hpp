#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace specdec::core {

/// v(n): the cost of scoring n tokens in one call of the target, in units of its cost for one token; v(1) = 1.
/// v(n) = 1 for every n unless said otherwise: the paper's assumption that compute is free.
class VerificationCost {
 public:
  struct Point {
    std::int64_t tokens;  ///< n >= 1
    double factor;        ///< v(n) > 0

    template <class Archive>
    void exchange(Archive& archive) {
      archive(tokens, factor);
    }
  };

  VerificationCost() = default;

  /// v(1) = 1 and v(n) = factor for every n >= 2.
  /// @param factor  dimensionless, > 0, finite
  /// @throws std::domain_error if factor is NaN, not positive or infinite
  static VerificationCost constant(double factor);

  /// Piecewise linear through the points and through (1, 1). Beyond the last point the last slope is held, or 0 where
  /// the table ends falling.
  /// @param points  at least one; tokens >= 1 and strictly increasing, factors positive and finite, v(1) = 1 if given
  /// @throws std::invalid_argument if points is empty or not strictly increasing, or a factor is less than half of the
  ///   one before it
  /// @throws std::domain_error if a value is outside its range; the position is named
  static VerificationCost table(std::span<const Point> points);

  /// v(n), > 0.
  /// @param n  tokens scored in one call, >= 1
  /// @throws std::domain_error if n < 1
  /// Accuracy: relative error <= 1e-15
  double operator()(std::int64_t n) const;

  /// The same for a real n >= 1 and in extended precision, for results that are used in further computation.
  long double extended(long double n) const;

  /// True if n lies beyond the last point of a table; never for a constant factor.
  bool extrapolates(std::int64_t n) const { return extrapolates_after(n - 1); }
  /// True if extrapolates(n + 1), for any n >= 0.
  bool extrapolates_after(std::int64_t n) const { return measured_ && n >= points_.back().tokens; }

  /// The knots: v is linear between neighbours and has last_slope() beyond the last one. The first is (1, 1).
  std::span<const Point> points() const { return points_; }
  /// >= 0, per token
  long double last_slope() const { return last_slope_; }

  template <class Archive>
  void exchange(Archive& archive) {
    archive(measured_, points_);
    if (!Archive::reads) return;
    *this = measured_ ? table(points_) : points_.size() == 2 ? constant(points_[1].factor) : VerificationCost();
  }

 private:
  std::vector<Point> points_ = {{1, 1.0}};
  long double last_slope_ = 0;
  bool measured_ = false;
};

/// The cost of one speculative step in units of one plain target step:
///
///   cost(gamma) = v(gamma + 1) + c * gamma + overhead for gamma >= 1;   1 for gamma = 0, which is plain decoding.
///
/// Source: the denominator of Leviathan et al. 2023, Theorem 3.8 (v = 1, overhead = 0), generalised in
///         docs/theory.md#walltime-improvement
struct StepCost {
  /// Draft step time / target step time, dimensionless, >= 0.
  double c = 0;
  /// Time per speculative step outside both models / target step time, dimensionless, >= 0.
  double overhead = 0;
  VerificationCost verification = {};

  /// cost(gamma), > 0.
  /// @param gamma  drafted tokens, >= 0
  /// @throws std::domain_error if gamma < 0, or c or overhead is NaN, negative or infinite
  /// Accuracy: relative error <= 1e-15; infinity if the value exceeds the range of double
  double operator()(std::int64_t gamma) const;

  /// The same in extended precision, where it does not overflow.
  long double extended(std::int64_t gamma) const;
  /// cost(gamma) - 1, without losing a small c beside 1.
  long double extended_excess(std::int64_t gamma) const;

  /// A range of gammas over which the cost is cost_at_first + slope (gamma - first).
  struct Piece {
    std::int64_t first;
    std::int64_t last;
    long double cost_at_first;
    long double slope;
  };
  /// The cost of every gamma >= 1 as linear pieces; neighbours share their end, the last one ends at 2^63 - 1 and
  /// does not fall.
  /// @throws std::domain_error if c or overhead is NaN, negative or infinite
  std::vector<Piece> pieces() const;

  /// True if v(gamma + 1) lies beyond the last point of its table.
  bool extrapolates(std::int64_t gamma) const { return gamma >= 1 && verification.extrapolates_after(gamma); }
};

}  // namespace specdec::core
