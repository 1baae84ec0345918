#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/estimate/estimate.hpp"
#include "sim/generation.hpp"
#include "sim/validation/method_timing.hpp"

namespace specdec::validation {

/// Closed form compared with measurement.
struct Check {
  std::string name;
  double expected = 0;
  double measured = 0;
  /// (measured - expected) / standard error, and its two-sided p-value; empty for an exact comparison, or if the
  /// variance is too small for the normal law to hold in the tails.
  std::optional<double> deviation_standard_errors;
  std::optional<double> p_value;
  bool passed = true;
};

/// One Kolmogorov test of the emitted tokens' transforms.
struct UniformityTest {
  enum class Order { by_ratio, by_probability };

  Order order = Order::by_ratio;
  /// 1-based place in the round; 0 for all tokens.
  std::int64_t slot = 0;
  std::int64_t tokens = 0;
  /// Empty if there were too few tokens.
  std::optional<double> distance;
  std::optional<double> p_value;
  bool passed = true;
};

struct TokensPerStep {
  /// Eq. (1) at alpha_hat, for an endless text.
  double iid = 0;
  /// Independent acceptances at alpha_hat in texts of the run's length, whose last step is cut short.
  double iid_finite = 0;
  /// The exact law on the run's own text.
  double replay = 0;
  estimate::Estimate measured;

  /// Relative error of assuming independent acceptances, comparing texts of one length.
  double iid_error() const { return iid_finite / replay - 1; }
};

/// Operations per token over plain decoding's; empty for models that count none.
struct OperationsFactor {
  std::optional<double> theory;
  std::optional<double> measured;
};

/// One (task, temperature, gamma).
struct Configuration {
  std::string task;
  double temperature = 0;
  std::int64_t gamma = 0;
  std::int64_t sequences = 0;
  sim::Counters counters;
  estimate::Estimate alpha;
  TokensPerStep tokens_per_step;
  OperationsFactor operations;
  /// Empty if no prompt was timed.
  std::optional<MethodTiming> timing;
  std::vector<UniformityTest> uniformity;
  std::vector<Check> checks;
  /// Over all tests made here, and their number.
  std::optional<double> smallest_p_value;
  std::int64_t tests = 0;
  std::optional<double> steps_z;
  bool passed = true;
};

/// The findings of a validation run.
struct Report {
  std::vector<Configuration> configurations;
  /// The m statistical tests that the run had planned; each fails below `level` = 5e-4 / m.
  std::int64_t planned_tests = 0;
  double level = 0;
  /// Tests that were made because there was enough data for them, and the smallest of their p-values.
  std::int64_t tests = 0;
  std::optional<double> smallest_p_value;
  std::int64_t tokens = 0;
  bool passed = true;
};

}  // namespace specdec::validation
