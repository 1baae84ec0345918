#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/merging_cells.hpp"

namespace specdec::estimate {

/// Sums, squares and products of clusters (a_k, b_k), centred as they come: all that the interval of sum a / sum b
/// needs. The result depends on the order of `add` and `merge` alone.
class ClusterMoments {
 public:
  void add(double numerator, double denominator);
  void merge(const ClusterMoments& other);

  std::int64_t clusters() const { return clusters_; }
  double numerator() const { return numerator_; }
  double denominator() const { return denominator_; }
  /// sum (d_k - mean d)^2 with d_k = a_k - ratio b_k.
  double squared_deviations(double ratio) const;

 private:
  std::int64_t clusters_ = 0;
  double numerator_ = 0, denominator_ = 0;
  double mean_a_ = 0, mean_b_ = 0;
  double aa_ = 0, ab_ = 0, bb_ = 0;
};

/// A ratio's standard error and the degrees of freedom of its Student's t.
struct StandardError {
  double value = 0;
  double degrees_of_freedom = 0;
};

/// Of sum a / sum b over independent clusters of one law; nothing for fewer than two clusters.
/// Source:   Cochran 1977, section 6.3
std::optional<StandardError> standard_error(const ClusterMoments& clusters);

/// The same where the number of clusters of each stratum was chosen:
///
///   se^2 = sum_h K_h / (K_h - 1) sum_(k in h) (d_k - mean_h d)^2 / (sum b)^2,   d_k = a_k - r b_k
///
/// with Satterthwaite's degrees of freedom. Strata of a single cluster are taken together, with the smallest of the
/// others if there is only one.
/// Source:   combined ratio estimator, Cochran 1977, sections 6.11 and 5.4
/// @return nothing where no stratum has two clusters after that
std::optional<StandardError> stratified_standard_error(std::span<const ClusterMoments> strata);

/// value -+ t_(df, 0.975) se.
Interval t_interval(double value, const StandardError& error);

/// The same for a ratio that cannot leave [lo, hi], where the standard error shrinks towards the ends like that of a
/// share: Wilson's interval with t for z and the number of trials that would give this standard error.
///
///   x = (value - lo) / (hi - lo),   n = x (1 - x) / (se / (hi - lo))^2,
///   all theta with |x - theta| <= t_(df, 0.975) sqrt(theta (1 - theta) / n)
///
/// Rare rejections make the estimate skew and its standard error too small just where it errs upwards; t_interval
/// then misses the truth, while for large n the two agree.
/// Source:   docs/theory.md#intervals-from-recordings
/// @param value  [lo, hi]; at an end, or with se = 0, the interval is the value alone
Interval bounded_t_interval(double value, const StandardError& error, double lo, double hi);

/// Values in the shortest batch of a single series.
inline constexpr std::int64_t least_batch = 20;

/// The values of one long series by batches, in bounded memory. `moments` cuts the cells into min(10, n / least_batch)
/// batches of nearly equal length.
class StreamingBatches {
 public:
  void add(double numerator, double denominator) { cells_.add({numerator, denominator}); }
  std::int64_t values() const { return cells_.parts(); }
  /// The batches as clusters.
  ClusterMoments moments() const;

 private:
  struct BatchSums {
    double numerator = 0, denominator = 0;

    void add(const BatchSums& other) {
      numerator += other.numerator;
      denominator += other.denominator;
    }
  };
  MergingCells<BatchSums, 256> cells_;
};

}  // namespace specdec::estimate
