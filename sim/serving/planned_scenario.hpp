#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sim/serving/capacity.hpp"
#include "sim/serving/load_search.hpp"
#include "sim/serving/simulated_workload.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Loads by the formulas for a batch that does not vary.
struct BalancedLoads {
  /// ln(time per output token) over loads, beside which ln(load) counts a little, since there are loads at which that
  /// time hardly changes.
  LoadScale scale;
  /// The largest.
  double most = 0;

  /// Seconds per output token at a load up to the largest.
  double tpot_at(double requests_per_second) const;
};

/// A scenario of a question with the predictions of the formulas.
class PlannedScenario {
 public:
  /// Question and scenario must outlive the object.
  /// @param requests  those whose statistics the formulas are given  @param rounds  those of these requests
  /// @throws std::invalid_argument if it drafts without an acceptance
  PlannedScenario(const CapacityQuestion& question, const CapacityScenario& scenario,
                  const std::vector<SimulatedRequest>& requests, const RoundsToCover& rounds);

  const CapacityScenario& scenario() const { return scenario_; }
  const ScenarioFormulas& formulas() const { return formulas_; }
  /// Empty where the formulas do not apply.
  const std::optional<planning::SustainableLoad>& saturation() const { return formulas_.saturation; }
  double output_tokens() const { return formulas_.load.output_tokens; }

  const LoadScale& scale() const { return loads_.scale; }
  /// The load with this time per output token on the scale. @param near  a load about as large
  double load_with(double tpot_seconds, double near) const;

  /// Sequences, by Little's law from the formulas' time per output token, 0 where they do not apply.
  double decoding_at(double requests_per_second) const;
  /// Requests/s that so many sequences, at least one, put out while prompts keep them so many, at another cost and with
  /// other rounds of the same requests. The formulas must apply.
  double balanced_rate(const cost::IterationCost& cost, std::span<const planning::RoundsFrom> rounds,
                       double sequences) const;
  /// From one sequence to the largest batch.
  BalancedLoads balanced_loads(const cost::IterationCost& cost, std::span<const planning::RoundsFrom> rounds) const;

 private:
  cost::Iteration iteration_of(const planning::RoundsFrom& rounds, double sequences) const;

  const CapacityQuestion& question_;
  const CapacityScenario& scenario_;
  ScenarioFormulas formulas_;
  BalancedLoads loads_;
};

}  // namespace specdec::sim
