#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "analysis/cost/iteration_cost.hpp"
#include "analysis/planning/steady_state.hpp"
#include "sim/serving/serving_simulation.hpp"

/// The load that a deployment can serve, and its cost, with and without speculation.
namespace specdec::sim {

/// A law of lengths in tokens.
struct LengthLaw {
  /// [1, 1e7]
  double mean = 1;
  /// Standard deviation / mean of a log-normal law rounded to whole tokens, [0, 10]; 0 for a constant.
  double variation = 0;
  /// Longer ones are truncated to this, >= 1.
  std::optional<std::int64_t> at_most = {};
};

/// The load on the service.
struct Workload {
  /// Rate over all replicas, > 0; empty if only the sustainable load is requested.
  std::optional<double> requests_per_second = {};
  /// If given, in place of a rate: clients over all replicas, >= 1, evenly, each of which keeps one request in flight.
  std::optional<std::int64_t> clients = {};
  /// Seconds of each request outside the engine, >= 0, as in ServingQuestion.
  double outside_seconds = 0;
  LengthLaw prompt_tokens, output_tokens;
  /// If not empty: two or more, not all at one time. Lengths, and gaps between arrivals scaled to the rate, are
  /// taken from these cyclically; replication r of R starts r/R of the way in.
  std::vector<SimulatedRequest> recorded = {};
  /// Requests of a simulated run, [100, 1e6]; empty: 1000, or 10 for each sequence that decodes on average, up to 8000;
  /// with clients what benchmark clients send, 10 for each of a replica's clients.
  std::optional<std::int64_t> requests = {};

  /// Requests of a run without clients in which few decode.
  std::int64_t open_requests() const { return requests.value_or(1000); }
  /// Mean tokens in the cache of a sequence halfway through its output.
  double middle_context() const;
};

/// One way to deploy.
struct CapacityScenario {
  /// "plain", "gamma 3", "schedule".
  std::string name;
  ServingEngine engine;
};

struct CapacityLimits {
  /// > 0
  std::optional<double> ttft_seconds, tpot_seconds;
  /// The percentile of requests at which both must hold, (0, 100).
  double percentile = 99;
};

/// The load of one replica: requests/s, or, above 0, so many clients.
struct ReplicaLoad {
  double requests_per_second = 0;
  std::int64_t clients = 0;
};

struct CapacityQuestion {
  Workload workload;
  /// Non-null.
  std::shared_ptr<const cost::IterationCost> cost;
  /// Empty if no scenario drafts.
  std::vector<RequestAcceptance> acceptance;
  /// At least one.
  std::vector<CapacityScenario> scenarios;
  CapacityLimits limits;
  std::int64_t gpus_per_replica = 1;
  /// Empty: as many as the load needs.
  std::optional<std::int64_t> replicas = {};
  /// False: of a rate that limits stop only the value is found, not its interval, which is then the value alone.
  bool finds_rate_intervals = true;
  /// If given, figures are for this load of each scenario's replica, whether or not it is within the limits.
  std::optional<ReplicaLoad> figures_at = {};
  std::optional<double> price_per_gpu_hour = {};
  /// Independent simulated runs behind each figure, [1, 1000]; one leaves the interval of a figure at its value.
  std::int64_t replications = 8;
  std::uint64_t seed = 0;
  /// >= 1; results do not depend on it.
  std::int64_t threads = 1;
};

/// A mean over replications, or a figure of all their requests together, with the 95% interval from the replications'
/// own values.
struct SimulatedValue {
  double value = 0;
  double lo = 0, hi = 0;
};
struct SimulatedPercentiles {
  SimulatedValue p50, p90, p99, mean;
  /// At the percentile of the limits.
  SimulatedValue asked;

