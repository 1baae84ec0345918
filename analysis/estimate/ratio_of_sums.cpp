#include "analysis/estimate/ratio_of_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::estimate {
namespace {

constexpr double largest = std::numeric_limits<double>::max();

double t_quantile_97_5(std::size_t degrees_of_freedom) {
  return boost::math::quantile(boost::math::students_t(static_cast<double>(degrees_of_freedom)), 0.975);
}

Interval around(double centre, double half_width) { return {centre - half_width, centre + half_width}; }

}  // namespace

Estimate ratio_of_sums(std::span<const double> numerators, std::span<const double> denominators) {
  core::require_same_size("ratio_of_sums", "numerators", numerators.size(), "denominators", denominators.size());
  if (numerators.empty())
    throw std::invalid_argument("ratio_of_sums: numerators has 0 entries, but must have 1 or more");
  double numerator = 0;
  double denominator = 0;
  for (std::size_t k = 0; k < numerators.size(); ++k) {
    core::require_in("ratio_of_sums", fmt::format("numerators[{}]", k), numerators[k], -largest, largest);
    core::require_in("ratio_of_sums", fmt::format("denominators[{}]", k), denominators[k], 0.0, largest);
    numerator += numerators[k];
    denominator += denominators[k];
  }
  core::require_in("ratio_of_sums", "the sum of denominators", denominator, std::numeric_limits<double>::min(),
                   largest);

  Estimate result{numerator / denominator, std::nullopt, "ratio of sums, Student's t over clusters"};
  const auto clusters = static_cast<double>(numerators.size());
  if (numerators.size() < 2) return result;
  double squares = 0;
  for (std::size_t k = 0; k < numerators.size(); ++k) {
    const double deviation = numerators[k] - result.value * denominators[k];
    squares += deviation * deviation;
  }
  const double standard_error = std::sqrt(squares * clusters / (clusters - 1)) / denominator;
  result.ci95 = around(result.value, t_quantile_97_5(numerators.size() - 1) * standard_error);
  return result;
}

Estimate batch_means(std::span<const double> values) {
  const std::size_t n = values.size();
  const std::size_t batches = std::clamp<std::size_t>(n / static_cast<std::size_t>(least_batch), 1, 10);
  std::vector<double> sums(batches);
  std::vector<double> counts(batches);
  for (std::size_t t = 0; t < n; ++t) {
    sums[t * batches / n] += values[t];
    counts[t * batches / n] += 1;
  }
  Estimate result = ratio_of_sums(sums, counts);
  result.method = batches == 1 ? "mean of one sequence, too short for an interval"
                               : fmt::format("means of {} batches, Student's t", batches);
  return result;
}

}  // namespace specdec::estimate
