#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/estimate/observations.hpp"
#include "traces/serving/serving_counts.hpp"

/// The variation of acceptance between requests and its persistence within one.
namespace specdec::planning {

/// The acceptance rate of one request's drafts, as far as the request itself determines it.
struct RequestRate {
  /// [0, 1]
  double rate = 0;
  /// Sampling variance of `rate`; 0 if the rate is exact.
  double error_variance = 0;
  /// Weight of the request among the rounds, > 0.
  double weight = 1;
};

/// P(draft j accepted | those before it were), j = 1, 2, ..., for one request.
using ConditionalRates = std::vector<double>;

/// The conditional rates behind tokens per step: S(j) = E(j) - E(j - 1), clamped to [0, S(j - 1)]; rate j is
/// S(j) / S(j - 1), or 0 if S(j - 1) is.
/// Shape: tokens (gammas 0, 1, ..., at least two), E(0) = 1
ConditionalRates conditionals_of(std::span<const double> tokens);

/// Requests whose rates have a Beta law: means over `count` parts of equal probability, so that their mean is exact.
/// The weights are 1 / tokens per step of `gamma` drafts: the rounds that a request needs for a text of given length.
/// @param mean  (0, 1)  @param standard_deviation  > 0, its square below mean (1 - mean)
/// @param gamma  >= 0  @param count  >= 1
/// @throws std::domain_error if a value is outside its range
/// Accuracy: the mean of the rates is `mean` to 1e-12
std::vector<RequestRate> beta_rates(double mean, double standard_deviation, std::int64_t gamma,
                                    std::int64_t count = 64);

/// The rate that the counts of one request imply, from the drafts that were examined.
/// @param gamma  the gamma of rounds that do not state it
/// @return empty if the counts are not those of a request, or do not determine a rate
/// @throws traces::FileError if the counts contradict each other
std::optional<RequestRate> rate_of_request(const traces::ServingCounts& counts, std::optional<std::int64_t> gamma);

/// Rates of the sequences of a recording: the mean acceptance over the positions of each (of first drafts, if more
/// was recorded), using the middle of brackets.
class SequenceRates {
 public:
  /// Adds the next batch of the recording.
  void add(const estimate::Observations& seen);
  /// One for each sequence with at least one known position; the weight is the number of these.
  std::vector<RequestRate> rates() const;

 private:
  struct Sums {
    double count = 0, mean = 0, squared_deviations = 0;
  };
  std::vector<Sums> sums_;
};

/// The variance of the rates between requests that sampling does not explain, >= 0, by moments:
///
///   (sum w (r - m)^2 / W - sum w e (1 - w / W) / W) / (1 - sum w^2 / W^2),   m weighted mean, W = sum w, e its error
///
/// 0 for a single request.
/// @throws std::invalid_argument if rates is empty; std::domain_error if a value is outside its range
double variance_between(std::span<const RequestRate> rates);

/// A law for each request, so that together they have the pooled conditional rates:
///
///   odds_i(j) = k_j odds(m + f (r_i - m)),   f^2 = variance_between / variance of the rates
///   k_j: sum_i w_i S_i(j - 1) rate_i(j) = pooled(j) sum_i w_i S_i(j - 1)
///
/// f removes the sampling variance from the spread; k_j leaves to the position what requests do not explain.
/// Source:   docs/theory.md#acceptance-of-requests
/// @param pooled  [0, 1] each, at least one
/// @throws std::invalid_argument if rates or pooled is empty; std::domain_error if a value is outside its range
/// Accuracy: the pooled rates are met to 1e-9
std::vector<ConditionalRates> laws_by_request(std::span<const RequestRate> rates, std::span<const double> pooled);

}  // namespace specdec::planning
