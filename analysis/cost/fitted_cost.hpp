#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/cost/round_cost.hpp"

namespace specdec::cost {

/// The rounds of one run as an outsider sees them; gamma, batch and context are the run's means. No figure may exceed
/// 1e12, nor a positive one be below 1e-12.
struct ObservedRound {
  /// Names the run in messages.
  std::string name = {};
  /// Drafted tokens per sequence, >= 0; 0 for a run without speculation.
  double gamma = 0;
  /// Sequences decoded together, > 0.
  double batch = 1;
  /// Tokens in the cache per sequence, >= 0; nothing where the run does not say.
  std::optional<double> context = {};
  /// > 0
  double seconds = 0;
  /// > 0; a run that counts for more, or was longer.
  double weight = 1;
};

/// The parts that a round's time is made of, in this order everywhere:
///
///   seconds = fixed + per_draft_pass D + per_drafted_token D batch + per_verified_token (gamma + 1) batch
///             + per_context_token batch context,      D = draft_passes(kind, gamma)
inline constexpr std::size_t cost_terms = 5;
using CostTerms = std::array<double, cost_terms>;
/// "fixed_seconds", "seconds_per_draft_pass", "seconds_per_drafted_token", "seconds_per_verified_token",
/// "seconds_per_context_token".
std::string_view cost_term_name(std::size_t term);

/// What to do with predictions that the runs do not determine.
enum class Unidentified {
  refuse,
  /// Price them in the middle of all non-negative splits that fit; replicates are drawn from the splits.
  span,
};

struct FitOptions {
  DraftKind kind = DraftKind::model;
  Unidentified unidentified = Unidentified::refuse;
  /// A direction of the terms counts as seen by the runs where its singular value exceeds this share of the largest,
  /// columns scaled to length 1; (0, 1).
  double rank_tolerance = 0.02;
  /// A value counts as identified where all splits that fit agree on it up to this share of it; (0, 1).
  double split_tolerance = 0.05;
  std::size_t replicates = 200;
  std::uint64_t seed = 0;
};

/// A term, as far as the runs tell.
struct FittedTerm {
  /// Nothing where the runs do not identify it.
  std::optional<double> value = {};
  /// Over all non-negative splits that fit equally well; the value alone where it is identified.
  Range splits = {};
  /// 95%, over resampled runs; [0, 95% quantile] where the value is 0. Nothing where there is no value.
  std::optional<Range> ci95 = {};
};

/// A sum of terms that the runs identify even where they identify none of them.
struct IdentifiedCombination {
  /// sum_i coefficients[i] term[i]
  CostTerms coefficients = {};
  double value = 0;
  std::optional<Range> ci95 = {};
  /// "fixed_seconds + 8 seconds_per_verified_token"
  std::string text() const;
};

/// Seconds of a round from what observed runs took, by weighted non-negative least squares of the relative errors:
///
///   minimise sum_i w_i ((x_i theta - s_i) / s_i)^2 over theta >= 0
///
/// The fitted seconds are unique; theta is only where the runs' terms are of full rank. At one batch the runs identify
/// an intercept and a slope over gamma and nothing else; telling drafting from verifying takes several batches, and the
/// context term several contexts. What theta leaves open is the polytope of all non-negative theta with the same fitted
/// seconds, whose vertices are enumerated. A run without a context is taken at the mean of the others; where none
/// says one, the term is left out and every context costs the same.
///
/// Replicates weigh the n runs anew by exponential variates of mean 1 (the Bayesian bootstrap, a smooth resampling of
/// runs that keeps the rank), residuals widened to the errors of predicting a run from the others and by Student's
/// quantile over the normal one, and take a random vertex of the splits. The token that a draft catches up on after a
/// full accept is part of what the runs took.
/// Source:   Lawson and Hanson 1974, chapter 23; Rubin 1981; MacKinnon and White 1985; docs/theory.md#cost-of-a-round
class FittedCost final : public RoundCost {
 public:
  /// @param runs  at least one
  /// @throws std::invalid_argument if runs is empty
  /// @throws std::domain_error if a value of a run is outside its range
  FittedCost(std::span<const ObservedRound> runs, const FitOptions& options);

  std::string_view name() const override { return "fitted"; }
  bool in_seconds() const override { return true; }
  DraftKind kind() const override { return options_.kind; }
  /// target: fixed, verified and context terms; draft: the two terms of drafting. Where the splits differ in the sum by
  /// no more than split_tolerance, or are spanned, it is the middle of their range, divided as by their mean.
  /// @throws std::domain_error where the runs do not identify the sum, unless told to span
  RoundTime round(const RoundPoint& point) const override;
  /// Outside the ranges of gamma, batch and context over the runs by more than 5%.
  bool extrapolates(const RoundPoint& point) const override;
  bool answers(const RoundPoint& point) const override;
  bool parts_known(const RoundPoint& point) const override;
  double usual_context() const override { return usual_context_; }
  std::size_t replicates() const override { return replicates_.size(); }
  RoundTime round_of_replicate(std::size_t index, const RoundPoint& point) const override;
  void totals_of_replicates(const RoundPoint& point, std::span<double> totals) const override;
  std::span<const CostFinding> findings() const override { return findings_; }

  /// Seconds of the round over all non-negative splits that fit; both ends agree where it is identified.
  Range seconds_over_splits(const RoundPoint& point) const;
  /// The same for a gamma that is a mean.
  Range seconds_over_splits(double gamma, double batch, double context) const;

  std::size_t rank() const { return rank_; }
  std::span<const FittedTerm> terms() const { return terms_; }
  std::span<const IdentifiedCombination> combinations() const { return combinations_; }
  /// Of each run, in their order.
  std::span<const double> fitted_seconds() const { return fitted_; }

 private:
  CostTerms regressors(double gamma, double batch, double context) const;
  Range over_splits(const CostTerms& regressors) const;
  RoundTime parts(const CostTerms& theta, const CostTerms& regressors) const;
  bool identified(const Range& range) const;
  void fit(std::span<const ObservedRound> runs);
  void describe_terms(std::span<const CostTerms> combinations, bool has_residuals);
  void check_physics(std::span<const ObservedRound> runs);

  FitOptions options_;
  /// Of the polytope of splits.
  std::vector<CostTerms> vertices_;
  std::array<bool, cost_terms> seen_{};
  bool knows_contexts_ = false;
  std::vector<CostTerms> replicates_;
  std::size_t rank_ = 0;
  std::vector<FittedTerm> terms_;
  std::vector<IdentifiedCombination> combinations_;
  std::vector<double> fitted_;
  Range gammas_, batches_, contexts_;
  double usual_context_ = 0;
  std::vector<CostFinding> findings_;
};

/// One run as the others predict it.
struct LeftOut {
  std::string name = {};
  double measured_seconds = 0;
  /// Nothing where the other runs do not identify it.
  std::optional<double> predicted_seconds = {};
  /// Over all non-negative splits that fit the other runs.
  Range splits = {};
  /// predicted / measured - 1
  std::optional<double> relative_error() const;
};

/// Fits all runs but one, for each of the first `predicted` ones or all of them, and predicts that one.
/// @param runs  at least two
/// @throws as FittedCost; std::invalid_argument for fewer than two runs
std::vector<LeftOut> leave_one_out(std::span<const ObservedRound> runs, const FitOptions& options,
                                   std::optional<std::size_t> predicted = std::nullopt);

}  // namespace specdec::cost
