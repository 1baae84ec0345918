#pragma once

#include <cstddef>
#include <optional>
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
/// speculative one, else the one that takes most.
struct LoadChartInputs {
  std::vector<ScenarioOverLoads> scenarios;
  std::optional<double> price_per_gpu_hour;
  /// The simulation behind the figures: "4 runs of 500 requests".
  std::string runs;
  std::string who;
};

/// Plans a capacity without the load that is requested, and simulates the times of the scenarios shown over loads;
/// `who` is left out.
/// @param capacity  of its own answer only the layout of plain decoding is used
/// @param loads  number of loads of a replica at which its times are simulated, up to the scenario's limit; 0 for none
/// @throws as sim::replica_at_loads
LoadChartInputs load_chart_inputs(const planner::Capacity& capacity, std::size_t loads);

/// Time per output token against cost per million tokens, load by load. @throws planner::QuestionError without a price
Chart cost_and_time_chart(const LoadChartInputs& inputs);

}  // namespace specdec::render
