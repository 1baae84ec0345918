#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"

/// Acceptance as that of a population of requests: what figures at some gammas leave open at the others.
namespace specdec::estimate {

/// What is known before anything is measured of the population that a traffic's requests are drawn from. Draft j of a
/// round of request i, given that all before were accepted, is accepted with log-odds
///
///   a_i - delta (j - 1) - (drop if j > cliff),   a_i ~ N(mu, sigma^2)
///
/// Requests that differ let conditional rates rise with depth, delta lets them fall; heads fail beyond the depth that
/// they were trained for.
struct PopulationPrior {
  /// Of (mu, ln sigma, delta), which are normal; a fifth of the weight is on a law 2.5 times as wide.
  std::array<double, 3> mean = {};
  std::array<std::array<double, 3>, 3> covariance = {};
  /// The probability that acceptance drops beyond the trained depth, which is taken as the longest draft of the
  /// evidence, in [0, 1).
  double cliff = 0;
  /// Rounds that share one a_i, where these are not those of a request: those of a stretch of text that is copied or
  /// not.
  std::optional<double> rounds_of_stretch = {};

  /// The a_i behind so many rounds: of stretches, at most 8 a request since tasks copy more or less; or of the requests,
  /// of 64 rounds each where nothing tells how many.
  double requests_of(double rounds, std::optional<double> requests = {}) const;
};

/// That of drafts of a kind, fitted to published lengths; of any kind where it is unknown.
/// Source:   scripts/fit_acceptance_priors.py
PopulationPrior population_prior(std::optional<cost::DraftKind> kind = {});

/// The same where other evidence says all of where acceptance lies: mu hardly known, and apart from the rest.
PopulationPrior without_location(PopulationPrior prior);

/// Tokens per step at one gamma.
struct LengthEvidence {
  std::int64_t gamma = 1;
  /// The bonus token included, [1, gamma + 1].
  double tokens_per_step = 1;
  /// Standard deviation of its logarithm by rounding and sampling, >= 0.
  double relative_error = 0;
};

/// The squared coefficient of variation of requests' lengths, where nothing tells.
inline constexpr double usual_length_variation = 0.5;

/// What rounds of one gamma counted.
struct CountEvidence {
  std::int64_t gamma = 1;
  /// [j - 1] = the share of rounds whose first j drafts were accepted, not rising; gamma of them.
  std::vector<double> survival = {};
  /// >= 1.
  double rounds = 1;
  /// Distinct prompts behind them, >= 1.
  double requests = 1;
  /// The squared coefficient of variation of the requests' lengths, >= 0.
  double length_variation = usual_length_variation;
  /// Standard deviation of ln(tokens per step) by sampling where it was counted, too; else that of the population.
  std::optional<double> relative_error = {};
  /// That of it which neither the requests nor the rounds explain: windows that resemble each other for hours err
  /// together.
  double drift = 0;
};

/// The standard deviation of ln(tokens per step) where rounds were counted, by the population of the prior's mean shape
/// that gives as many.
double sampling_error(const PopulationPrior& prior, const CountEvidence& counted);

/// Tokens per step of gamma 0 to max_gamma in worlds drawn from the posterior of the population; tokens per step at a
/// gamma of the evidence are within its own error of it. The same worlds for every max_gamma; those of the prior
/// without evidence.
/// @throws std::domain_error if a figure is outside its range
TokenWorlds population_worlds(const PopulationPrior& prior, std::span<const LengthEvidence> lengths,
                              std::span<const CountEvidence> counts, std::int64_t max_gamma,
                              const DrawOptions& options);

}  // namespace specdec::estimate
