#pragma once

#include <array>
#include <string_view>

namespace specdec::estimate {

// Written by scripts/fit_acceptance_priors.py; not installed.

/// A law of (mu, ln sigma, delta) of estimate::PopulationPrior, of drafts of one method.
struct PopulationPriorRow {
  std::string_view method;
  /// Published curves that it was fitted to.
  int curves;
  std::array<double, 3> mean, deviation;
  /// Of mu and ln sigma, mu and delta, ln sigma and delta.
  std::array<double, 3> correlation;
  double cliff;
};

inline constexpr PopulationPriorRow population_prior_rows[] = {
    {"any", 106, {1.770, 0.070, 0.246}, {0.984, 0.467, 0.106}, {0.48, 0.17, 0.40}, 0.15},
    {"eagle3", 94, {1.678, 0.053, 0.229}, {0.975, 0.458, 0.097}, {0.43, 0.08, 0.43}, 0.12},
    {"mtp", 9, {2.216, -0.073, 0.471}, {0.841, 0.574, 0.296}, {0.55, -0.08, -0.45}, 0.25},
    {"parallel", 3, {1.993, 0.128, 0.267}, {0.811, 0.467, 0.105}, {0.52, 0.31, 0.41}, 0.15},
    {"model", 0, {1.739, 0.056, 0.150}, {1.200, 0.600, 0.150}, {0.47, 0.16, 0.41}, 0.02},
    {"n-gram", 0, {-3.000, 1.800, 0.000}, {8.000, 0.500, 0.150}, {0.00, 0.00, 0.00}, 0.02},
};

}  // namespace specdec::estimate
