#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <numbers>
#include <string_view>

#include "analysis/cost/roofline_cost.hpp"

namespace specdec::cost {

// A header of the library's own sources; it is not installed.

inline constexpr double least_normal = std::numeric_limits<double>::min();

/// Places in RooflineCost::Losses.
enum LossPlace : std::size_t { bandwidth, compute, latency, launch, scheduling, draft_launch, layer, link };
inline constexpr std::array<std::string_view, 8> loss_names = {
    "bandwidth_efficiency", "compute_efficiency", "all_reduce_latency_seconds",
    "launch_seconds",       "scheduling_seconds", "draft_launch_seconds",
    "layer_seconds",        "link_efficiency"};

inline bool is_efficiency(std::size_t place) { return place <= compute || place == link; }

/// Null for a draft_launch that is the launch of every pass.
inline const UncertainValue* loss_at(const RooflineLosses& losses, std::size_t place) {
  using Losses = RooflineLosses;
  constexpr std::array<UncertainValue Losses::*, 8> members = {
      &Losses::bandwidth_efficiency, &Losses::compute_efficiency, &Losses::all_reduce_latency_seconds,
      &Losses::launch_seconds,       &Losses::scheduling_seconds, nullptr,
      &Losses::layer_seconds,        &Losses::link_efficiency};
  if (place == draft_launch) return losses.draft_launch_seconds ? &*losses.draft_launch_seconds : nullptr;
  return &(losses.*members[place]);
}

inline bool is_range(const UncertainValue* loss) { return loss != nullptr && loss->low < loss->high; }

/// Point errors are drawn at 1, r, r^2, ... positions, ln r being this, up to 2^17.
inline constexpr std::size_t point_nodes_per_octave = 8, point_nodes = 17 * point_nodes_per_octave + 1;
inline constexpr double point_step = std::numbers::ln2 / point_nodes_per_octave;

/// Decoded in an iteration, at least 1.
inline double positions_of(const Iteration& iteration) { return std::max(1.0, iteration.decoded_positions()); }

/// The round alone, as an iteration.
/// @throws std::domain_error if a value is outside its range
Iteration iteration_of(const RoundPoint& point);

}  // namespace specdec::cost
