#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/estimate/estimate.hpp"

namespace specdec::estimate {

/// Tokens per step at one gamma, as far as a measurement determines them; all in [1, gamma + 1].
struct TokensPerStep {
  /// Point estimate, the bonus token included.
  double value = 1;
  /// 95% interval, from sampling and from what carries a measurement to another gamma; the value alone if acceptance is
  /// taken as exact.
  Interval ci95 = {1, 1};
  /// P(all gamma drafts of a round are accepted), [0, 1].
  double full_accepts = 0;
  /// True if gamma exceeds the longest observed draft.
  bool extrapolated = false;
  /// The ends between which the estimate lies where what was recorded leaves acceptance open, as top-k lists do; the
  /// value is then their middle, and `ci95` covers them. Empty if the value is determined.
  std::optional<Interval> bracket = {};
};

/// How many worlds are drawn of what is uncertain, and by which random numbers.
struct DrawOptions {
  /// Worlds of each alternative, >= 1; one world where nothing is uncertain.
  std::size_t worlds = 1000;
  std::uint64_t seed = 0;
};

/// Tokens per step of one acceptance in each of its worlds: ways it may be that the evidence allows.
struct TokenWorlds {
  /// [gamma][world], gamma = 0, 1, ...: in [1, gamma + 1], not falling in gamma; 1 at gamma = 0.
  std::vector<std::vector<double>> tokens;
  /// [world]: the alternative that it is a world of, from 0 on. Worlds of one alternative are equally likely;
  /// alternatives, such as the ends of an interval that somebody states, have no probability.
  std::vector<int> alternative;

  std::size_t worlds() const { return alternative.size(); }
};

/// Tokens per step for every gamma >= 0: from a rate, counters or a replayed recording.
class AcceptanceCurve {
 public:
  virtual ~AcceptanceCurve() = default;
  /// @param gamma  >= 0; the value is 1 at gamma = 0
  /// @throws std::domain_error if gamma < 0 or beyond what the source covers
  virtual TokensPerStep tokens_per_step(std::int64_t gamma) const = 0;
  /// P(the first j drafts of a round of gamma drafts are all accepted), j = 1 .. gamma, not rising in j. By default
  /// what each draft gains, tokens_per_step(j) - tokens_per_step(j - 1): exact where acceptance depends on nothing but
  /// the position. Gains that rise are made level, so that the sum stays tokens_per_step(gamma) - 1.
  /// @throws as tokens_per_step
  virtual std::vector<double> survival(std::int64_t gamma) const;
  /// Worlds of this acceptance, the same for every max_gamma. By default those of tokens_per_step: one normal
  /// moves all gammas together, each by its own interval as the central 95%; of a bracket the two ends are alternatives. One world where nothing is uncertain. Gammas end where tokens_per_step does.
  virtual TokenWorlds draw(std::int64_t max_gamma, const DrawOptions& options) const;
  /// The reason why nothing is decided by these figures, whatever their intervals; empty if there is none.
  virtual std::string refused() const { return {}; }
};

/// The table of a curve up to last_gamma, or up to where it ends.
/// @param last_gamma  >= 0
/// @return at least gamma = 0
std::vector<TokensPerStep> tabulated(const AcceptanceCurve& curve, std::int64_t last_gamma);

}  // namespace specdec::estimate
