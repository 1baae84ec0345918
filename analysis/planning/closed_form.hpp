#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/planning/best_gamma.hpp"
#include "analysis/theory/optimal_gamma.hpp"

/// What the formulas of analysis/theory say of one acceptance at constant costs, beside the choice of gamma.
namespace specdec::planning {

struct ClosedFormQuestion {
  core::AcceptanceProfile acceptance;
  /// The largest gamma that the acceptance was measured at, >= 1, if that is not the number of its positions.
  std::optional<std::int64_t> measured_at = {};
  /// False if the measurements are not a survival function, so that they give no rate for further drafts.
  bool monotone = true;
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
  /// The best of all gammas that the acceptance covers.
  theory::OptimalGamma best;
  /// Empty if no rate below 1 makes any gamma pay.
  std::optional<core::AcceptanceRate> break_even;
  std::optional<double> gamma_real;      ///< for one rate and the paper's costs
  std::optional<double> oracle_speedup;  ///< for the paper's costs; infinity if unbounded
  std::optional<FinitePlan> finite;
  std::vector<ClosedFormRow> rows;
};

/// The largest gamma that the acceptance covers: no_max_gamma, or the largest measured gamma if the measurements
/// are not a survival function or their last conditional rate is 1. Such a rate, held forever, would make every draft
/// accepted.
std::int64_t largest_known_gamma(const core::AcceptanceProfile& acceptance, std::optional<std::int64_t> measured_at,
                                 bool monotone);

/// Source:   docs/theory.md#optimal-gamma
/// @throws std::domain_error if a value is outside the range stated beside it
ClosedForm closed_form(const ClosedFormQuestion& question);

/// The single rate that would give the same accepted drafts per examined draft as the measured positions:
///
///   (E[K | n] - 1) / E[K | n - 1]
///
/// the maximum-likelihood estimate from n positions; the rate itself if the profile is a single rate.
/// Source:   docs/theory.md#acceptance-inversion
core::AcceptanceRate pooled_rate(const core::AcceptanceProfile& acceptance);

}  // namespace specdec::planning
