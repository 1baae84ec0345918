#pragma once

#include <vector>

#include "analysis/estimate/cluster_ratio.hpp"
#include "analysis/estimate/merging_cells.hpp"
#include "analysis/estimate/round_moments.hpp"
#include "analysis/estimate/unit_counts.hpp"

/// Clusters of rounds. Internal to analysis/estimate.
namespace specdec::estimate {

/// One cluster: a request, a run, an instance, or some windows of time.
struct ClusterSums {
  double rounds = 0, accepted = 0;
  /// Sums of units that give both.
  double drafted = 0, accepted_of_drafted = 0;
  /// Sums of units that determine alpha.
  double tried_accepted = 0, least_rejections = 0, most_rejections = 0;
  /// Sums of units with a histogram: rounds, and rounds whose draft j was accepted.
  double rounds_with_positions = 0;
  std::vector<double> accepted_at;
  /// Sums of units that count the examined drafts.
  std::vector<double> evaluated_accepted_at, evaluated_at;

  void set(const UnitCounts& unit);
  /// A mean over an unknown number of rounds: counts as one round.
  void set_mean(double tokens_per_round);
  void add(const ClusterSums& other);
};

/// Sums and squares over clusters.
struct ClusterTally {
  ClusterMoments accepted_per_round, accepted_per_drafted;
  /// Accepted / (accepted + rejections), with the most and the least rejections.
  ClusterMoments alpha_low, alpha_high;
  /// [j - 1]: rounds whose draft j was accepted / rounds.
  std::vector<ClusterMoments> survival;
  RoundMoments moments;

  void add(const ClusterSums& cluster);
  /// Clusters are consecutive windows.
  void resemble(const NeighbourCorrelation& neighbours);

 private:
  ClusterMoments none_accepted_;  // the value of `survival` for a position that no cluster has reached so far
};

/// Whether clusters differ by so much less than independent rounds do, by a fifth of the variance, which one of 2,500
/// sets of 16 does, that they do not tell what rounds differ by: counts that were made up, or spread evenly.
inline bool too_alike(const Interval& by_clusters, const Interval& of_independent_rounds) {
  constexpr double least_share_of_width = 0.45;
  return by_clusters.hi - by_clusters.lo < least_share_of_width * (of_independent_rounds.hi - of_independent_rounds.lo);
}

/// The windows of one series: 20 to 40 cells once there are as many.
using WindowCells = MergingCells<ClusterSums, 40>;

}  // namespace specdec::estimate
