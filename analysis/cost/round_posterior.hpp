#pragma once

#include <Eigen/Dense>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "analysis/cost/round_law.hpp"

namespace specdec::cost {

// A header of the library's own sources; it is not installed.

/// The law of terms and residual given the runs, and worlds drawn from it: one mode for each family of servers, each
/// size that the runs' errors may have, and each distance at which the server may be from the usual ones.
class RoundPosterior {
 public:
  /// What one family makes of the runs, with errors and distances of these sizes.
  struct Mode {
    TermPriors priors;
    /// An index of the sizes.
    std::size_t size = 0;
    /// The most probable terms, and their covariances by the curvature there.
    LogTerms log_terms;
    Eigen::MatrixXd uncertainty;
    /// What the residual's correlation with each run adds to it, (runs), and takes from its slopes, (runs, terms).
    Eigen::VectorXd weights;
    Eigen::MatrixXd solved_slopes;
    /// Its share of the worlds.
    double share = 1;
  };

  /// Runs at one place are one, of their mean: a fit takes as long as the cube of its places.
  /// @param runs  with their contexts
  RoundPosterior(std::span<const ObservedRound> runs, const FitOptions& options, bool knows_contexts);

  const RoundLaw& law() const { return law_; }
  /// The one of the largest share.
  const Mode& likeliest() const;
  std::size_t worlds() const { return static_cast<std::size_t>(log_terms_.rows()); }
  /// Of FitOptions::log_factors the row that each world is drawn by; empty if there is none.
  const std::vector<std::size_t>& ways() const { return ways_; }
  LogTerms log_terms_of(std::size_t world) const { return log_terms_.row(static_cast<Eigen::Index>(world)); }

  /// ln seconds by the most probable terms of each mode, in the mean over modes.
  double log_seconds(const Place& at) const;
  /// Seconds in worlds from `first` on.
  void seconds_of_worlds(const Place& at, std::size_t first, std::span<double> seconds) const;
  /// Standard deviation of another run's error over the usual one, the root of its mean square over modes.
  double error_scale() const;

 private:
  using Matrix = Eigen::MatrixXd;
  using Vector = Eigen::VectorXd;

  /// The errors of runs, and the spreads of terms and residual, over the usual ones.
  struct Size {
    double errors = 1, spreads = 1, log_prior = 0;
    /// Covariances of the runs' residuals and errors, (runs, runs).
    Eigen::LLT<Matrix> covariances = {};
  };

  Mode mode_of(const RoundPrior& family, std::size_t size) const;
  /// Fills places_, measured_, errors_, shifts_ and what is told of repeats.
  void group(std::span<const ObservedRound> runs, const FitOptions& options);
  /// The most probable terms for runs of these logarithms of seconds and priors of these means.
  LogTerms fit(const Eigen::LLT<Matrix>& covariances, const Vector& log_seconds, const LogTerms& means,
               const LogTerms& spreads, LogTerms start, double converged) const;
  Vector log_seconds_of_runs(const LogTerms& log_terms, Matrix* slopes = nullptr) const;
  double covariance_of(const Place& a, const Place& b) const;
  Vector covariances_with(const Place& at) const;
  /// ln of the density of the runs' seconds in each mode, its share among servers included, (ways, modes).
  Matrix log_densities(std::span<const RoundPrior> families, const Matrix& shifts) const;
  /// By way the squares of the errors by which rounds with drafts took less than the plain steps beside them.
  Vector below_plain_steps(const Matrix& shifts) const;
  void fit_modes(std::span<const RoundPrior> families);
  /// The way and the mode of each world.
  std::vector<std::size_t> choose(const Matrix& log_densities, const FitOptions& options);
  void draw(std::size_t world, const Mode& mode, const Vector& shift);
  /// Prior paths of the residual at a place: their features, and the part of a tree in one world.
  Vector path_features(const Place& at) const;
  double tree_path(const Place& at, std::size_t world) const;
  Eigen::ArrayXd log_residuals(const Place& at, std::size_t first, std::size_t count) const;

  RoundLaw law_;
  std::uint64_t seed_ = 0;
  std::vector<Place> places_;
  /// From here on a place's runs are one. Tokens that its rounds verify, and RoundLaw::amounts, (runs, terms).
  Eigen::ArrayXd tokens_;
  Matrix amounts_;
  /// ln measured, and standard deviations of its usual errors, (runs).
  Vector measured_, errors_;
  /// How many more there are than places; by way the squares by which they differ from their places' means, over the
  /// usual ones.
  double repeats_ = 0;
  Vector squares_of_repeats_;
  std::vector<Size> sizes_;
  std::vector<Mode> modes_;
  std::vector<std::size_t> ways_;
  /// What each way moves the runs' logarithms by from measured_, (runs, ways).
  Matrix shifts_;
  /// Directions of the features, (features, coordinates), and their phases.
  Eigen::Matrix<double, Eigen::Dynamic, 5> directions_;
  Vector phases_;
  /// Of each world: terms, factors of the features for plain rounds and for those with drafts, what runs add, the
  /// kernel's step, and the size of its spreads.
  Matrix log_terms_, paths_, weights_;
  Eigen::ArrayXXd terms_;
  Vector steps_, spreads_;
};

}  // namespace specdec::cost
