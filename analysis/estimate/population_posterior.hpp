#pragma once

#include <span>
#include <vector>

#include "analysis/estimate/population_law.hpp"

namespace specdec::estimate {

// A header of the library's own sources; it is not installed.

/// A figure as an observation of ln(tokens per step).
struct LengthObservation {
  std::int64_t gamma = 1;
  double log_tokens = 0;
  double error = 0;
};

/// How far all figures lie from those of a law, as observations of ln(tokens per step).
struct LengthObservations {
  std::vector<std::int64_t> gammas;
  std::vector<double> off;
  /// Of their errors, row after row.
  std::vector<double> covariance;
};

/// What is known of one population.
class PopulationEvidence {
 public:
  /// @throws std::domain_error if a figure is outside its range
  PopulationEvidence(const PopulationPrior& prior, std::span<const LengthEvidence> lengths,
                     std::span<const CountEvidence> counts);

  const PopulationPrior& prior() const { return prior_; }
  bool empty() const { return lengths_.empty() && counts_.empty(); }
  bool is_one_length() const { return lengths_.size() == 1 && counts_.empty(); }
  /// The largest gamma; 0 without evidence.
  std::int64_t longest() const;
  /// How far ln(tokens per step) walks from that of a population up to each gamma, as a variance: with each draft as
  /// far as published curves do, but by no more than the draft gains or could have gained, and further where figures
  /// are.
  /// @param tokens  [gamma] of the population, gamma = 0, 1, ...
  std::vector<double> walk_variances(std::span<const double> tokens) const;
  /// Lets the walk and the errors of counted survivals be as large as the misses of the nearest law ask for.
  /// @return whether that made them larger
  bool allow_for(const PopulationLaw& nearest);
  /// Figures of several gammas that no one draft has: longer drafts may then make fewer tokens.
  bool of_several_drafts() const { return stray_ > 1 && lengths_.size() + counts_.size() > 1; }
  /// Of all figures, up to a constant.
  double log_likelihood(const PopulationLaw& law) const;
  /// Of lengths, and of counts at the compared positions, with their errors as the law has them.
  /// @param tokens    [gamma] of the law, up to longest() at least
  /// @param weighing  how far rounds weigh requests as the law says, [0, 1]: at 0 all requests are alike, and what was
  ///                  counted up to a position is what a draft that ends there gives
  LengthObservations observations(const PopulationLaw& law, std::span<const double> tokens, double weighing) const;
  /// The figure of the longest draft, with the error that it has as one of a population.
  LengthObservation anchor() const;
  /// Moves mu by the drift of the counts, at a standard normal number.
  void drift(PopulationLaw& law, double standard) const;

 private:
  const PopulationPrior& prior_;
  std::span<const LengthEvidence> lengths_;
  std::span<const CountEvidence> counts_;
  /// Of lengths by a walk with these variances and by their own errors, row after row.
  std::vector<double> precision_of_lengths(std::span<const double> walk) const;
  /// @param variances  [gamma], up to the longest length at least
  void take_walk(std::span<const double> variances);

  /// Variance of the walk up to the longest length.
  double walk_to_longest_ = 0;
  /// How many times as far as published curves these figures stray from a population.
  double stray_ = 1;
  /// The inverse covariance of the lengths about those of a population, row after row.
  std::vector<double> precision_;
};

/// Populations drawn from the posterior, equally likely, after the evidence has allowed for the nearest of them. By
/// importance sampling: (ln sigma, delta) from the prior and
/// mu so that it gives the figure of the longest draft; unless that figure is all there is, several rounds follow from
/// Student's law about the mean of the last, of each depth of a drop by itself.
std::vector<PopulationLaw> draw_populations(PopulationEvidence& evidence, const DrawOptions& options);

}  // namespace specdec::estimate
