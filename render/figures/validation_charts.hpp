#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "render/figures/chart.hpp"
#include "sim/validation/report.hpp"
#include "sim/validation/synthetic_checks.hpp"

namespace specdec::render {

/// Theory against Monte Carlo.
struct MonteCarloChartInputs {
  /// Fixed laws: sorted by rate, then gamma.
  std::vector<validation::TokensCheck> checks;
  /// Runs of a pair of models at one temperature above 0; may be empty.
  std::vector<validation::Configuration> runs;
  /// "shipped pair".
  std::string pair;
};

/// Panels: tokens per step of fixed laws by Eq. (1) and as simulated, those of the pair by the exact law of its text
/// and as measured, if there are runs, and all deviations in standard errors.
Chart theory_against_simulation_chart(const MonteCarloChartInputs& inputs);

/// A sampler in the distribution test.
struct TestedSampler {
  std::string name;
  validation::TransformSample sample;
};

struct DistributionChartInputs {
  std::vector<TestedSampler> samplers;
  /// False-alarm rate of one test, (0, 1).
  double level = 0;
  std::string pair;
};

/// Two panels, one for each order of the tokens: the share of transforms at or below u minus u, with the distance at
/// which the test rejects.
Chart distribution_test_chart(DistributionChartInputs inputs);

}  // namespace specdec::render
