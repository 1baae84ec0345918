#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/estimate/cluster_ratio.hpp"

namespace specdec::estimate {

/// Conditional rates by position, h_j = accepted_j / evaluated_j, each a ratio of sums over clusters, in memory that
/// does not depend on their number.
class RoundMoments {
 public:
  static constexpr std::int64_t most_positions = 256;

  /// Adds the next cluster; positions that it lacks count as 0.
  /// Shape: accepted, evaluated (positions); positions <= most_positions
  void add(std::span<const double> accepted, std::span<const double> evaluated) {
    if (rates_.size() < accepted.size()) rates_.resize(accepted.size(), nothing_);
    for (std::size_t j = 0; j < rates_.size(); ++j)
      rates_[j].add(j < accepted.size() ? accepted[j] : 0, j < accepted.size() ? evaluated[j] : 0);
    nothing_.add(0, 0);
  }

  std::int64_t clusters() const { return nothing_.clusters(); }
  std::int64_t positions() const { return std::ssize(rates_); }
  /// Sums over clusters; j = 1..positions().
  double accepted(std::int64_t j) const { return at(j).numerator(); }
  double evaluated(std::int64_t j) const { return at(j).denominator(); }
  /// h_j; 0 if no draft was examined.
  double rate(std::int64_t j) const { return evaluated(j) > 0 ? accepted(j) / evaluated(j) : 0; }
  /// Of h_j, whose drafts were examined.
  std::optional<StandardError> standard_error(std::int64_t j) const { return estimate::standard_error(at(j)); }

  /// As ClusterMoments::resemble.
  void resemble(const NeighbourCorrelation& neighbours) {
    for (ClusterMoments& rate : rates_) rate.resemble(neighbours);
  }

 private:
  const ClusterMoments& at(std::int64_t j) const { return rates_[static_cast<std::size_t>(j - 1)]; }

  std::vector<ClusterMoments> rates_;
  ClusterMoments nothing_;  // of a position that no cluster has reached so far
};

}  // namespace specdec::estimate
