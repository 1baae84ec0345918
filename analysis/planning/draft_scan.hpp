#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/planning/deployment_plan.hpp"

namespace specdec::planning {

/// How far ln(value) may be off below and above; both >= 0.
struct LogError {
  double below = 0;
  double above = 0;

  double squares() const { return below * below + above * above; }
};

/// A draft's acceptance at every gamma that is compared, looked up once, and its rounds priced wherever they are asked
/// for.
class DraftScan {
 public:
  /// @param max_gamma  the largest gamma to compare, >= 0; fewer are where the acceptance does not speak of them
  DraftScan(const DeploymentDraft& draft, std::int64_t max_gamma);

  const DeploymentDraft& draft() const { return *draft_; }
  /// [gamma]; at least gamma = 0.
  const std::vector<estimate::TokensPerStep>& tokens() const { return tokens_; }
  /// [gamma]: the half-widths of ln(tokens per step) by the confidence interval alone, and by the readings alone.
  const std::vector<LogError>& sampling_error() const { return sampling_; }
  const std::vector<LogError>& readings_error() const { return readings_; }
  /// [gamma]: the two together: their sum, within 1 and gamma + 1 tokens.
  const std::vector<LogError>& acceptance_error() const { return acceptance_; }
  /// Why there are no more gammas; empty where there are as many as were asked for.
  const std::string& acceptance_limit() const { return limit_; }

  cost::RoundPoint point(std::int64_t gamma, double batch, double context) const;

  /// The rounds of gamma = 0, 1, 2, ... as far as they have a price; a gamma without one ends them.
  /// @param limit  receives why there are no more, where it is not null
  /// @throws std::domain_error where gamma = 0 has none, or one that is not positive and finite
  void price(double batch, double context, std::vector<cost::RoundTime>& times, std::string* limit = nullptr) const;

  /// Why plain decoding has no price there; empty where it has one.
  std::string plain_refused(double batch, double context) const;

  /// What the price of plain decoding rests on, where it has one.
  PriceBasis basis(double batch, double context) const;

  /// The largest speedup that a gamma without a price could have, were it to cost what the largest one with a price
  /// does, by the upper ends of 95% intervals; 0 where all have one, and infinite where the acceptance knows no gamma.
  ///
  ///   max over gamma >= |times| of tokens(gamma) round(0) / round(|times| - 1)
  ///
  /// @param times  of price() at this batch and context
  double most_without_price(double batch, double context, const std::vector<cost::RoundTime>& times) const;

  /// Of the gammas without a price the one to time first: the largest that the acceptance was measured at, or, where it
  /// speaks of all alike, the smallest that yields half of what the largest one adds to a token per step.
  /// @param priced  the number of gammas with a price, from 0 on
  std::int64_t gamma_to_time(std::size_t priced) const;

  /// [gamma]: the half-widths of ln(round(0) / round(gamma)) by the replicates of the cost, the central 95% of them, or
  /// as wide as measured speedups demand. A replicate that prices nothing lies at both ends.
  std::vector<LogError> cost_error(double batch, double context, const std::vector<cost::RoundTime>& times) const;

 private:
  /// Of one gamma; `plain` are the totals of the replicates of plain decoding.
  LogError cost_error_of(const cost::RoundPoint& at, double ratio, const std::vector<double>& plain) const;

  const DeploymentDraft* draft_;
  std::vector<estimate::TokensPerStep> tokens_;
  std::vector<LogError> sampling_, readings_, acceptance_;
  std::string limit_;

  /// ln(measured / planned) of a speedup that was measured.
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
/// with alpha^gamma for the share of full accepts.
/// Source:   docs/theory.md#break-even
/// @param times  of DraftScan::price at this batch and context
/// @return 0 where some round costs no more than a plain one; nothing where no rate below 1 pays
/// Accuracy: absolute error <= 1e-12
std::optional<double> break_even_alpha(const cost::RoundCost& cost, double batch, double context,
                                       const std::vector<cost::RoundTime>& times);

/// Plans one point; `deployed` is the gamma in use there, of which there must be a price where the point has any.
PointPlan plan_point(const DraftScan& scan, double batch, double context, const DeploymentQuestion& question,
                     std::optional<std::int64_t> deployed);

}  // namespace specdec::planning
