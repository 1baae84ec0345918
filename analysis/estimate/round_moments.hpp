#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/estimate/cluster_ratio.hpp"

namespace specdec::estimate {

/// Conditional rates by position, h_j = accepted_j / evaluated_j, and how the counts vary over clusters: all that the
/// standard error of a smooth function of the rates needs, in memory that does not depend on the number of clusters.
class RoundMoments {
 public:
  static constexpr std::int64_t most_positions = 256;

  /// Adds the next cluster; positions that it lacks count as 0.
  /// Shape: accepted, evaluated (positions); positions <= most_positions
  /// @throws std::invalid_argument if the sizes differ
  /// @throws std::domain_error if there are too many positions
  void add(std::span<const double> accepted, std::span<const double> evaluated);

  std::int64_t clusters() const { return clusters_; }
  std::int64_t positions() const { return static_cast<std::int64_t>(sums_.size() / 2); }
  /// Sums over clusters; j = 1..positions().
  double accepted(std::int64_t j) const { return sums_[index(j)]; }
  double evaluated(std::int64_t j) const { return sums_[index(j) + 1]; }
  /// h_j; 0 if no draft was examined.
  double rate(std::int64_t j) const { return evaluated(j) > 0 ? accepted(j) / evaluated(j) : 0; }

  /// As ClusterMoments::resemble.
  void resemble(const NeighbourCorrelation& neighbours) { neighbours_ = neighbours; }

  /// Standard error of f(h) over the clusters, by linearisation; empty for fewer than two.
  ///
  ///   se^2 = K / (K - 1) sum_k (D_k - mean D)^2,   D_k = sum_j df/dh_j (accepted_jk - h_j evaluated_jk) / evaluated_j
  ///
  /// if they are independent, else as of_neighbours.
  /// Source:   Cochran 1977, section 6.3, for several ratios
  /// Shape: gradient (positions()), df/dh_j
  std::optional<StandardError> standard_error(std::span<const double> gradient) const;
 private:
  static std::size_t index(std::int64_t j) { return 2 * static_cast<std::size_t>(j - 1); }

  std::int64_t clusters_ = 0;
  NeighbourCorrelation neighbours_ = {};
  // accepted_1, evaluated_1, accepted_2, ...
  std::vector<double> sums_, means_;
  std::vector<double> products_;  // products of deviations from the means; lower triangle, row after row
  std::vector<double> off_;       // counts of the cluster being added, kept to reuse the memory
};

}  // namespace specdec::estimate
