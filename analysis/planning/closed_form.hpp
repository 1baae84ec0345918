#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/planning/best_gamma.hpp"
#include "analysis/theory/optimal_gamma.hpp"

/// What the formulas of analysis/theory say of one acceptance rate at constant costs, beside the choice of gamma.
namespace specdec::planning {

struct ClosedFormQuestion {
  core::AcceptanceRate rate;
  core::StepCost cost = {};
  /// Draft operations per token / target operations per token, dimensionless, >= 0.
  double c_hat = 0;
  /// Length of a generation, >= 1.
  std::optional<std::int64_t> tokens = {};
  /// Figures are given of all gammas from 0 to this one, >= 0.
  std::int64_t last_gamma = 0;
};

/// The figures of one gamma.
struct ClosedFormRow {
  std::int64_t gamma = 0;
  double operations_factor = 1;
  double memory_access_factor = 1;
  /// For a generation of `tokens` tokens; empty if not requested or if it would take too long to compute.
  std::optional<double> finite_speedup;
  std::optional<double> finite_steps;
};

/// The best gamma of the rows for generations of a stated length.
struct FinitePlan {
  std::int64_t tokens = 1;
  std::int64_t gamma = 0;
  double speedup = 1;
  double expected_steps = 1;
  /// False if rows were left out, which would take too long.
  bool complete = true;
};

struct ClosedForm {
  /// The best of all gammas.
  theory::OptimalGamma best;
  /// Empty if no rate below 1 makes any gamma pay.
  std::optional<core::AcceptanceRate> break_even;
  std::optional<double> gamma_real;      ///< for one rate and the paper's costs
  std::optional<double> oracle_speedup;  ///< for the paper's costs; infinity if unbounded
  std::optional<FinitePlan> finite;
  std::vector<ClosedFormRow> rows;
};

/// Source:   docs/theory.md#optimal-gamma
/// @throws std::domain_error if a value is outside the range stated beside it
ClosedForm closed_form(const ClosedFormQuestion& question);

}  // namespace specdec::planning
