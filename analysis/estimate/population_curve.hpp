#pragma once

#include <map>
#include <memory>
#include <vector>

#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/request_population.hpp"

namespace specdec::estimate {

/// What the worlds of a curve say of each gamma: those of the default options, drawn when they are first asked for.
/// Copies share them.
class DrawnTokens {
 public:
  DrawnTokens();
  /// As tokens_of; beyond gamma 4096 as there.
  TokensPerStep at(const AcceptanceCurve& curve, std::int64_t gamma) const;

 private:
  struct Table;
  std::shared_ptr<Table> table_;
};

/// Tokens per step where some gammas were measured: those as they are, and the others by the population of requests
/// that the figures allow. The value is the median of the worlds and the interval their central 95%.
class PopulationCurve final : public AcceptanceCurve {
 public:
  struct Evidence {
    PopulationPrior prior = {};
    std::vector<LengthEvidence> lengths = {};
    std::vector<CountEvidence> counts = {};
    /// By gamma, where figures of it were measured: value and 95% interval.
    std::map<std::int64_t, TokensPerStep> measured = {};
  };
  /// @throws std::domain_error if a figure is outside its range
  explicit PopulationCurve(Evidence evidence);

  TokensPerStep tokens_per_step(std::int64_t gamma) const override;
  TokenWorlds draw(std::int64_t max_gamma, const DrawOptions& options) const override;

 private:
  Evidence evidence_;
  DrawnTokens drawn_;
};

/// What was measured of the gamma; else the drawn tokens, kept between what was measured of shorter and of longer
/// drafts, unless the longer ones made fewer.
TokensPerStep beside_measured(const std::map<std::int64_t, TokensPerStep>& measured, std::int64_t gamma,
                              const DrawnTokens& drawn, const AcceptanceCurve& curve);

/// Value and interval of one gamma from worlds: the median of the first alternative, the central 95% of each and their
/// hull. Full accepts are the gain of the last draft.
TokensPerStep tokens_of(const TokenWorlds& worlds, std::int64_t gamma);

/// The worlds with the gain of draft j times shares[j - 1], a token at most.
TokenWorlds thinned(TokenWorlds worlds, std::span<const double> shares);

/// The worlds of both; those of `other` are of alternatives of their own.
TokenWorlds joined(TokenWorlds worlds, const TokenWorlds& other);

}  // namespace specdec::estimate
