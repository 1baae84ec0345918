#include "analysis/estimate/cluster_ratio.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "analysis/core/tails.hpp"

namespace specdec::estimate {
namespace {

/// Satterthwaite's degrees of freedom of sum_k c_k e_k^2 for residuals e_k = u_k - s_k sum u, Var u_k = w_k, with
/// c_k = w_k / Var e_k. The sum over pairs is that of all pairs, as sums of products, minus those of k with itself.
double degrees_of_freedom(std::span<const double> c, std::span<const double> s, std::span<const double> w) {
  double all_w = 0;
  double ss = 0;
  double ww = 0;
  double sw = 0;
  for (std::size_t k = 0; k < w.size(); ++k) {
    all_w += w[k];
    ss += c[k] * s[k] * s[k];
    ww += c[k] * w[k] * w[k];
    sw += c[k] * s[k] * w[k];
  }
  double pairs = 2 * ss * ww + 2 * sw * sw + all_w * all_w * ss * ss - 4 * all_w * ss * sw;
  for (std::size_t k = 0; k < w.size(); ++k) {
    const double shared = s[k] * s[k] * all_w - 2 * s[k] * w[k];
    pairs += c[k] * c[k] * w[k] * (w[k] + 2 * shared);
  }
  return std::clamp(all_w * all_w / pairs, 1.0, static_cast<double>(w.size() - 1));
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

StandardError of_neighbours(const StandardError& independent, std::int64_t clusters,
                            const NeighbourCorrelation& neighbours) {
  if (neighbours.value == 0) return independent;
  constexpr double fewest_windows = 3;
  const auto k = static_cast<double>(clusters);
  const double inflation = std::min(neighbours.variance_inflation(), std::max(1.0, k / fewest_windows));
  return {independent.value * std::sqrt(inflation * (k - 1) / (k - inflation)), k / inflation - 1};
}

std::optional<StandardError> standard_error(const ClusterMoments& clusters) {
  if (clusters.clusters() < 2 || !(clusters.denominator() > 0)) return std::nullopt;
  const auto k = static_cast<double>(clusters.clusters());
  const double variance = clusters.squared_deviations(clusters.numerator() / clusters.denominator()) * k / (k - 1);
  return of_neighbours({std::sqrt(variance) / clusters.denominator(), k - 1}, clusters.clusters(),
                       clusters.neighbours());
}

std::optional<StandardError> standard_error(std::span<const RatioTerm> clusters) {
  double numerator = 0, denominator = 0, largest = 0;
  for (const RatioTerm& cluster : clusters) {
    numerator += cluster.numerator;
    denominator += cluster.denominator;
    largest = std::max(largest, cluster.denominator);
  }
  if (clusters.size() < 2 || !(denominator > 0)) return std::nullopt;
  std::vector<double> w, s, c;
  double all_w = 0;
  for (const RatioTerm& cluster : clusters) {
    w.push_back(std::pow(cluster.denominator / largest, 2));
    s.push_back(cluster.denominator / denominator);
    all_w += w.back();
  }
  double variance = 0;
  for (std::size_t k = 0; k < clusters.size(); ++k) {
    const double g = w[k] * (1 - 2 * s[k]) + s[k] * s[k] * all_w;
    c.push_back(g > 0 ? w[k] / g : 1);
    const double residual = clusters[k].numerator - numerator / denominator * clusters[k].denominator;
    variance += c[k] * residual * residual;
  }
  return StandardError{std::sqrt(variance) / denominator, degrees_of_freedom(c, s, w)};
}

double effective_clusters(std::span<const RatioTerm> clusters) {
  double sum = 0;
  double squares = 0;
  for (const RatioTerm& cluster : clusters) {
    sum += cluster.denominator;
    squares += cluster.denominator * cluster.denominator;
  }
  return squares > 0 ? sum * sum / squares : 0;
}

Interval t_interval(double value, const StandardError& error) {
  const double half_width = core::t_half_width_95(error.degrees_of_freedom) * error.value;
  return {value - half_width, value + half_width};
}

Interval bounded_t_interval(double value, const StandardError& error, double lo, double hi) {
  const double width = hi - lo;
  const double x = (value - lo) / width;
  if (!(0 < x && x < 1) || error.value == 0) return {value, value};
  const double t = core::t_half_width_95(error.degrees_of_freedom);
  // t^2 / n, the only combination of the two that Wilson's formula needs.
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
