#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "planner/load/capacity.hpp"
#include "render/figures/chart.hpp"
#include "sim/serving/capacity_worlds.hpp"

namespace specdec::render {

/// A way of decoding over the loads of one replica.
struct ScenarioOverLoads {
  std::string name;
  bool is_plain = false;
  /// In increasing order; intervals include the errors of simulation, cost and acceptance.
  std::vector<sim::ReplicaAtLoad> points;
  /// The load above which a replica's queue grows.
  sim::SimulatedValue saturated;
};

/// The ways of decoding that figures over loads show: plain, in the layout that it is compared in, and the recommended
/// speculative one, else the one that takes most. Plans a capacity without the load that is requested, and simulates
/// their times.
/// @param capacity  of its own answer only the layout of plain decoding is used
/// @param loads  number of loads of a replica at which its times are simulated, up to the scenario's limit; 0 for none
/// @throws as sim::replica_at_loads
std::vector<ScenarioOverLoads> scenarios_over_loads(const planner::Capacity& capacity, std::size_t loads);

/// Time per output token against cost per million tokens, load by load.
/// @param who  the subject: "llama-3.3-70b on 4 h100-sxm"
/// @throws planner::QuestionError without a price
Chart cost_and_time_chart(const planner::Capacity& capacity, const std::string& who, std::size_t loads = 8);

}  // namespace specdec::render
