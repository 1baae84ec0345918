#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/planning/kv_memory.hpp"
#include "planner/acceptance.hpp"
#include "planner/cost.hpp"
#include "sim/serving/capacity_range.hpp"

/// How much load a deployment takes, and how many GPUs a load needs. Component `load`.
namespace specdec::planner {

/// What is asked of an acceptance and a cost in seconds. Members are what the options of `specdec capacity` of that
/// name say.
struct CapacityQuestion {
  /// Requests: their lengths, or those that were recorded; `requests_per_second` is `arrival_rate`.
  sim::Workload workload = {};
  /// Requests/s of all replicas, > 0; empty: that of the recorded requests, else what one replica can take is answered.
  std::optional<double> arrival_rate = {};
  /// Instead: requests that clients keep in flight, taken as the rate at which plain decoding serves them.
  std::optional<std::int64_t> concurrency = {};
  /// Share of the prompts that is found in the cache, [0, 1).
  double prefix_cache_hit_rate = 0;
  /// Prompts are computed elsewhere.
  bool decode_only = false;
  /// Standard deviation of a Beta law of the rate over requests, each of which keeps its own.
  std::optional<double> alpha_spread = {};

  /// Accelerators of a replica where hardware does not price it; 1 where it is not given.
  std::optional<std::int64_t> tensor_parallel = {};
  std::optional<double> prefill_tokens_per_second = {};
  std::optional<std::int64_t> replicas = {};
  /// Per GPU and hour.
  std::optional<double> price = {};
  std::optional<double> watts_per_gpu = {};

  double gpu_memory_utilization = 0.9;
  double activation_reserve_gb = 0;
  /// Where hardware does not know the memory; needed there.
  std::optional<std::int64_t> kv_cache_tokens = {};
  std::int64_t block_size = 16;
  /// Each is a scenario, rising.
  std::vector<std::int64_t> max_num_seqs = {256};
  std::int64_t max_num_batched_tokens = 8192;

  /// Compared beside plain decoding, rising, each in [1, 64]; empty: 1 to 8 where there are an acceptance and no
  /// schedule.
  std::optional<std::vector<std::int64_t>> gamma = {};
  std::vector<planning::ScheduleStretch> schedule = {};

  /// Limits on the percentile of requests.
  std::optional<double> ttft_ms = {};
  std::optional<double> tpot_ms = {};
  double percentile = 99;

  std::int64_t replications = 4;
  std::int64_t seed = 0;
  std::int64_t threads = 1;

  /// The largest gamma of any scenario; 0 where nothing drafts.
  std::int64_t largest_gamma(bool has_acceptance) const;
};

/// The cache of one scenario.
struct ScenarioMemory {
  /// Tokens that it holds, and those left where every sequence has its look-ahead slots.
  std::int64_t tokens = 0, left_tokens = 0;
  /// Empty where kv_cache_tokens says the tokens.
  std::optional<planning::KvMemory> memory;
};

/// What each scenario takes and needs.
struct Capacity {
  CapacityQuestion question;
  /// What is simulated.
  sim::CapacityQuestion simulation;
  sim::CapacityRange range;
  /// The acceptances at the ends of its interval; empty where it is taken as exact.
  std::vector<std::vector<sim::RequestAcceptance>> acceptance_ends;
  /// [scenario]
  std::vector<ScenarioMemory> memory;
  /// Why the runs that price rounds cannot have been as they say; empty where nothing says so.
  std::string impossible;
  /// "alpha 0.8", "counters of m (vllm metrics)"; empty where nothing drafts.
  std::string acceptance;
  /// It is a range of alpha, or lacks sampling error, so that what holds it is no 95% interval.
  bool is_range = false;
  /// Requests or sequences with a law of their own, where there is more than one; 0 otherwise.
  std::size_t acceptance_laws = 0;
  /// The longest draft that acceptance was measured at, up to the largest gamma compared.
  std::int64_t measured_gamma = 0;
  /// The shortest one.
  std::int64_t measured_from = 1;
  /// Where the cost is a roofline: whether timed iterations narrowed its losses.
  std::optional<bool> calibrated;
  /// What a server is asked for by: the target's name, and the engine that counted where one did.
  std::string served_model, engine;
  /// The rate at which `concurrency` is served.
  std::optional<sim::SimulatedValue> rate_of_concurrency;
  std::vector<std::string> files;
  std::vector<UsedPreset> presets;
  std::vector<Assumption> assumptions;
  std::vector<Note> warnings;

  const sim::CapacityAnswer& answer() const { return range.answer; }
  const std::vector<sim::ScenarioCapacity>& scenarios() const { return range.answer.scenarios; }
  /// The best place without speculation: of the fewest GPUs, else of the largest sustainable load.
  std::size_t plain() const;
  bool asks_for_load() const { return simulation.workload.requests_per_second.has_value(); }
  /// Outside of what its acceptance was measured at, to either side.
  bool is_extrapolated(std::size_t i) const;
  bool has_extrapolated() const;
  /// The drafts that acceptance was measured over: "4", or "3 to 6" with " to " between the two.
  std::string measured_gammas(std::string_view to) const;
  bool has_limits() const { return simulation.limits.ttft_seconds || simulation.limits.tpot_seconds; }
  /// The run that would tell most; empty where nothing is uncertain, or calibration was given what it takes.
  std::optional<sim::CapacityDoubt> doubt() const;
  /// The scenario whose two engines are compared: the recommended one, else the plain one.
  std::size_t shown() const { return answer().recommended.value_or(plain()); }
};

/// Told of the share that is done, [0, 1].
using CapacityProgress = std::function<void(double)>;

/// Compares plain decoding with every gamma asked for, by simulation.
/// @param acceptance  empty: nothing drafts
/// @throws QuestionError for a value outside its range, a model that does not fit, or a cost without seconds
Capacity capacity(const std::optional<Acceptance>& acceptance, const Cost& cost, const CapacityQuestion& question,
                  const CapacityProgress& progress = {});
/// The same without the simulation, whose answer `range` is left empty; only the rate of `concurrency` is simulated.
Capacity asked_capacity(const std::optional<Acceptance>& acceptance, const Cost& cost,
                        const CapacityQuestion& question);

/// The gamma of all batches; empty where a schedule has several.
std::optional<std::int64_t> gamma_of(const sim::CapacityScenario& scenario);

/// What measures it.
std::string benchmark_command(const Capacity& capacity, const sim::CapacityDoubt& doubt);

}  // namespace specdec::planner
