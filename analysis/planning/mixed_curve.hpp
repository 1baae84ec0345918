#pragma once

#include <memory>
#include <string>
#include <vector>

#include "analysis/estimate/acceptance_curve.hpp"

namespace specdec::planning {

/// The acceptance of a group of requests, and its share of the traffic.
struct TrafficPart {
  std::shared_ptr<const estimate::AcceptanceCurve> acceptance;
  /// Its share of the tokens put out, > 0.
  double share = 1;
};

/// Acceptance of a mix of groups. A token of a group takes 1 / tau_i steps, so that with shares w_i of the tokens
///
///   tau = 1 / sum w_i / tau_i,   share of rounds r_i = (w_i / tau_i) tau
///
/// Readings are those of all groups at once. The 95% interval adds the errors of groups that were measured
/// independently in squares: with x_i = 1 / tau_i and x_i's ends l_i, u_i
///
///   1 / tau in [x - sqrt(sum w_i^2 (x_i - l_i)^2), x + sqrt(sum w_i^2 (u_i - x_i)^2)]
///
/// and those of groups that share texts or prompts as they are, which no correlation of theirs exceeds:
///
///   1 / tau in [x - sum w_i (x_i - l_i), x + sum w_i (u_i - x_i)]
///
/// Source:   docs/theory.md#traffic-mixes; interval: Zou and Donner 2008
/// Assumes:  requests of all groups decode in the same batches, so that steps of all cost the same
class MixedCurve : public estimate::AcceptanceCurve {
 public:
  enum class Errors { independent, shared };
  /// @param parts  at least one; shares are divided by their sum
  /// @throws std::invalid_argument if there is none; std::domain_error if a share is not above 0
  explicit MixedCurve(std::vector<TrafficPart> parts, Errors errors = Errors::independent);

  /// @throws as the curves of the groups
  estimate::TokensPerStep tokens_per_step(std::int64_t gamma) const override;
  /// The groups' worlds by their shares, each group's by random numbers of its own unless errors are shared. An
  /// alternative takes that of every group, the last of those that have fewer.
  estimate::TokenWorlds draw(std::int64_t max_gamma, const estimate::DrawOptions& options) const override;
  /// Those of the groups, by their shares of the rounds.
  std::vector<double> survival(std::int64_t gamma) const override;
  std::string refused() const override;

 private:
  std::vector<TrafficPart> parts_;
  Errors errors_;
};

}  // namespace specdec::planning
