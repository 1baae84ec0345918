#include "analysis/estimate/cluster_ratio.hpp"

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

namespace specdec::estimate {
namespace {

/// The variance of sum d_k as estimated from one stratum, and its degrees of freedom.
struct StratumVariance {
  double value;
  double degrees_of_freedom;
};

StratumVariance variance_of_sum(const ClusterMoments& clusters, double ratio) {
  const auto k = static_cast<double>(clusters.clusters());
  return {clusters.squared_deviations(ratio) * k / (k - 1), k - 1};
}

/// Strata of two clusters and more; those of one are taken together.
std::vector<ClusterMoments> with_single_clusters_merged(std::span<const ClusterMoments> strata) {
  std::vector<ClusterMoments> merged;
  ClusterMoments singles;
  for (const ClusterMoments& stratum : strata) {
    if (stratum.clusters() >= 2) merged.push_back(stratum);
    if (stratum.clusters() == 1) singles.merge(stratum);
  }
  if (singles.clusters() == 0) return merged;
  if (singles.clusters() >= 2 || merged.empty()) {
    merged.push_back(singles);
  } else {
    const auto smallest =
        std::min_element(merged.begin(), merged.end(),
                         [](const ClusterMoments& a, const ClusterMoments& b) { return a.clusters() < b.clusters(); });
    smallest->merge(singles);
  }
  return merged;
}

double t_quantile_97_5(double degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(degrees_of_freedom), 0.975);
}

}  // namespace

void ClusterMoments::add(double numerator, double denominator) {
  numerator_ += numerator;
  denominator_ += denominator;
  const auto k = static_cast<double>(++clusters_);
  const double off_a = numerator - mean_a_;
  const double off_b = denominator - mean_b_;
  mean_a_ += off_a / k;
  mean_b_ += off_b / k;
  aa_ += off_a * (numerator - mean_a_);
  ab_ += off_a * (denominator - mean_b_);
  bb_ += off_b * (denominator - mean_b_);
}

void ClusterMoments::merge(const ClusterMoments& other) {
  if (other.clusters_ == 0) return;
  const auto mine = static_cast<double>(clusters_);
  const auto theirs = static_cast<double>(other.clusters_);
  const double weight = mine * theirs / (mine + theirs);
  const double off_a = other.mean_a_ - mean_a_;
  const double off_b = other.mean_b_ - mean_b_;
  numerator_ += other.numerator_;
  denominator_ += other.denominator_;
  clusters_ += other.clusters_;
  mean_a_ += off_a * theirs / (mine + theirs);
  mean_b_ += off_b * theirs / (mine + theirs);
  aa_ += other.aa_ + weight * off_a * off_a;
  ab_ += other.ab_ + weight * off_a * off_b;
  bb_ += other.bb_ + weight * off_b * off_b;
}

double ClusterMoments::squared_deviations(double ratio) const {
  return std::max(0.0, aa_ - 2 * ratio * ab_ + ratio * ratio * bb_);
}

std::optional<StandardError> standard_error(const ClusterMoments& clusters) {
  return stratified_standard_error(std::span(&clusters, 1));
}

std::optional<StandardError> stratified_standard_error(std::span<const ClusterMoments> strata) {
  ClusterMoments all;
  for (const ClusterMoments& stratum : strata) all.merge(stratum);
  if (!(all.denominator() > 0)) return std::nullopt;
  const double ratio = all.numerator() / all.denominator();
  double variance = 0;
  double of_variance = 0;
  double degrees_of_freedom = 0;
  for (const ClusterMoments& stratum : with_single_clusters_merged(strata)) {
    if (stratum.clusters() < 2) return std::nullopt;
    const StratumVariance part = variance_of_sum(stratum, ratio);
    variance += part.value;
    of_variance += part.value * part.value / part.degrees_of_freedom;
    degrees_of_freedom += part.degrees_of_freedom;
  }
  if (degrees_of_freedom == 0) return std::nullopt;
  if (of_variance > 0) degrees_of_freedom = variance * variance / of_variance;
  return StandardError{std::sqrt(variance) / all.denominator(), degrees_of_freedom};
}

Interval t_interval(double value, const StandardError& error) {
  const double half_width = t_quantile_97_5(error.degrees_of_freedom) * error.value;
  return {value - half_width, value + half_width};
}

Interval bounded_t_interval(double value, const StandardError& error, double lo, double hi) {
  const double width = hi - lo;
  const double x = (value - lo) / width;
  if (!(0 < x && x < 1) || error.value == 0) return {value, value};
  const double t = t_quantile_97_5(error.degrees_of_freedom);
  // t^2 / n, which is all that Wilson's formula needs of the two.
  const double u = std::pow(t * error.value / width, 2) / (x * (1 - x));
  const double centre = (x + u / 2) / (1 + u);
  const double half_width = std::sqrt(u * (x * (1 - x) + u / 4)) / (1 + u);
  return {lo + width * std::max(0.0, centre - half_width), lo + width * std::min(1.0, centre + half_width)};
}

ClusterMoments StreamingBatches::moments() const {
  ClusterMoments moments;
  if (values() == 0) return moments;
  const std::vector<BatchSums>& cells = cells_.cells();
  std::vector<BatchSums> batches(static_cast<std::size_t>(std::clamp<std::int64_t>(values() / least_batch, 1, 10)));
  for (std::size_t i = 0; i < cells.size(); ++i) batches[i * batches.size() / cells.size()].add(cells[i]);
  for (const BatchSums& batch : batches) moments.add(batch.numerator, batch.denominator);
  return moments;
}

}  // namespace specdec::estimate
