#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/estimate/cluster_ratio.hpp"

namespace specdec::estimate {

/// Counts of rounds by position and how they vary over clusters: enough for the interval of any smooth function of
/// the counts, in memory that does not depend on the number of clusters.
///
/// A cluster is a vector x = (rounds, accepted_1, evaluated_1, accepted_2, evaluated_2, ...); vectors of different
/// length are filled up with zeros.
class RoundMoments {
 public:
  static constexpr std::int64_t most_positions = 256;

  /// Shape: accepted, evaluated (positions); positions <= most_positions.
  /// @throws std::invalid_argument if the sizes differ
  void add(double rounds, std::span<const double> accepted, std::span<const double> evaluated);

  std::int64_t clusters() const { return clusters_; }
  std::int64_t positions() const;
  double rounds() const;
  /// Sum over clusters; j = 1..positions().
  double accepted(std::int64_t j) const;
  double evaluated(std::int64_t j) const;

  /// Standard error of f(sum x) with the given gradient of f, over the clusters; nothing for fewer than two.
  ///   se^2 = K / (K - 1) sum_k (g . (x_k - mean x))^2
  /// Shape: gradient (1 + 2 positions()), in the order of x.
  std::optional<StandardError> standard_error(std::span<const double> gradient) const;
  /// The same for independent rounds: evaluated drafts are independent trials given that they are looked at.
  /// @param design_effect  factor on the variance, >= 1
  StandardError standard_error_of_independent_rounds(std::span<const double> gradient, double design_effect = 1) const;

 private:
  std::int64_t clusters_ = 0;
  std::vector<double> sums_, means_;
  std::vector<double> products_;  // lower triangle, row after row
};

}  // namespace specdec::estimate
