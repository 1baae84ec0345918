#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "sim/serving/capacity.hpp"

/// A capacity answer in all worlds: ways the cost and the acceptance may be.
namespace specdec::sim {

/// One way the cost and the acceptance may be. Worlds of one alternative are equally likely; alternatives have no
/// probability.
struct CapacityWorld {
  /// Of the cost, as in cost::IterationCost: 0 is the cost itself, 1 + i its replicate i.
  std::size_t version = 0;
  /// Empty: that of the question.
  std::vector<RequestAcceptance> acceptance = {};
  int alternative = 0;
};

/// The accelerators that the central 95% of worlds need.
struct GpuRange {
  std::int64_t lo = 0, hi = 0;
  /// True if in more than 2.5% of worlds no number of them meets the load.
  bool some_never = false;
};

/// One scenario in all worlds.
struct ScenarioInWorlds {
  /// [world]: requests/s of a replica: the most that it takes, or with clients those that are served.
  std::vector<double> rates;
  /// [world]: 1 / median seconds per output token where the answer's figures are for; 0 where the queue grows there.
  std::vector<double> speeds;
  /// [world]: the accelerators that the load needs, or those of the given replicas; empty where none take it. No worlds
  /// without a load.
  std::vector<std::optional<std::int64_t>> gpus;
  /// Empty without a load, or where no world takes it.
  std::optional<GpuRange> gpu_range;
  /// The worlds that were simulated, and the number of those whose queue grows at the load that figures are for.
  std::vector<std::size_t> simulated;
  std::size_t overloaded = 0;
};

struct CapacityInWorlds {
  /// The question's own, whose intervals hold the worlds, besides the simulation's own error. hi of times and of the
  /// mean batch is infinite if a simulated world's queue grows at the load that the figures are for. `recommended` is
  /// chosen by worlds.
  CapacityAnswer answer;
  std::vector<CapacityWorld> worlds;
  /// [scenario]
  std::vector<ScenarioInWorlds> scenarios;
  /// Of the recommended scenario: the output that the accelerators' time loses against the best scenario of each world,
  /// in the mean over worlds, [0, 1].
  double regret = 0;
  /// True if scenarios are missing, since the run was interrupted: no interval of any figure is then known, so that it
  /// is [0, infinity), and nothing is chosen by worlds.
  bool interrupted = false;

  std::vector<int> alternatives() const;
};

/// The answer in all worlds. In each of them the formulas give what a scenario takes,
///
///   F: the load L at which the formulas expect the time per token that they expect at the answer's own largest load,
///      or the larger sqrt(L R S), R being the answer's own share of its saturated load and S what saturates here, at
///      most S; without limits S; with clients what the mean batch puts out
///
/// and of each scenario and alternative the worlds at 2.5%, 50% and 97.5% of F and at both ends of a prompt's seconds P
/// are simulated once, with the requests and random numbers of the answer. ln(simulated) = a + b ln(F) + c ln(P), all
/// over the answer's own and the same for all scenarios, corrects the other worlds, which get the scatter about it, and
/// the error of the answer's own simulation, as noise, up to what saturates there. Figures at a load hold their values
/// in the simulated worlds.
///
/// Chosen is the answer's own scenario, unless its expected regret in output per accelerator is over 5% above the least
/// of those that meet the load: then that one.
/// Source:   docs/theory.md#what-intervals-hold
/// @param answer  to the question
/// @param worlds  at least one; those whose cost prices an iteration at nothing are left out
/// @param hooks   an interrupted run leaves out scenarios, and says so
/// @throws std::invalid_argument unless the answer has as many scenarios as the question, or without worlds
CapacityInWorlds in_worlds(const CapacityQuestion& question, CapacityAnswer answer, std::vector<CapacityWorld> worlds,
                           const core::RunHooks& hooks = {});

/// Shares of worlds in which one scenario needs fewer accelerators than another, and more, as worlds::share_at_least has
/// them of alternatives; no number that meets the load counts as more than any.
struct GpuShares {
  double fewer = 0, more = 0;
};
/// @param ours, theirs  of the same worlds  @throws std::invalid_argument if they are not as many
GpuShares compare_gpus(const ScenarioInWorlds& ours, const ScenarioInWorlds& theirs, std::span<const int> alternatives);

/// The reason why an answer under load is uncertain.
enum class UncertaintySource {
  acceptance,  ///< too few rounds or requests were counted
  cost,        ///< the cost of a round is not known precisely enough
};
/// "acceptance", "cost".
std::string_view name_of(UncertaintySource source);

/// The main source of uncertainty of a scenario's capacity, and the run that would reduce it.
struct CapacityDoubt {
  UncertaintySource source = UncertaintySource::cost;
  planning::NextMeasurement next;
};

/// Compares the ranges over worlds of what the scenario's mean iteration takes and of what it puts out. The run is one of
/// the scenario's largest gamma at its mean batch, together with plain decoding if the cost is in question.
/// @param scenario  index into the answer's scenarios
/// @return empty if neither differs between worlds, or if worlds are missing
/// @throws std::out_of_range if there is no such scenario
std::optional<CapacityDoubt> capacity_doubt(const CapacityQuestion& question, const CapacityInWorlds& worlds,
                                            std::size_t scenario);

/// replica_at_loads(), its intervals widened to the same figures in the scenario's simulated worlds. If a world cannot
/// take a load, its queue grows and its times are those of this run.
/// @throws as replica_at_loads
std::vector<ReplicaAtLoad> replica_in_worlds(const CapacityQuestion& question, std::size_t scenario,
                                             std::span<const double> loads, const CapacityInWorlds& worlds);

}  // namespace specdec::sim
