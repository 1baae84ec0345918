#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/population_curve.hpp"
#include "analysis/estimate/serving_summary.hpp"

namespace specdec::estimate {

/// Tokens per step from counters of a chain.
///
/// At the gamma of every measured round: 1 + accepted / rounds, as counted, with the basis of the summary's intervals,
/// see `method`; where rounds are all that is known, with that of a population whose requests take 64 rounds each. At
/// another gamma by the population of requests (population_worlds): of the counts by position, or of the mean where
/// these are unknown or drafts are looked up. What counts leave open without a probability are alternatives: drafts
/// that end where they did, or that go on (a server may end those that look poor), at the upper end of alpha where it
/// is known within bounds.
/// Source:   docs/theory.md#acceptance-from-counters
class MeasuredAcceptance final : public PopulationCurve {
 public:
  struct Options {
    /// The kind of the drafts, if it is known.
    std::optional<cost::DraftKind> kind = {};
    /// The requests behind the counts, if these do not tell.
    std::optional<double> requests = {};
  };
  /// @throws std::domain_error for a tree or an unknown shape, or without rounds, drafted tokens or gamma (the message
  ///         names what is missing)
  MeasuredAcceptance(const ServingSummary& summary, const Options& options);
  explicit MeasuredAcceptance(const ServingSummary& summary) : MeasuredAcceptance(summary, Options{}) {}

  /// At the gamma of every measured round the counted shares.
  std::vector<double> survival(std::int64_t gamma) const override;
  TokenWorlds draw(std::int64_t max_gamma, const DrawOptions& options) const override;

  /// The gamma of every round; empty if lengths vary or are unknown.
  std::optional<std::int64_t> measured_gamma() const { return measured_gamma_; }
  /// The method behind ci95 at the measured gamma: "iid_rounds", "clusters", "batch_means".
  std::string_view method() const { return name_of(basis_); }

 private:
  void take_positions(const ServingSummary& summary);
  void take_rate_alone(const ServingSummary& summary);
  /// The relative error of the tokens per step as counted.
  double error_of(const ServingSummary& summary, const CountEvidence& counted) const;
  double requests_of(const ServingSummary& summary, double rounds) const;

  Options options_;
  IntervalBasis basis_ = IntervalBasis::none;
  std::optional<std::int64_t> measured_gamma_;
  std::int64_t longest_observed_ = 0;
  /// By position, as counted; empty if positions are unknown.
  std::vector<double> counted_survival_;
  /// Other evidence that the counts allow, without a probability.
  std::vector<Evidence> alternatives_;
  /// [j - 1] = P(the first j drafts are made | they would be accepted); empty if all rounds draft as many.
  std::vector<double> made_;
};

}  // namespace specdec::estimate
