#pragma once

#include <cstdint>
#include <optional>

#include "sim/serving/capacity.hpp"
#include "sim/serving/replica_runs.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The sustainable load of a scenario's replica.
struct FoundLoad {
  SimulatedValue load;
  /// `none` if the queue is the limiting factor.
  planning::CapacityLimit by = planning::CapacityLimit::none;
  std::optional<RateSearchEnd> end = {};
};

/// Clients of one replica.
struct FoundClients {
  /// The most within the limits, up to all; 0 if not even one is.
  std::int64_t most = 0;
  planning::CapacityLimit by = planning::CapacityLimit::none;
};

/// The search over the load of one replica for the largest within the limits. It begins where the formulas expect the
/// limit on the time per output token, or where a like scenario met its limit.
class SustainableSearch {
 public:
  /// References must outlive the object. @param like  the scenario under another cost or acceptance; may be null
  SustainableSearch(ReplicaRuns& runs, const ScenarioCapacity* like)
      : runs_(runs), question_(runs.question()), planned_(runs.planned()), like_(like) {}

  /// @param saturated  the rate above which the queue grows
  FoundLoad find_load(const SimulatedValue& saturated);
  FoundClients find_clients();
  /// The fewest replicas, up to `most`, that share a load within the limits; 0 if not even those do. It runs loads of
  /// whole numbers of them alone.
  std::int64_t find_replicas(double requests_per_second, std::int64_t most);

 private:
  LoadCrossing first_guess(double saturated) const;
  LoadCrossing guess_like(double saturated, double lowest) const;
  SimulatedValue around(double load, const JudgedLoad& there, const SimulatedValue& saturated);
  std::int64_t likely_clients() const;

  ReplicaRuns& runs_;
  const CapacityQuestion& question_;
  const PlannedScenario& planned_;
  const ScenarioCapacity* like_;
};

}  // namespace specdec::sim
