#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "analysis/core/lookup_law.hpp"
#include "analysis/estimate/acceptance_curve.hpp"

namespace specdec::estimate {

/// The acceptance of drafts that are looked up: another curve says how tokens that are proposed are accepted, a law how
/// many are.
///
///   E[tokens] = 1 + h (t - 1),   t = 1 + sum_{k=1..gamma} P(L >= k) S_k
///
/// S_k is the other curve's survival, and h and P are divided by its own misses and lengths if it includes some. Where
/// h was counted at one gamma, the same tokens are copied at the others, in fewer or more rounds: with n the share of
/// the tokens that are not,
///
///   E[tokens] = 1 / (n + (1 - n) / t)
///
/// Source:   docs/theory.md#drafts-that-are-looked-up
class LookupCurve final : public AcceptanceCurve {
 public:
  /// @param included  the misses and lengths that the curve includes
  /// @throws std::invalid_argument if proposed is null; std::domain_error if a law is outside its range, or the
  /// included
  ///         hit rate 0
  LookupCurve(std::shared_ptr<const AcceptanceCurve> proposed, const core::LookupLaw& law,
              const core::LookupLaw& included = {});

  TokensPerStep tokens_per_step(std::int64_t gamma) const override;
  /// Those of what is proposed, by the law.
  TokenWorlds draw(std::int64_t max_gamma, const DrawOptions& options) const override;
  std::string refused() const override { return proposed_->refused(); }

 private:
  /// Rounds of hits and of misses.
  struct Mixed {
    double tokens, hit_rate;
  };
  /// @param tokens   of hits
  /// @param counted  the same at law.counted_at
  Mixed mixed(double tokens, double counted) const;
  /// Tokens of hits.
  TokensPerStep of_hits(std::int64_t gamma) const;
  /// Of the law's lengths, and of those that the curve includes.
  double share_reaching(std::int64_t k) const;

  std::shared_ptr<const AcceptanceCurve> proposed_;
  core::LookupLaw law_, included_;
};

/// The acceptance of drafts that are looked up where nobody knows how many are: that of what is proposed, as if every
/// round proposed gamma tokens.
class UnknownLookups final : public AcceptanceCurve {
 public:
  /// @throws std::invalid_argument if proposed is null
  explicit UnknownLookups(std::shared_ptr<const AcceptanceCurve> proposed);

  TokensPerStep tokens_per_step(std::int64_t gamma) const override { return proposed_->tokens_per_step(gamma); }
  std::vector<double> survival(std::int64_t gamma) const override { return proposed_->survival(gamma); }
  /// That of what is proposed, and as an alternative that nothing is.
  TokenWorlds draw(std::int64_t max_gamma, const DrawOptions& options) const override;
  std::string refused() const override { return proposed_->refused(); }

 private:
  std::shared_ptr<const AcceptanceCurve> proposed_;
};

}  // namespace specdec::estimate
