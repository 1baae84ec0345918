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
    {"any", 102, {1.736, 0.057, 0.240}, {0.975, 0.466, 0.104}, {0.45, 0.15, 0.41}, 0.15},
    {"eagle3", 94, {1.668, 0.042, 0.227}, {0.969, 0.459, 0.096}, {0.42, 0.08, 0.43}, 0.12},
    {"mtp", 5, {2.157, -0.099, 0.458}, {0.885, 0.585, 0.331}, {0.40, 0.04, -0.48}, 0.40},
    {"parallel", 3, {1.965, 0.113, 0.262}, {0.805, 0.466, 0.104}, {0.50, 0.30, 0.41}, 0.15},
    {"model", 0, {1.739, 0.056, 0.150}, {1.200, 0.600, 0.150}, {0.47, 0.16, 0.41}, 0.02},
    {"n-gram", 0, {-3.000, 1.800, 0.000}, {8.000, 0.500, 0.150}, {0.00, 0.00, 0.00}, 0.02},
};

}  // namespace specdec::estimate
