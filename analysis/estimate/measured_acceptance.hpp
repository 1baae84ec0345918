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

/// The assumed acceptance of drafts beyond the longest one observed.
enum class BeyondObserved {
  hold,       ///< continues the reading: the last conditional rate, alpha_hat, the two-state chain
  geometric,  ///< the same, but conditional rates continue with alpha_hat
  zero,       ///< never accepted
};

/// Tokens per step at one gamma by each reading of one measurement.
struct AcceptanceReadings {
  double constant_rate = 1;
  double hazards = 1;
  /// Empty if no two-state chain with persistent states fits better than one rate.
  std::optional<double> two_state;
};

/// Tokens per step from counters of a chain.
///
/// At the gamma of every measured round: 1 + accepted / rounds, as counted. At another gamma, rounds
/// start elsewhere in the text, and what carries over depends on the reading: one rate alpha_hat at every position; the
/// conditional rates by position; or a two-state chain fitted to them. `readings` is the range of the three. The value
/// is the chain's if one with persistent states fits better than one rate (conditional rates that rise with the
/// position), otherwise that of the conditional rates.
///
/// If only accepted drafts and rounds are known, the value is that of the constant rate; readings of drafts shorter
/// than those counted are those of a typed length (typed_lengths): rates that fall or rise with the depth. If alpha is
/// known only within bounds, the readings are those of the bounds, and the value is that of the rate within them that
/// gives the counted tokens per step, assuming draft lengths as equal as their mean allows. Without any gamma there is
/// no value. Where drafts are of several lengths, the value is that of rounds which all draft gamma tokens, and the
/// readings include rounds whose drafts end where they did (a server may end those that look poor). ci95 has the basis
/// of the summary's intervals, see `method`. By linearisation over the conditional rates; through the fit by central
/// differences over one standard error to each side. Source: docs/theory.md#acceptance-from-counters
class MeasuredAcceptance final : public AcceptanceCurve {
 public:
  struct Options {
    BeyondObserved beyond = BeyondObserved::hold;
    /// Factor on the variance if rounds are taken as independent, >= 1.
    double design_effect = 1;
    /// True if readings beyond the longest observed draft include the steepest of published_depth_ratios, for rates
    /// that are held; false if other counts determine the acceptance of longer drafts.
    bool falls_beyond = true;
    /// True if rounds may have had no draft, as where drafts are looked up: where only accepted drafts and rounds are
    /// known, the readings include rounds that accept all of their drafts or none.
    bool may_miss = false;
  };
  /// @throws std::domain_error for a tree or an unknown shape, or without rounds, drafted tokens or gamma (the message
  ///         names what is missing); for a design effect below 1
  MeasuredAcceptance(const ServingSummary& summary, Options options);
  explicit MeasuredAcceptance(const ServingSummary& summary) : MeasuredAcceptance(summary, Options{}) {}

  /// @throws std::domain_error if gamma < 0
  TokensPerStep tokens_per_step(std::int64_t gamma) const override;
  /// At the gamma of every measured round the counted shares.
  std::vector<double> survival(std::int64_t gamma) const override;
  bool assumes_beyond() const override { return options_.beyond != BeyondObserved::hold; }

  /// The readings at any gamma, including the measured one.
  /// @throws std::domain_error as tokens_per_step
  AcceptanceReadings readings(std::int64_t gamma) const;
  /// The gamma of every round; empty if lengths vary or are unknown.
  std::optional<std::int64_t> measured_gamma() const { return measured_gamma_; }
  /// The last position whose drafts were examined; the measured gamma if positions are unknown, 0 if that is unknown
  /// too.
  std::int64_t longest_observed() const { return longest_observed_; }
  /// The two rates of the two-state chain fitted to the conditional rates; empty if one rate fits as well.
  const std::optional<theory::TwoRates>& two_rates() const { return centre_.two_rates; }
  /// The method behind ci95: "iid_rounds", "clusters", "batch_means".
  std::string_view method() const { return name_of(basis_); }

 private:
  /// The results for one set of conditional rates.
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
  /// Those of rounds whose drafts end where they were counted to, at this many at the latest; empty if all are as long.
  std::optional<double> tokens_of_counted_lengths(std::int64_t drafts) const;
  Interval interval(double value, std::int64_t gamma, bool measured) const;

  Options options_;
  IntervalBasis basis_ = IntervalBasis::none;
  /// One request says nothing of how requests differ: Student's quantile without a degree of freedom is infinite.
  bool one_request_ = false;
  std::optional<std::int64_t> measured_gamma_;
  std::int64_t longest_observed_ = 0;
  double measured_tokens_ = 1;
  std::optional<Interval> measured_ci95_;
  /// alpha or its bounds, and the interval about them.
  Interval alpha_ = {0, 0}, alpha_ci95_ = {0, 1};
  /// The single rate, if only alpha is known, and the profiles with the counted tokens at the measured gamma.
  double constant_alpha_ = 0;
  std::vector<core::AcceptanceProfile> shorter_drafts_;

  /// The counts by position; empty if only alpha is known.
  RoundMoments moments_;
  /// [length] = share of rounds that draft this many tokens.
  std::vector<double> share_by_drafted_;
  /// [j] = the share of the rounds alive after j drafts that draft another one.
  std::vector<double> going_on_;
  Fit centre_;
  /// A standard error of each conditional rate, down and up, and the values that the counts would take there.
  struct Shift {
    double width = 0;
    Fit below, above;
  };
  std::vector<Shift> shifts_;
};

}  // namespace specdec::estimate
