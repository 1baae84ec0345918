#pragma once

#include <optional>
#include <span>

#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/estimate.hpp"

namespace specdec::estimate {

/// The fewest clusters, and the fewest different lengths, that are tested.
inline constexpr std::int64_t least_tested_clusters = 8;
/// The test's level: the share of significant results if rates do not depend on lengths, for many clusters.
inline constexpr double length_dependence_level = 0.01;

/// The dependence of a cluster's rate on the cluster's length.
struct LengthDependence {
  /// The increase of the rate from clusters of some length to clusters twice as long, with the 95% interval.
  Estimate per_doubling;
  /// Two-sided p-value.
  double p_value = 1;

  bool significant() const { return p_value < length_dependence_level; }
};

/// Tests whether long texts have another rate than short ones. If so, a ratio of sums depends on the few longest;
/// another recording may have more or fewer of them, and no interval from this one accounts for that.
///
///   least squares of y_k = a_k / b_k on x_k = log2 b_k over clusters with b_k > 0, with equal weights;
///   se^2 = sum (x_k - mean x)^2 e_k^2 / (1 - h_k)^2 / S^2,   h_k = 1 / K + (x_k - mean x)^2 / S,
///   S = sum (x_k - mean x)^2;   t = slope / se with K - 2 degrees of freedom
///
/// The rates of short clusters may scatter more than those of long ones: the standard error does not assume equal
/// variances. Source:   MacKinnon and White 1985 (HC3); docs/theory.md#intervals-from-recordings
/// @return empty for fewer than least_tested_clusters, or if all have one length
/// Accuracy: at the level 1% it is significant in 0.8% to 2.6% of recordings of laws without dependence (the tests')
std::optional<LengthDependence> length_dependence(std::span<const RatioTerm> clusters);

}  // namespace specdec::estimate
