#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/round_moments.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "analysis/theory/two_state_acceptance.hpp"

namespace specdec::estimate {

/// What the drafts behind the longest one observed are taken to do.
enum class BeyondObserved {
  hold,       ///< as the reading goes on: the last conditional rate, alpha_hat, the two-state chain
  geometric,  ///< the same, but conditional rates go on with alpha_hat
  zero,       ///< never accepted
};

/// What each reading of one measurement says of tokens per step at one gamma.
struct AcceptanceReadings {
  double constant_rate = 1;
  double hazards = 1;
  /// Nothing where no two-state chain with persistent states fits better than one rate.
  std::optional<double> two_state;
};

/// Tokens per step from counters of a chain.
///
/// At the gamma that every round was measured with: 1 + accepted / rounds, as it was counted. At another gamma rounds
/// start elsewhere in the text, and what carries over is a matter of reading: one rate alpha_hat at every position; the
/// conditional rates by position; or a two-state chain fitted to them. `readings` is the range of the three. The value
/// is the chain's where one with persistent states fits better than one rate (conditional rates that rise with the
/// position), else that of the conditional rates.
///
/// Where only accepted drafts and rounds are known, the one reading is the constant rate; where alpha is known within
/// bounds only, readings are those of the bounds, and the value that of the rate in them that gives the tokens per step
/// that were counted, drafts taken to be as equally long as their mean allows. Without any gamma there is none.
/// ci95 rests on what the summary's intervals rest on: `method`. By linearisation over the conditional rates; through
/// the fit by central differences over one standard error to each side.
/// Source:   docs/theory.md#acceptance-from-counters
class MeasuredAcceptance final : public AcceptanceCurve {
 public:
  struct Options {
    BeyondObserved beyond = BeyondObserved::hold;
    /// Factor on the variance where rounds are taken as independent, >= 1.
    double design_effect = 1;
    /// Whether readings behind the longest observed draft hold the steepest of published_depth_ratios, where rates are
    /// held; not where other counts say what longer drafts do.
    bool falls_beyond = true;
  };
  /// @throws std::domain_error for a tree or an unknown shape, or without rounds, drafted tokens or gamma: what is
  ///         missing is named; for a design effect below 1
  MeasuredAcceptance(const ServingSummary& summary, Options options);
  explicit MeasuredAcceptance(const ServingSummary& summary) : MeasuredAcceptance(summary, Options{}) {}

  /// @throws std::domain_error if gamma < 0
  TokensPerStep tokens_per_step(std::int64_t gamma) const override;

  /// The readings at any gamma, also at the one that was measured.
  /// @throws std::domain_error as tokens_per_step
  AcceptanceReadings readings(std::int64_t gamma) const;
  /// The gamma of every round; nothing where lengths vary or are unknown.
  std::optional<std::int64_t> measured_gamma() const { return measured_gamma_; }
  /// The last position whose drafts were looked at; the measured gamma where positions are unknown, 0 where that is
  /// too.
  std::int64_t longest_observed() const { return longest_observed_; }
  /// The two-state chain fitted to the conditional rates, as its two rates; nothing where it would be one rate.
  const std::optional<theory::TwoRates>& two_rates() const { return centre_.two_rates; }
  /// How ci95 was made: "iid_rounds", "clusters", "batch_means".
  std::string_view method() const { return name_of(basis_); }

 private:
  /// What one set of conditional rates says.
  struct Fit {
    double alpha = 0;
    core::AcceptanceProfile hazards = core::AcceptanceRate(0.0);
    std::optional<theory::TwoRates> two_rates;
  };
  void take_positions(const ServingSummary& summary);
  void take_rate_alone(const ServingSummary& summary);
  Fit fit_of(const std::vector<double>& rates) const;
  std::int64_t effective(std::int64_t gamma) const;
  bool falls_behind(std::int64_t drafts) const;
  TokensPerStep of_positions(std::int64_t gamma) const;
  TokensPerStep of_rate_alone(std::int64_t gamma) const;
  Interval interval(double value, std::int64_t gamma, bool measured) const;

  Options options_;
  IntervalBasis basis_ = IntervalBasis::none;
  std::optional<std::int64_t> measured_gamma_;
  std::int64_t longest_observed_ = 0;
  double measured_tokens_ = 1;
  std::optional<Interval> measured_ci95_;
  /// alpha or its bounds, and the interval about them.
  Interval alpha_ = {0, 0}, alpha_ci95_ = {0, 1};
  /// The one rate where only alpha is known.
  double constant_alpha_ = 0;

  /// The counts by position; empty where only alpha is known.
  RoundMoments moments_;
  /// [length] = share of rounds that draft so many.
  std::vector<double> share_by_drafted_;
  /// [j] = of the rounds alive after j drafts, the share that drafts another one.
  std::vector<double> going_on_;
  Fit centre_;
  /// A standard error of each conditional rate, downwards and upwards, and what the counts would say there.
  struct Shift {
    double width = 0;
    Fit below, above;
  };
  std::vector<Shift> shifts_;
};

}  // namespace specdec::estimate
