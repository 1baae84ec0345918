#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "analysis/planning/kv_memory.hpp"
#include "analysis/worlds/choice.hpp"
#include "planner/acceptance.hpp"
#include "planner/cost.hpp"
#include "planner/load/layouts.hpp"
#include "planner/question_error.hpp"
#include "sim/serving/capacity_worlds.hpp"

/// The load that a deployment can take, and the GPUs that a load needs. Component `load`.
namespace specdec::planner {

/// A question about an acceptance and a cost in seconds. Members correspond to the options of `specdec capacity` of the
/// same name.
struct CapacityQuestion {
  /// Requests: their lengths, or recorded ones; `requests_per_second` is given by `arrival_rate`.
  sim::Workload workload = {};
  /// Requests/s of all replicas, > 0; if empty, that of the recorded requests, else the most of one replica.
  std::optional<double> arrival_rate = {};
  /// Alternative: clients over all replicas, each of which sends its next request once its last one has ended.
  std::optional<std::int64_t> concurrency = {};
  /// Milliseconds of each request outside the engine, on its way there and back, >= 0.
  double outside_ms = 0;
  /// Share of the prompts' tokens that is found in the cache, [0, 1).
  double prefix_cache_hit_rate = 0;
  /// The number of distinct prefixes of which that share is, on a replica; if empty, each request has its own.
  std::optional<std::int64_t> shared_prefixes = {};
  /// Prompts are computed elsewhere.
  bool decode_only = false;
  /// Standard deviation of a Beta law of the rate over requests, each of which keeps its own rate.
  std::optional<double> alpha_spread = {};

  /// Accelerators that there are: the layout of the target on them, or on some, is searched for, as far as the cost
  /// does not state it. Needs hardware.
  std::optional<std::int64_t> gpus = {};
  /// Accelerators of a replica if hardware does not price it; 1 if not given.
  std::optional<std::int64_t> tensor_parallel = {};
  std::optional<double> prefill_tokens_per_second = {};
  std::optional<std::int64_t> replicas = {};
  /// Price per GPU and hour.
  std::optional<double> price = {};

  double gpu_memory_utilization = 0.9;
  /// Empty: by the model's shape, planning::usual_reserve.
  std::optional<double> activation_reserve_gb = {};
  /// Required if the hardware's memory is unknown.
  std::optional<std::int64_t> kv_cache_tokens = {};
  /// One scenario for each, in increasing order.
  std::vector<std::int64_t> max_num_seqs = {256};
  std::int64_t max_num_batched_tokens = 8192;
  /// Prompts are computed in iterations of their own, before rounds.
  bool prefill_first = false;

  /// Compared with plain decoding, in increasing order, each in [1, 64]; if empty, 1 to 8 if there are an acceptance
  /// and no schedule.
  std::optional<std::vector<std::int64_t>> gamma = {};
  std::vector<planning::ScheduleStretch> schedule = {};
  /// Beside each way that drafts, the same with a budget of verified drafts over the batch.
  bool verification_budget = false;

  /// Limits on the percentile of requests.
  std::optional<double> ttft_ms = {};
  std::optional<double> tpot_ms = {};
  double percentile = 99;

  std::int64_t replications = 4;
  std::int64_t seed = 0;
  std::int64_t threads = 1;

  /// The largest gamma of any scenario; 0 if nothing drafts.
  std::int64_t largest_gamma(bool has_acceptance) const;
};

/// The legal values of the question's members.
struct CapacityRanges {
  static constexpr LegalRange positive = {.hi = 1e12, .lo_open = true};
  static constexpr LegalRange count = {.lo = 1, .hi = 1 << 30};
  LegalRange arrival_rate = {.lo = 1e-6, .hi = 1e12};
  LegalRange concurrency = count;
  LegalRange outside_ms = {.hi = 1e9};
  LegalRange prefix_cache_hit_rate = {.hi = 0.999999};
  LegalRange shared_prefixes = count;
  LegalRange alpha_spread = {.lo = 1e-4, .hi = 0.5};
  LegalRange gpus = {.lo = 1, .hi = 4096};
  LegalRange tensor_parallel = {.lo = 1, .hi = 1024};
  LegalRange prefill_tokens_per_second = positive;
  LegalRange replicas = count;
  LegalRange price = positive;
  LegalRange gpu_memory_utilization = {.hi = 1, .lo_open = true};
  LegalRange activation_reserve_gb = {.hi = 1e12};
  LegalRange kv_cache_tokens = {.lo = 1, .hi = 1099511627776};
  LegalRange max_num_seqs = {.lo = 1, .hi = 65536};
  LegalRange max_num_batched_tokens = count;
  LegalRange gamma = {.lo = 0, .hi = 64};
  LegalRange ttft_ms = positive;
  LegalRange tpot_ms = positive;
  LegalRange percentile = {.lo = 1, .hi = 99.99};
  LegalRange replications = {.lo = 2, .hi = 1000};
  LegalRange num_requests = {.lo = 100, .hi = 1e6};
  LegalRange seed = {.hi = 9e18};
  LegalRange threads = {.lo = 1, .hi = 1024};
};
inline constexpr CapacityRanges capacity_ranges = {};

/// The cache of one scenario.
struct ScenarioMemory {
  /// Tokens that it holds, and those left if every sequence has its look-ahead slots.
  std::int64_t tokens = 0, left_tokens = 0;
  /// Empty if kv_cache_tokens gives the number.
  std::optional<planning::KvMemory> memory;
};

/// The best scenario with a budget of verified drafts, against the best with one gamma for all batches, plain decoding
/// among them.
struct BudgetGain {
  std::size_t budget = 0, fixed = 0;
  /// Requests/s of one replica, budget / fixed - 1: the most that it takes, or with clients those that are served.
  double relative = 0;
};

/// The load and the needs of each scenario.
struct Capacity : Provenance {
  CapacityQuestion question;
  /// The question for the simulation.
  sim::CapacityQuestion simulation;
  sim::CapacityInWorlds in_worlds;
  /// The layouts that were tried; empty if the layout was given.
  std::optional<LayoutSearch> layouts;
  /// Plain decoding in the layout that is best for it, in the same worlds; null if drafts are not recommended, or that
  /// layout is this one, or none is within the limits and the accelerators.
  std::shared_ptr<const Capacity> plain_elsewhere;
  /// The cost and the acceptance in every world.
  std::vector<sim::CapacityWorld> worlds;
  /// [scenario]
  std::vector<ScenarioMemory> memory;
  /// [scenario]: true if a round at its mean batch, or plain decoding there, lies outside of what was measured.
  std::vector<bool> price_extrapolated;
  /// [scenario]: the same at its largest load.
  std::vector<bool> largest_extrapolated;
  /// True if it was interrupted: scenarios, or their worlds, are missing, and nothing is decided.
  bool partial = false;
  /// True if more GPUs are needed than the question's `gpus`.
  bool exceeds_gpus = false;
  /// The reason why the runs that price rounds cannot have been as stated; empty if there is none.
  std::string impossible;
  /// "alpha 0.8", "counters of m (vllm metrics)"; empty if nothing drafts.
  std::string acceptance;
  /// True if it is a range of alpha, or lacks sampling error, so that intervals are not 95% intervals.
  bool is_range = false;
  /// Number of requests or sequences with a law of their own, if more than one; 0 otherwise.
  std::size_t acceptance_laws = 0;
  /// True if timed iterations told the deployment's errors; empty if the cost is not a roofline.
  std::optional<bool> calibrated;
  /// Names for a server: that of the target, and of the engine that counted, if one did.
  std::string served_model, engine;
  cost::DraftKind draft_kind = cost::DraftKind::model;

