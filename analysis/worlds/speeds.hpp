#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/estimate.hpp"

/// What is uncertain is a set of worlds: ways things may be. An answer is a figure of each world.
namespace specdec::worlds {

/// A figure of several options in every world.
struct Table {
  /// [option][world]
  std::vector<std::vector<double>> options;
  /// [world]: worlds of one alternative are equally likely; alternatives have no probability.
  std::vector<int> alternative;

  std::size_t worlds() const { return alternative.size(); }
};

/// The middle of a figure's worlds, and the range that holds them.
struct Spread {
  /// The median; of several alternatives the middle between the least and the largest of their medians.
  double middle = 0;
  /// The central 95% of an alternative's worlds; of several the hull.
  estimate::Interval ci95 = {0, 0};
  /// The least and the largest of the alternatives' medians.
  estimate::Interval middles = {0, 0};
};

/// Quantiles are linear between neighbours.
/// Shape: values, alternative (worlds), at least one
/// @throws std::invalid_argument for other sizes
Spread spread_of(std::span<const double> values, std::span<const int> alternative);

/// The share of worlds with at least this value, [0, 1]; of several alternatives the one of their range that is nearest to
/// one half, so that nothing is sure, or sure not to be, that one of them denies.
double share_at_least(std::span<const double> values, std::span<const int> alternative, double least);

/// The rounds whose speeds are compared: gammas 0, 1, 2, ..., or 0 and the depth of a tree.
struct Options {
  /// The first is 0, plain decoding.
  std::vector<std::int64_t> gammas = {0};
  /// [option]: the share of rounds that follow a full accept (cost::RoundPoint).
  std::vector<double> full_accepts = {0};
};

/// A batch and context, with what they cost in every world.
struct PricedWorlds {
  /// [option][world]: tokens per step, seconds of a round or multiples of a plain step, and the speedup
  ///
  ///   tokens(option, world) round(0, world) / round(option, world)
  Table tokens, rounds, speedups;
};

/// The worlds of an acceptance and of a cost, taken together: world i has replicate i modulo their number. A cost
/// without replicates is the same in all.
///
/// @param tokens  of all gammas up to the largest option
/// @throws std::domain_error if a round's time is not positive and finite
PricedWorlds price(const estimate::TokenWorlds& tokens, const cost::RoundCost& cost, const Options& options,
                   double batch, double context);

}  // namespace specdec::worlds
