#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/planning/deployment_plan.hpp"

namespace specdec::planning {

/// Possible error of ln(value) below and above; both >= 0.
struct LogError {
  double below = 0;
  double above = 0;

  double squares() const { return below * below + above * above; }
};

/// That of tokens per step: the half-widths of its confidence interval and of its readings, added.
LogError error_of_tokens(const estimate::TokensPerStep& tokens);
/// That of the ratio of two rounds' seconds, 95% of the replicates; 0 without any.
LogError error_of_ratio(const cost::RoundCost& cost, const cost::RoundPoint& numerator,
                        const cost::RoundPoint& denominator);

/// A draft's acceptance at every compared gamma, looked up once, and the prices of its rounds at any requested
/// point.
class DraftScan {
 public:
  /// @param max_gamma  the largest gamma to compare, >= 0; fewer are compared if the acceptance ends earlier
  DraftScan(const DeploymentDraft& draft, std::int64_t max_gamma);

  const DeploymentDraft& draft() const { return *draft_; }
  /// The same with the acceptance of a context, where that has its own.
  const DraftScan& at(double context) const;
  /// [gamma]; at least gamma = 0.
  const std::vector<estimate::TokensPerStep>& tokens() const { return tokens_; }
  /// [gamma]: the half-widths of ln(tokens per step) by the confidence interval alone, and by the readings alone.
  const std::vector<LogError>& sampling_error() const { return sampling_; }
  const std::vector<LogError>& readings_error() const { return readings_; }
  /// [gamma]: both together: their sum, limited to 1 and gamma + 1 tokens.
  const std::vector<LogError>& acceptance_error() const { return acceptance_; }
  /// True if acceptance is a range that is stated, or a bracket that a recording leaves: the best gamma is that of
  /// minimax regret over the ends of the range.
  bool has_range() const { return bracketed_ || draft_->states_range; }
  bool bracketed() const { return bracketed_; }
  /// [gamma]: the half-widths of ln(tokens per step) of that range: of a bracket without sampling.
  const std::vector<LogError>& range_error() const { return bracketed_ ? bracket_ : acceptance_; }
  /// The reason why there are no more gammas; empty if all that were requested are there.
  const std::string& acceptance_limit() const { return limit_; }

  cost::RoundPoint point(std::int64_t gamma, double batch, double context) const;

  /// The rounds of gamma = 0, 1, 2, ... as far as they have a price; the first gamma without one ends them.
  /// @param limit  if not null, receives the reason why there are no more
  /// @throws std::domain_error if gamma = 0 has no price, or one that is not positive and finite
  void price(double batch, double context, std::vector<cost::RoundTime>& times, std::string* limit = nullptr) const;

  /// The reason why plain decoding has no price there; empty if it has one.
  std::string plain_refused(double batch, double context) const;

  /// The basis of the price of plain decoding, if it has one; extrapolated also where rounds were timed, but none with
  /// drafts near this batch and context.
  PriceBasis basis(double batch, double context) const;

  /// True if rounds were timed, but not up to this gamma, whose price no replicates limit; false where plain decoding
  /// lies beyond the measurements, too.
  bool is_guessed(std::int64_t gamma, double batch, double context) const;

  /// The largest speedup that a gamma without a price could have if it cost as much as the largest one with a price,
  /// by the upper ends of 95% intervals; 0 if all have one, and infinite if the acceptance covers no gamma.
  ///
  ///   max over gamma >= |times| of tokens(gamma) round(0) / round(|times| - 1)
  ///
  /// @param times  from price() at this batch and context
  double most_without_price(double batch, double context, const std::vector<cost::RoundTime>& times) const;

  /// The gamma without a price that should be timed first: the largest that the acceptance was measured at, or, if it
  /// covers all alike, the smallest that yields half of what the largest one adds to a token per step.
  /// @param priced  the number of gammas with a price, starting from 0
  std::int64_t gamma_to_time(std::size_t priced) const;

  /// [gamma]: the half-widths of ln(round(0) / round(gamma)) from the replicates of the cost, the central 95% of them,
  /// or as wide as measured speedups require. A replicate that prices nothing lies at both ends.
  std::vector<LogError> cost_error(double batch, double context, const std::vector<cost::RoundTime>& times) const;

 private:
  bool no_drafts_timed(double batch, double context) const;
  /// The error for one gamma; `plain` holds the totals of the replicates for plain decoding.
  LogError cost_error_of(const cost::RoundPoint& at, double ratio, const std::vector<double>& plain) const;

  /// The draft with the acceptance of the contexts from one on.
  struct AtContext {
    double from = 0;
    std::shared_ptr<const DeploymentDraft> draft;
    std::shared_ptr<const DraftScan> scan;
  };

  const DeploymentDraft* draft_;
  std::vector<AtContext> by_context_;
  std::vector<estimate::TokensPerStep> tokens_;
  std::vector<LogError> sampling_, readings_, acceptance_, bracket_;
  bool bracketed_ = false;
  std::string limit_;

  /// ln(measured / planned) of a measured speedup.
  struct Miss {
    const MeasuredSpeedup* at;
    double log_ratio;
  };
  std::vector<Miss> misses_;
  LogError misses_near(std::int64_t gamma, double batch, double context) const;
};

/// The constant acceptance rate above which some gamma is faster than plain decoding:
///
///   the smallest root alpha over gamma >= 1 of (1 + alpha + ... + alpha^gamma) round(0) = round(gamma)
///
/// with alpha^gamma as the share of full accepts.
/// Source:   docs/theory.md#break-even
/// @param times  from DraftScan::price() at this batch and context
/// @return 0 if some round costs no more than a plain one; empty if no rate below 1 pays
/// Accuracy: absolute error <= 1e-12
std::optional<double> break_even_alpha(const cost::RoundCost& cost, double batch, double context,
                                       const std::vector<cost::RoundTime>& times);

/// Plans one point; `deployed` is the gamma in use there, which must have a price if the point has any.
PointPlan plan_point(const DraftScan& scan, double batch, double context, const DeploymentQuestion& question,
                     std::optional<std::int64_t> deployed);

}  // namespace specdec::planning
