#pragma once

#include <memory>

#include "analysis/core/lookup_law.hpp"
#include "analysis/estimate/acceptance_curve.hpp"

namespace specdec::estimate {

/// The acceptance of drafts that are looked up: another curve says how tokens that are proposed are accepted, a law how
/// many are.
///
///   E[tokens] = 1 + h sum_{k=1..gamma} P(L >= k) S_k
///
/// S_k is the other curve's survival, divided by that of its own misses and lengths if it includes some. Ends of
/// intervals are as far from 1 as before, in the same ratio. Source:
/// docs/theory.md#drafts-that-are-looked-up
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
  std::vector<double> survival(std::int64_t gamma) const override;
  std::string refused() const override { return proposed_->refused(); }

 private:
  /// The law's share of k drafted tokens or more, of that which the curve includes.
  double share_of(std::int64_t k) const;

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
