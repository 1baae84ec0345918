#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "analysis/theory/two_state_acceptance.hpp"

namespace specdec::estimate {

/// What the drafts behind the longest one observed are taken to do.
enum class BeyondObserved {
  hold,       ///< the last conditional rate is held
  geometric,  ///< alpha_hat at every further position
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
/// At a gamma that every round was measured with: 1 + sum_j accepted_j / rounds as it was counted. At another gamma
/// rounds start elsewhere in the text, and what carries over is a matter of reading: one rate alpha_hat at every
/// position; the conditional rates by position; a two-state chain fitted to them, which is the point estimate where
/// there is one, else the conditional rates are.
/// Source:   docs/theory.md#acceptance-from-counters
class MeasuredAcceptance final : public AcceptanceCurve {
 public:
  struct Options {
    BeyondObserved beyond = BeyondObserved::hold;
    /// Factor on the variance where rounds are taken as independent, >= 1.
    double design_effect = 1;
  };
  /// @throws std::domain_error for a tree or an unknown shape, or where no rounds or lengths are known: what is
  ///         missing is named
  MeasuredAcceptance(const ServingSummary& summary, Options options);
  explicit MeasuredAcceptance(const ServingSummary& summary) : MeasuredAcceptance(summary, Options{}) {}

  TokensPerStep tokens_per_step(std::int64_t gamma) const override;

  AcceptanceReadings readings(std::int64_t gamma) const;
  /// The gamma of every round; nothing where lengths vary.
  std::optional<std::int64_t> measured_gamma() const { return measured_gamma_; }
  /// Longest draft that was looked at to its end.
  std::int64_t longest_observed() const { return static_cast<std::int64_t>(hazards_.size()); }
  /// The two-state chain fitted to the conditional rates, as its two rates; nothing where it would be one rate.
  const std::optional<theory::TwoRates>& two_rates() const { return two_rates_; }
  /// How ci95 was made: "iid_rounds", "clusters", "batch_means".
  std::string_view method() const { return name_of(basis_); }

 private:
  std::optional<std::int64_t> measured_gamma_;
  std::vector<double> hazards_;
  std::optional<theory::TwoRates> two_rates_;
  IntervalBasis basis_ = IntervalBasis::none;
};

}  // namespace specdec::estimate
