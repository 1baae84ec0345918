#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/merging_cells.hpp"
#include "analysis/estimate/neighbour_correlation.hpp"

namespace specdec::estimate {

/// A ratio's standard error and the degrees of freedom for its Student's t.
struct StandardError {
  double value = 0;
  double degrees_of_freedom = 0;
};

/// The standard error of K clusters that resemble their neighbours, from that of as many independent ones, whose
/// squared deviations are too small as well:
///
///   se^2 = se_0^2 f (K - 1) / (K - f),   K / f - 1 degrees of freedom,   f at most K / 3
///
/// Source:   docs/theory.md#acceptance-from-counters
StandardError of_neighbours(const StandardError& independent, std::int64_t clusters,
                            const NeighbourCorrelation& neighbours);

/// Sums, squares and products of clusters (a_k, b_k), centred as they arrive: all that the interval of sum a / sum b
/// needs. The result depends only on the order of the calls of `add` and `merge`.
class ClusterMoments {
 public:
  void add(double numerator, double denominator);
  void merge(const ClusterMoments& other);

  std::int64_t clusters() const { return clusters_; }
  double numerator() const { return numerator_; }
  double denominator() const { return denominator_; }
  /// sum (d_k - mean d)^2 with d_k = a_k - ratio b_k.
  double squared_deviations(double ratio) const;

  /// Clusters are consecutive windows; independent unless this is called.
  void resemble(const NeighbourCorrelation& neighbours) { neighbours_ = neighbours; }
  const NeighbourCorrelation& neighbours() const { return neighbours_; }

  template <class Archive>
  void exchange(Archive& archive) {
    archive(clusters_, numerator_, denominator_, mean_a_, mean_b_, aa_, ab_, bb_);
  }

 private:
  std::int64_t clusters_ = 0;
  double numerator_ = 0, denominator_ = 0;
  double mean_a_ = 0, mean_b_ = 0;
  double aa_ = 0, ab_ = 0, bb_ = 0;
  NeighbourCorrelation neighbours_ = {};
};

/// The standard error of sum a / sum b over clusters of about the same size, from their moments:
///
///   se^2 = K / (K - 1) sum (d_k - mean d)^2 / (sum b)^2,   d_k = a_k - r b_k,   K - 1 degrees of freedom
///
/// if they are independent, else as of_neighbours.
/// Source:   Cochran 1977, section 6.3
/// @return empty for fewer than two clusters
std::optional<StandardError> standard_error(const ClusterMoments& clusters);

/// One cluster's two sums.
struct RatioTerm {
  double numerator = 0;
  double denominator = 0;
};

/// The standard error of r = sum a / sum b over independent clusters of any sizes:
///
///   se^2 = sum_k (w_k / g_k) d_k^2 / B^2,   d_k = a_k - r b_k,   B = sum b
///   g_k = w_k (1 - 2 s_k) + s_k^2 sum w,   s_k = b_k / B
///
/// g_k is the variance of d_k if the clusters' rates vary independently with one variance, so that the variance of a_k
/// is w_k = b_k^2: a large cluster pulls r towards itself and its residual is too small; g_k corrects for that. With
/// equal b_k this is K / (K - 1) sum d_k^2. The degrees of freedom are Satterthwaite's under the same variances,
///
///   (sum w)^2 / sum_kl (w_k / g_k) (w_l / g_l) G_kl^2,   G_kk = g_k,   G_kl = s_k s_l sum w - s_k w_l - s_l w_k
///
/// K - 1 with equal b_k. Source: docs/theory.md#intervals-from-recordings; Bell and McCaffrey 2002, Pustejovsky and
/// Tipton 2018 (CR2)
/// @return empty for fewer than two clusters, or if sum b is not positive
std::optional<StandardError> standard_error(std::span<const RatioTerm> clusters);

/// The number of equal-size clusters that are worth as much: (sum b)^2 / sum b^2; 0 if there are none.
/// Source:   Kish 1965, section 11.7
double effective_clusters(std::span<const RatioTerm> clusters);

/// value -+ t_(df, 0.975) se.
Interval t_interval(double value, const StandardError& error);

/// The same for a ratio that cannot leave [lo, hi] and whose standard error shrinks towards the ends like that of a
/// share: Wilson's interval with t in place of z and the number of trials that would give this standard error.
///
///   x = (value - lo) / (hi - lo),   n = x (1 - x) / (se / (hi - lo))^2,
///   all theta with |x - theta| <= t_(df, 0.975) sqrt(theta (1 - theta) / n)
///
/// Rare rejections skew the estimate and make its standard error too small exactly when it errs upwards; t_interval
/// then misses the truth. For large n the two intervals agree.
/// Source:   docs/theory.md#intervals-from-recordings
/// @param value  [lo, hi]; at an end, or with se = 0, the interval is the value alone
Interval bounded_t_interval(double value, const StandardError& error, double lo, double hi);

/// The fewest values in a batch of a single series.
inline constexpr std::int64_t least_batch = 20;

/// The values of one long series in batches, in bounded memory. `moments` divides the cells into min(10, n /
/// least_batch) batches of nearly equal length.
class StreamingBatches {
 public:
  void add(double numerator, double denominator) { cells_.add({numerator, denominator}); }
  std::int64_t values() const { return cells_.parts(); }
  /// The batches as clusters.
  ClusterMoments moments() const;

  template <class Archive>
  void exchange(Archive& archive) {
    archive(cells_);
  }

 private:
  struct BatchSums {
    double numerator = 0, denominator = 0;

    template <class Archive>
    void exchange(Archive& archive) {
      archive(numerator, denominator);
    }

    void add(const BatchSums& other) {
      numerator += other.numerator;
      denominator += other.denominator;
    }
  };
  MergingCells<BatchSums, 256> cells_;
};

}  // namespace specdec::estimate
