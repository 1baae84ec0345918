#pragma once

#include <cstdint>
#include <vector>

#include "analysis/estimate/request_population.hpp"

namespace specdec::estimate {

// A header of the library's own sources; it is not installed.

/// Log-odds are lower by `drop` from draft depth + 1 on; none at depth 0.
struct Cliff {
  std::int64_t depth = 0;
  double drop = 0;
};

/// Positions at which survivals are compared: all of short drafts, of long ones eight, the last included.
std::vector<std::int64_t> compared_positions(std::int64_t gamma);

/// Tokens per step of rounds up to each of the compared positions, the round's own token included. Rounds of longer
/// drafts weigh other requests, so that they are not the tokens per step of shorter drafts.
struct CountedPrefixes {
  std::vector<double> log_tokens;
  /// Of log_tokens by sampling, row after row.
  std::vector<double> covariance;
};

/// One population of requests, as PopulationPrior states it. Integrals over requests are Gauss and Hermite's with ten
/// nodes; requests put out as many tokens each, so that tau = 1 / E[1 / tau_i].
struct PopulationLaw {
  double mu = 0, sigma = 0, delta = 0;
  Cliff cliff = {};

  /// [gamma], gamma = 0 .. max_gamma.
  std::vector<double> tokens_per_step(std::int64_t max_gamma) const;
  /// d ln(tokens per step at gamma) / d mu
  double slope(std::int64_t gamma) const;
  static constexpr double largest_mu = 20;
  /// Sets mu so that tokens per step at gamma are these, as far as mu in [-largest_mu, largest_mu] gives them.
  /// @return d ln(tokens) / d mu there
  double solve(std::int64_t gamma, double tokens);

  /// ln of the density of counted survivals, up to a constant: normal about those of the population, with the
  /// covariance of its requests and of their rounds, and a relative error of each survival for what no population is.
  double log_likelihood(const CountEvidence& counted, double relative_error) const;
  /// What rounds of gamma drafts count up to each of the compared positions.
  CountedPrefixes prefixes_of(const CountEvidence& counted) const;
  /// Standard deviation of ln(tokens per step) that so many rounds and requests give.
  double sampling_error(const CountEvidence& counted) const;
};

}  // namespace specdec::estimate
