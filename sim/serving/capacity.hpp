#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cost/iteration_cost.hpp"
#include "analysis/planning/steady_state.hpp"
#include "sim/serving/serving_simulation.hpp"

/// How much a deployment can serve, and what that costs, with and without speculation.
namespace specdec::sim {

/// A law of lengths in tokens: constant, geometric-like with a coefficient of variation, or as recorded.
struct LengthLaw {
  double mean = 1;
  /// Standard deviation / mean of a log-normal law rounded to whole tokens, >= 0; 0 for a constant.
  double variation = 0;
};

/// What reaches the service.
struct Workload {
  /// Of all replicas, > 0; nothing where only the sustainable load is asked for.
  std::optional<double> requests_per_second = {};
  LengthLaw prompt_tokens, output_tokens;
  /// Where not empty: lengths, and gaps between arrivals scaled to the rate, are taken from these.
  std::vector<SimulatedRequest> recorded = {};
  /// Requests of a simulated run, >= 100.
  std::int64_t requests = 2000;
};

/// One way to deploy.
struct CapacityScenario {
  /// "plain", "gamma 3", "schedule".
  std::string name;
  ServingEngine engine;
};

struct CapacityLimits {
  std::optional<double> ttft_seconds, tpot_seconds;
  /// Of the requests, at which both must hold, (0, 100).
  double percentile = 99;
};

struct CapacityQuestion {
  Workload workload;
  std::shared_ptr<const cost::IterationCost> cost;
  /// Empty where no scenario drafts.
  std::vector<RequestAcceptance> acceptance;
  std::vector<CapacityScenario> scenarios;
  CapacityLimits limits;
  std::int64_t gpus_per_replica = 1;
  /// Nothing: as many as the load needs.
  std::optional<std::int64_t> replicas = {};
  std::optional<double> price_per_gpu_hour = {};
  std::optional<double> watts_per_gpu = {};
  /// Independent simulated runs behind each figure, >= 2.
  std::int64_t replications = 4;
  std::uint64_t seed = 0;
  int threads = 0;
};

/// A mean over replications with the 95% interval of Student's t.
struct SimulatedValue {
  double value = 0;
  double lo = 0, hi = 0;
};
struct SimulatedPercentiles {
  SimulatedValue p50, p90, p99;
};

/// At the load asked for if there is one and it can be met, else at the sustainable one.
struct ScenarioCapacity {
  CapacityScenario scenario;
  /// Largest arrival rate of one replica at which both percentiles hold and the queue does not grow; 0 where none does.
  SimulatedValue requests_per_second_per_replica;
  planning::CapacityLimit limited_by = planning::CapacityLimit::none;
  /// Arrival rate of one replica that the figures below are for.
  double at_requests_per_second = 0;
  SimulatedPercentiles ttft_seconds, tpot_seconds;
  SimulatedValue mean_batch, output_tokens_per_second_per_replica;
  double preemptions_per_request = 0;
  /// Nothing where no rate is sustainable, or, for cost and energy, no price and no power is known.
  std::optional<std::int64_t> replicas, gpus;
  std::optional<double> cost_per_million_tokens, joules_per_token;
  /// Both engines at the same load, where the formulas apply.
  std::optional<planning::SteadyState> steady;
  std::optional<double> engines_relative_difference;
};

struct CapacityAnswer {
  std::vector<ScenarioCapacity> scenarios;
  /// Place of the cheapest that meets the limits: fewest GPUs, then the shortest time per token.
  std::optional<std::size_t> recommended;
  /// Places of scenarios that no other beats in both cost (GPUs where there is no price) and time per token, by cost.
  std::vector<std::size_t> frontier;
};

/// Answers the question by simulation: the sustainable load of each scenario by bisection over the arrival rate, with
/// the same requests and random numbers for all scenarios and rates, so that differences are due to the scenarios.
/// Scenarios are compared at equal arrival rate.
/// Source:   docs/capacity.md
/// @throws std::domain_error, std::invalid_argument
CapacityAnswer plan_capacity(const CapacityQuestion& question);

}  // namespace specdec::sim
