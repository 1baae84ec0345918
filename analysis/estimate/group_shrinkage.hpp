#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "analysis/estimate/estimate.hpp"

/// Estimates of groups that resemble each other: each is drawn towards the mean of all, the more the less it is known
/// and the less groups differ. docs/theory.md#groups
namespace specdec::estimate {

/// A law that is a mixture of normal laws.
class NormalMixture {
 public:
  struct Part {
    double weight = 1;  ///< >= 0; all of a mixture sum to 1
    double mean = 0;
    double variance = 0;  ///< >= 0
  };

  explicit NormalMixture(std::vector<Part> parts) : parts_(std::move(parts)) {}

  double mean() const;
  /// P(variable <= x).
  double below(double x) const;
  /// The x with P(variable <= x) = p.
  /// @param p  (0, 1)
  /// @throws std::domain_error if p is outside its range
  /// Accuracy: absolute error <= 1e-9 standard deviations
  double quantile(double p) const;
  /// The 0.025 and 0.975 quantiles.
  Interval central95() const { return {quantile(0.025), quantile(0.975)}; }
  /// The law of the sum with an independent normal variable of this variance and mean 0.
  NormalMixture with_variance(double added) const;

 private:
  std::vector<Part> parts_;
};

/// One group as it was measured.
struct GroupValue {
  double value = 0;
  /// Variance of the measurement, > 0.
  double variance = 1;
};

/// The standard deviation of groups, in the unit of their values, up to which it may lie anywhere with equal chance:
/// for log-odds of rates, groups then spread from .12 to .88 about one half, or wider.
inline constexpr double largest_group_spread = 2;

/// Partial pooling of groups. A measured value is normal about the group's own with the variance stated; the groups'
/// own are normal about a common mean m with standard deviation t. At a given t, with w_g = 1 / (V_g + t^2),
///
///   m ~ N(sum w_g y_g / sum w_g, 1 / sum w_g)
///   group g ~ N(m + k_g (y_g - m), k_g V_g + (1 - k_g)^2 Var m),   k_g = t^2 / (t^2 + V_g)
///   P(t | y) proportional to sqrt(Var m) prod sqrt(w_g) exp(-w_g (y_g - m)^2 / 2)
///
/// and laws are mixtures over t, uniform on (0, largest spread] beforehand: intervals hold that the spread itself is
/// known from few groups, and with one group nothing is drawn anywhere.
///
/// Source:   Morris 1983 (parametric empirical Bayes); Gelman et al., Bayesian Data Analysis, section 5.4, and Gelman
///           2006 for the uniform law of t
/// Assumes:  groups are exchangeable and measured independently
class GroupShrinkage {
 public:
  /// @param groups  at least one
  /// @throws std::invalid_argument if there is none
  /// @throws std::domain_error if a value is not finite, or a variance is not above 0
  explicit GroupShrinkage(std::span<const GroupValue> groups);

  /// The law of a group's own value.
  /// @throws std::out_of_range
  NormalMixture group(std::size_t index) const;
  /// The law of the value of a group that was not measured.
  NormalMixture new_group() const;
  /// The mean of t: with two groups little more than the law beforehand.
  double spread() const;

 private:
  /// The weight of one spread, and the law of the common mean there.
  struct Node {
    double weight = 0, spread = 0, mean = 0, variance = 0;
  };

  std::vector<GroupValue> groups_;
  std::vector<Node> nodes_;
};

/// The variance between items of the same stratum, beyond that with which each was measured, by moments over all
/// strata. With w = 1 / V and the weighted mean of each stratum,
///
///   max(0, (Q - (items - strata)) / C),   Q = sum w (y - mean)^2,  C = sum over strata of (sum w - sum w^2 / sum w)
///
/// 0 if no stratum has two items.
///
/// Source:   DerSimonian and Laird 1986, with several strata
double variance_between(std::span<const std::vector<GroupValue>> strata);

}  // namespace specdec::estimate
