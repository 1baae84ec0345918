#include "analysis/estimate/ratio_of_sums.hpp"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/core/checks.hpp"

namespace specdec::estimate {
namespace {

Estimate with_interval(double ratio, const std::optional<StandardError>& error, std::string method) {
  Estimate result{ratio, std::nullopt, std::move(method)};
  if (error) result.ci95 = t_interval(result.value, *error);
  return result;
}

}  // namespace

Estimate ratio_of_sums(std::span<const double> numerators, std::span<const double> denominators) {
  core::require_same_size("ratio_of_sums", "numerators", numerators.size(), "denominators", denominators.size());
  if (numerators.empty())
    throw std::invalid_argument("ratio_of_sums: numerators has 0 entries, but must have 1 or more");
  std::vector<RatioTerm> clusters;
  double numerator = 0;
  double denominator = 0;
  for (std::size_t k = 0; k < numerators.size(); ++k) {
    core::require_in("ratio_of_sums", fmt::format("numerators[{}]", k), numerators[k], -core::largest_double,
                     core::largest_double);
    core::require_in("ratio_of_sums", fmt::format("denominators[{}]", k), denominators[k], 0.0, core::largest_double);
    clusters.push_back({numerators[k], denominators[k]});
    numerator += numerators[k];
    denominator += denominators[k];
  }
  core::require_in("ratio_of_sums", "the sum of denominators", denominator, std::numeric_limits<double>::min(),
                   core::largest_double);
  return with_interval(numerator / denominator, standard_error(clusters), "ratio of sums, Student's t over clusters");
}

Estimate batch_means(std::span<const double> values) {
  if (values.empty()) throw std::domain_error("batch_means: values has 0 entries, but must have 1 or more");
  StreamingBatches series;
  for (std::size_t t = 0; t < values.size(); ++t) {
    core::require_in("batch_means", fmt::format("values[{}]", t), values[t], -core::largest_double,
                     core::largest_double);
    series.add(values[t], 1);
  }
  const ClusterMoments batches = series.moments();
  return with_interval(batches.numerator() / batches.denominator(), standard_error(batches),
                       batches.clusters() == 1 ? "mean of one sequence, too short for an interval"
                                               : fmt::format("means of {} batches, Student's t", batches.clusters()));
}

}  // namespace specdec::estimate
