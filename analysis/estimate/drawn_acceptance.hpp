#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimate/acceptance_curve.hpp"

namespace specdec::estimate {

/// Acceptance as the worlds that were drawn of it: draw() gives exactly these, again from the first where more are
/// asked for, so that world i is that of what was drawn beside it. Values are medians, intervals the central 95% of the
/// worlds.
class DrawnAcceptance final : public AcceptanceCurve {
 public:
  /// @param drawn   at least one world
  /// @param source  what they were drawn from, for all else that it says of itself; null if it says nothing
  /// @throws std::invalid_argument without a world
  explicit DrawnAcceptance(TokenWorlds drawn, std::shared_ptr<const AcceptanceCurve> source = {});

  /// @throws std::domain_error also beyond the gammas that were drawn
  TokensPerStep tokens_per_step(std::int64_t gamma) const override;
  TokenWorlds draw(std::int64_t max_gamma, const DrawOptions& options) const override;
  std::string refused() const override { return source_ == nullptr ? std::string() : source_->refused(); }

 private:
  TokenWorlds drawn_;
  std::vector<TokensPerStep> values_;
  std::shared_ptr<const AcceptanceCurve> source_;
};

/// The worlds of these numbers, in their order, as equally likely ones.
TokenWorlds chosen_worlds(const TokenWorlds& from, std::span<const std::size_t> worlds);

}  // namespace specdec::estimate
