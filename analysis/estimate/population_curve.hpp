#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/request_population.hpp"

namespace specdec::estimate {

/// Tokens per step where some gammas were measured: those as they are, and the others by the population of requests
/// that the figures allow, kept between what was measured of shorter and of longer drafts, unless the longer ones made
/// fewer. Those of the population are of the worlds that the default options draw, when they are first asked for, and
/// copies share them: the value is their median and the interval their central 95%.
class PopulationCurve : public AcceptanceCurve {
 public:
  struct Evidence {
    PopulationPrior prior = {};
    std::vector<LengthEvidence> lengths = {};
    std::vector<CountEvidence> counts = {};
    /// By gamma, where figures of it were measured: value and 95% interval.
    std::map<std::int64_t, TokensPerStep> measured = {};
    /// The shortest and the longest drafts that figures are known of, if not those of `measured`.
    std::optional<std::pair<std::int64_t, std::int64_t>> observed = {};
  };
  /// @throws std::domain_error if a figure is outside its range
  explicit PopulationCurve(Evidence evidence);

  /// Beyond gamma 4096 the drawn tokens are those there.
  /// @throws std::domain_error if gamma < 0
  TokensPerStep tokens_per_step(std::int64_t gamma) const override;
  TokenWorlds draw(std::int64_t max_gamma, const DrawOptions& options) const override;

  /// What is known of the population.
  const Evidence& evidence() const { return evidence_; }

 protected:
  PopulationCurve();

  Evidence evidence_;

 private:
  TokensPerStep drawn(std::int64_t gamma) const;

  struct Table;
  std::shared_ptr<Table> table_;
};

/// Tokens per step as they were measured, held within [1, gamma + 1], with the 95% interval of a relative error.
TokensPerStep as_measured(std::int64_t gamma, double tokens, double relative_error, double full_accepts);

/// Value and interval of one gamma from worlds: the median of the first alternative, the central 95% of each and their
/// hull. Full accepts are the gain of the last draft.
TokensPerStep tokens_of(const TokenWorlds& worlds, std::int64_t gamma);

/// The worlds with the gain of draft j times shares[j - 1], a token at most.
TokenWorlds thinned(TokenWorlds worlds, std::span<const double> shares);

/// The worlds of both; those of `other` are of alternatives of their own.
TokenWorlds joined(TokenWorlds worlds, const TokenWorlds& other);

}  // namespace specdec::estimate
