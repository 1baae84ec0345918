#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"
#include "analysis/core/distribution.hpp"

namespace specdec::theory {

/// Expected tokens of a step, the target's own token included: 1 + sum_i E[p_i].
/// Source:   docs/theory.md#block-verification
/// Assumes:  the same p and q at every position.
/// Time:     O(gamma vocab s), with s the number of values that p_i can take, at most vocab^i
/// @param gamma  drafted tokens per step, [0, 64]
/// @return in [1, gamma + 1], at least as many as with token verification
/// @throws std::invalid_argument if the rows differ in length
/// @throws std::domain_error if gamma is out of range
/// Accuracy: relative error <= 1e-13
inline double block_expected_tokens(const core::TargetDistribution& p, const core::DraftDistribution& q, std::int64_t gamma) {
  core::require_same_size("block_expected_tokens", "target distribution", p.size(), "draft distribution", q.size());
  core::require_in("block_expected_tokens", "gamma", gamma, 0, 64);
  std::map<double, double> law = {{1.0, 1.0}};  // law of p_i over the drafts, i = 0, 1, ...
  core::CompensatedSum tokens;
  tokens.add(1);
  for (std::int64_t i = 0; i < gamma; ++i) {
    std::map<double, double> next;
    for (const auto& [prefix, probability] : law) {
      for (std::size_t x = 0; x < p.size(); ++x)
        if (p[x] > 0 && q[x] > 0) next[std::min(1.0, prefix * p[x] / q[x])] += probability * q[x];
    }
    for (const auto& [prefix, probability] : next) tokens.add(prefix * probability);
    law = std::move(next);
  }
  return tokens.value();
}

}  // namespace specdec::theory