  const sim::CapacityAnswer& answer() const { return in_worlds.answer; }
  const std::vector<sim::ScenarioCapacity>& scenarios() const { return in_worlds.answer.scenarios; }
  /// The index of the best scenario without speculation: with the fewest GPUs, else with the largest sustainable load.
  std::size_t plain() const;
  /// The answer in the layout that plain decoding is compared in.
  const Capacity& of_plain() const { return plain_elsewhere ? *plain_elsewhere : *this; }
  /// Its best scenario without speculation.
  const sim::ScenarioCapacity& plain_scenario() const { return of_plain().scenarios()[of_plain().plain()]; }
  /// The recommended scenario, or if that is plain decoding the drafting one with the largest load, against
  /// plain_scenario(): the accelerators that both need in all worlds.
  sim::GpuShares gpus_against_plain() const;
  /// What a comparison is of: accelerators, unless drafts are recommended and need as many by the estimate, or no
  /// number is asked for; then times per token, if both take the load; else the largest loads of an accelerator.
  enum class Compared { gpus, times, loads };
  Compared compared() const;
  /// The share of worlds in which it needs fewer, or is better by at least 5%.
  double share() const;
  /// Without a load, on the accelerators given: requests/s that as many replicas as they hold take together, each as
  /// much as one of the scenario. Empty otherwise.
  std::optional<double> requests_per_second_together(std::size_t i) const;
  /// The replicas of this layout that the accelerators given hold.
  std::int64_t replicas_that_fit() const;
  bool asks_for_load() const { return simulation.workload.requests_per_second || simulation.workload.clients; }
  /// True if the answer is the largest load, of a replica or of those given, and not a number of GPUs.
  bool answers_largest_load() const { return !asks_for_load() || simulation.replicas; }
  /// True if the answer rests on prices of this scenario outside of what was measured.
  bool rests_on_extrapolated(std::size_t i) const {
    return price_extrapolated[i] || (answers_largest_load() && largest_extrapolated[i]);
  }
  /// How sure it is that drafting gains; open if it is partial, no if nothing drafts,
  /// empty if nothing serves.
  std::optional<worlds::Certainty> certainty() const;
  bool has_limits() const { return simulation.limits.ttft_seconds || simulation.limits.tpot_seconds; }
  /// Empty without a budget, or where the fixed ones serve nothing.
  std::optional<BudgetGain> budget_gain() const;
  /// The most informative next run; empty if nothing is uncertain, or calibration was given all that it takes.
  std::optional<sim::CapacityDoubt> doubt() const;
  /// The scenario whose two engines are compared: the recommended one, else the plain one.
  std::size_t shown() const { return answer().recommended.value_or(plain()); }

 private:
  /// The scenario shown if it drafts, else the one of those that do with the largest load.
  std::size_t drafting() const;
};

/// Compares plain decoding with every requested gamma, by simulation.
/// @param acceptance  empty: nothing drafts
/// @param hooks  an interrupted run gives the scenarios that were finished
/// @throws QuestionError for a value outside its range, a model that does not fit, or a cost without seconds, or if the
///   run was interrupted before a scenario was finished
Capacity capacity(const std::optional<Acceptance>& acceptance, const Cost& cost, const CapacityQuestion& question,
                  const core::RunHooks& hooks = {});
/// The same without the simulation, whose answer `in_worlds` is left empty.
Capacity asked_capacity(const std::optional<Acceptance>& acceptance, const Cost& cost,
                        const CapacityQuestion& question);

/// The gamma of all batches; empty if a schedule has several.
std::optional<std::int64_t> gamma_of(const sim::CapacityScenario& scenario);

/// The command that measures it.
std::string benchmark_command(const Capacity& capacity, const sim::CapacityDoubt& doubt);

}  // namespace specdec::planner