  std::array<SimulatedValue*, 5> all() { return {&p50, &p90, &p99, &mean, &asked}; }
  std::array<const SimulatedValue*, 5> all() const { return {&p50, &p90, &p99, &mean, &asked}; }
};

/// The end of the search for the largest rate, from which the search under another cost or acceptance begins.
struct RateSearchEnd {
  /// ln(seconds per output token) by formulas, and a tenth of ln(requests/s).
  double expected = 0;
  /// d ln(percentile / limit) / d expected, > 0.
  double slope = 1;
};

/// One replica of a scenario at a load, whether or not it meets limits.
struct ReplicaAtLoad {
  /// Of arrivals at the replica, or the rate at which clients are served.
  SimulatedValue at_requests_per_second;
  /// Empty if no request has one (tpot: if none has two tokens). With clients the mean of ttft_seconds is over all
  /// requests, as benchmark clients print it; all else leaves out the first of each client.
  std::optional<SimulatedPercentiles> ttft_seconds, tpot_seconds;
  /// Pauses between two outputs of a request, the tokens of a round being one output; empty if there are none.
  std::optional<SimulatedPercentiles> gap_seconds;
  SimulatedValue mean_batch, output_tokens_per_second;
  double preemptions_per_request = 0;
  /// Its accelerators' time / the requested output tokens.
  double gpu_seconds_per_token = 0;
  /// Empty without a price.
  std::optional<double> cost_per_million_tokens;
};

/// The figures of a replica are at figures_at, if given, else at the requested load if there is one and it can be met,
/// else at the sustainable one: without limits and load at nine tenths of that, since at the bound itself waiting times
/// have no steady value. They are 0 and empty if nothing can be served, or if it is overloaded.
///
/// gpu_seconds_per_token and the cost are those of all replicas and the output tokens of all. Clients that do not share
/// evenly leave some replicas with less work than the fullest; these are taken to serve in proportion to their
/// clients, which overestimates the time where batching makes up for fewer.
struct ScenarioCapacity : ReplicaAtLoad {
  CapacityScenario scenario;
  /// Largest arrival rate of one replica at which both percentiles hold and the queue does not grow; 0 if none.
  SimulatedValue requests_per_second_per_replica;
  planning::CapacityLimit limited_by = planning::CapacityLimit::none;
  /// Empty with clients, and if no limit of time stops the rate.
  std::optional<RateSearchEnd> search_end;
  /// Rate at which one replica serves requests while requests always wait: the bound above which its queue grows.
  SimulatedValue saturated_requests_per_second_per_replica;
  /// That over what the formulas expect; empty where these do not apply.
  std::optional<double> saturated_over_expected;
  /// With clients: the most of them, up to all, that one replica serves within the limits, and those of the fullest
  /// replica, which the figures are for, within the limits or not; else 0.
  std::int64_t clients_within_limits = 0, at_clients = 0;
  /// Sequences together at requests_per_second_per_replica, by Little's law, or with clients_within_limits; 0 where
  /// that is. It depends neither on the load asked for nor on the number of replicas.
  double largest_mean_batch = 0;
  /// True if the limits can be met, and the given replicas, if any, take the requested load, if any.
  bool meets_load = false;
  /// True if figures_at asks for a rate above the saturated one, at which the queue grows.
  bool overloaded = false;
  /// Empty if no rate is sustainable.
  std::optional<std::int64_t> replicas, gpus;
};

struct CapacityAnswer {
  /// Those of the question; if it was interrupted, the first ones of them.
  std::vector<ScenarioCapacity> scenarios;
  bool interrupted = false;
  /// Index of the cheapest that meets the load: fewest GPUs per token, then the shortest median time per token.
  std::optional<std::size_t> recommended;
  /// Scenarios that no other beats in both GPUs per token (and so cost) and median time per token, sorted by cost.
  std::vector<std::size_t> frontier;
};

/// Answers the question by simulation: the sustainable load of each scenario by a search over the arrival rate, with
/// the same requests and random numbers for all scenarios and rates, so that differences are due to the scenarios.
/// Scenarios are compared at equal arrival rate, or, with clients, at as many of them, and the search is over their
/// number at one replica. Limits are held by all but the first request of each client, which come at once.
/// Source:   docs/theory.md#sustainable-load
/// Accuracy: the search ends within 1% of the rate; the intervals include the random error
/// @param hooks  an interrupted run gives the scenarios that were finished, perhaps none
/// @throws std::domain_error, std::invalid_argument
CapacityAnswer plan_capacity(const CapacityQuestion& question, const core::RunHooks& hooks = {});

/// Replicas that share a load, and the median seconds per output token of their requests.
struct SharedLoad {
  std::int64_t replicas = 0;
  double median_tpot_seconds = 0;
};
/// The fewest replicas that share the load of a question without clients within its limits, in its first scenario: what
/// plan_capacity finds by the largest load, by runs of whole numbers of replicas alone.
/// @param most  replicas
/// @return empty if not even so many do, or if the run was interrupted  @throws as plan_capacity
std::optional<SharedLoad> fewest_replicas(const CapacityQuestion& question, std::int64_t most,
                                          const core::RunHooks& hooks = {});

/// The inputs of the formulas for one replica of a scenario; its load's rate is not set.
struct ScenarioFormulas : planning::LoadedReplica {
  /// Without limits on times. Empty if the formulas do not apply; with a budget that of all drafts verified.
  std::optional<planning::SustainableLoad> saturation;
};

/// The same requests as those of plan_capacity, without a simulation.
/// @return [scenario]
/// @throws as plan_capacity
std::vector<ScenarioFormulas> scenario_formulas(const CapacityQuestion& question);

/// A replica of the question's scenario number `scenario` in steady state at a load, by the formulas.
/// @return empty where they do not apply: with a budget, to requests of one token, and where the queue grows
/// @throws std::out_of_range unless the scenario exists; else as plan_capacity
std::optional<planning::SteadyState> steady_at(const CapacityQuestion& question, std::size_t scenario,
                                               const ReplicaLoad& load);

/// Simulates one replica of the question's scenario number `scenario` at each load, with the same requests and random
/// numbers for all of them, those of plan_capacity. Limits, replicas and the load of the workload are ignored.
/// Source:   docs/theory.md#simulation
/// @param loads  requests/s, each > 0
/// @return [load]; percentiles above the saturated rate are those of a growing queue, and depend on the run's length
/// @throws std::out_of_range unless the scenario exists; else as plan_capacity
std::vector<ReplicaAtLoad> replica_at_loads(const CapacityQuestion& question, std::size_t scenario,
                                            std::span<const double> loads);

/// The fewest requests of a run without clients whose batch, of so many sequences on average, fills before they count.
/// Source:   docs/theory.md#sustainable-load
double least_requests(double mean_batch);

/// True if nothing is drafted at any batch.
bool is_plain(const CapacityScenario& scenario);

}  // namespace specdec::sim
