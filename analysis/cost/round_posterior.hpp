#pragma once

#include <Eigen/Dense>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "analysis/cost/round_law.hpp"

namespace specdec::cost {

// A header of the library's own sources; it is not installed.

/// The law of terms and residual given the runs, one mode for each family of servers, and worlds drawn from it.
class RoundPosterior {
 public:
  /// What one family makes of the runs.
  struct Mode {
    TermPriors priors;
    /// The most probable terms, and their covariances by the curvature there.
    LogTerms log_terms;
    Eigen::MatrixXd uncertainty;
    /// covariances^-1 (measured - ln terms), (runs), and times the slopes of the runs, (runs, terms).
    Eigen::VectorXd weights;
    Eigen::MatrixXd solved_slopes;
    /// The errors of runs over those that are usual.
    double error_scale = 1;
    /// That of what runs leave open, terms and residual: with Student's quantile over the normal one, and at least 1,
    /// since runs that predict each other, as repeats do, tell nothing of it.
    double widening = 1;
    /// Standard deviation of another run's error.
    double run_error = 0;
    /// Its share of the worlds.
    double share = 1;
  };

  /// @param runs  with their contexts
  RoundPosterior(std::span<const ObservedRound> runs, const FitOptions& options, bool knows_contexts);

  const RoundLaw& law() const { return law_; }
  /// The one of the largest share.
  const Mode& likeliest() const;
  std::size_t worlds() const { return static_cast<std::size_t>(log_terms_.rows()); }
  /// Of FitOptions::log_factors the row that each world is drawn by; empty if there is none.
  const std::vector<std::size_t>& ways() const { return ways_; }
  /// The median over worlds of what a run's seconds are multiplied by, (runs).
  std::vector<double> usual_factors() const;
  LogTerms log_terms_of(std::size_t world) const { return log_terms_.row(static_cast<Eigen::Index>(world)); }

  /// ln seconds by the most probable terms of each mode, in the mean over modes.
  double log_seconds(const Place& at) const;
  /// Seconds in worlds from `first` on.
  void seconds_of_worlds(const Place& at, std::size_t first, std::span<double> seconds) const;
  /// Of the logarithms at two places, linearised at each mode, (modes' means included).
  double log_covariance(const Place& a, const Place& b) const;
  double run_error() const;

 private:
  using Matrix = Eigen::MatrixXd;
  using Vector = Eigen::VectorXd;

  Mode mode_of(const RoundPrior& family, const FitOptions& options) const;
  /// The most probable terms for runs of these logarithms of seconds and priors of these means.
  LogTerms fit(const Vector& log_seconds, const LogTerms& means, const LogTerms& spreads, LogTerms start,
               double converged) const;
  Vector log_seconds_of_runs(const LogTerms& log_terms, Matrix* slopes = nullptr) const;
  Vector covariances_with(const Place& at) const;
  void measure_errors(const FitOptions& options, Mode& mode) const;
  double repeated_error(const Vector& misses, const FitOptions& options) const;
  /// ln of the density of the runs' seconds in each mode, its share among servers included, (ways, modes).
  Matrix log_densities(std::span<const RoundPrior> families, const Matrix& shifts) const;
  /// By way the squares of the errors by which rounds with drafts took less than the plain steps beside them.
  Vector below_plain_steps(const Matrix& shifts) const;
  void fit_modes(std::span<const RoundPrior> families, const FitOptions& options);
  /// The way and the mode of each world.
  std::vector<std::size_t> choose(const Matrix& log_densities, const FitOptions& options);
  void draw(std::size_t world, const Mode& mode, const Vector& shift);
  /// Prior paths of the residual at a place: their features, and the part of a tree in each world from `first` on.
  Vector path_features(const Place& at) const;
  double tree_path(const Place& at, std::size_t world) const;
  Eigen::ArrayXd log_residuals(const Place& at, std::size_t first, std::size_t count) const;

  RoundLaw law_;
  std::uint64_t seed_ = 0;
  std::vector<Place> places_;
  std::vector<std::string> servers_;
  /// Tokens that each run's rounds verify, and RoundLaw::amounts, (runs, terms).
  Eigen::ArrayXd tokens_;
  Matrix amounts_;
  /// ln measured, and standard deviations of its errors, (runs).
  Vector measured_, errors_;
  /// Covariances of the runs' residuals and errors, (runs, runs).
  Eigen::LLT<Matrix> covariances_;
  std::vector<Mode> modes_;
  std::vector<std::size_t> ways_;
  /// What all ways move the runs' logarithms by, (runs), which measured_ holds, and what each moves them by beyond
  /// that, (runs, ways).
  Vector moved_;
  Matrix shifts_;
  /// Directions of the features, (features, coordinates), and their phases.
  Eigen::Matrix<double, Eigen::Dynamic, 5> directions_;
  Vector phases_;
  /// Of each world: terms, factors of the features for plain rounds and for those with drafts, what runs add, and by
  /// how much paths of trees are widened.
  Matrix log_terms_, paths_, weights_;
  Eigen::ArrayXXd terms_;
  Vector widening_;
};

}  // namespace specdec::cost
