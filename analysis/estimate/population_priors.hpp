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
    {"any", 102, {1.739, 0.056, 0.240}, {0.983, 0.468, 0.103}, {0.47, 0.16, 0.41}, 0.15},
    {"eagle3", 94, {1.669, 0.040, 0.226}, {0.975, 0.460, 0.096}, {0.44, 0.09, 0.42}, 0.12},
    {"mtp", 5, {2.167, -0.092, 0.458}, {0.896, 0.589, 0.331}, {0.42, 0.04, -0.48}, 0.40},
    {"parallel", 3, {1.982, 0.124, 0.264}, {0.819, 0.474, 0.104}, {0.53, 0.31, 0.42}, 0.15},
    {"model", 0, {1.739, 0.056, 0.150}, {1.200, 0.600, 0.150}, {0.47, 0.16, 0.41}, 0.02},
    {"n-gram", 0, {0.000, 0.400, 0.050}, {1.500, 0.600, 0.200}, {0.00, 0.00, 0.00}, 0.02},
};

}  // namespace specdec::estimate
