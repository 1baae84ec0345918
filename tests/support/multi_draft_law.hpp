#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"
#include "analysis/theory/multi_draft.hpp"

/// Whole laws of several drafts for one position, by sums over all of them: what the rules of sim are held against.
namespace specdec::theory {

inline constexpr double most_sequences = 1e7;
inline constexpr std::int64_t most_drafted_tokens = 20;
inline constexpr std::int64_t longest_chain = 1'000'000;

inline double mass_of(std::span<const double> row) {
  return core::sum_of_terms(row.size(), [&](std::size_t x) { return row[x]; });
}

inline void require_drafts(std::string_view function, const core::TargetDistribution& p,
                           const core::DraftDistribution& q, std::int64_t k) {
  core::require_same_size(function, "target distribution", p.size(), "draft distribution", q.size());
  core::require_in(function, "k", k, 1, most_drafts);
}

inline std::vector<double> scaled_to_one(std::span<const double> row) {
  std::vector<double> scaled(row.begin(), row.end());
  const double sum = mass_of(row);
  for (double& value : scaled) value /= sum;
  return scaled;
}

/// The law of what one position emits, and how. accepted + corrected is the law of the token, which is p.
struct MultiDraftLaw {
  /// [i - 1] = P(draft i is the accepted one). Shape: (k)
  std::vector<double> by_draft;
  /// P(a draft is accepted, and it is x). Shape: (vocab)
  std::vector<double> accepted;
  /// P(no draft is accepted, and the emitted token is x). Shape: (vocab)
  std::vector<double> corrected;

  /// P(some draft is accepted).
  core::AcceptanceRate acceptance() const {
    return core::AcceptanceRate::from_masses(mass_of(accepted), mass_of(corrected));
  }
};

inline MultiDraftLaw no_law(std::size_t vocab, std::int64_t k) {
  return {std::vector<double>(static_cast<std::size_t>(k)), std::vector<double>(vocab), std::vector<double>(vocab)};
}

/// Replaces p by norm(max(0, p - q)). Returns the mass that was left; p is unchanged if that is 0.
inline double take_residual(std::vector<double>& p, std::span<const double> q) {
  const double mass = core::sum_of_terms(p.size(), [&](std::size_t x) { return std::max(0.0, p[x] - q[x]); });
  if (mass > 0)
    for (std::size_t x = 0; x < p.size(); ++x) p[x] = std::max(0.0, p[x] - q[x]) / mass;
  return mass;
}

/// Calls accepted(i, x, P(draft i is the accepted one and is x)) for i = 0..k-1 and returns the correction, including
/// the mass that is left.
template <class Accepted>
std::vector<double> reject_recursively(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                       std::int64_t k, Accepted accepted) {
  std::vector<double> residual(p.probabilities().begin(), p.probabilities().end());
  double reached = 1;  // P(draft i is examined)
  for (std::int64_t i = 0; i < k && reached > 0; ++i) {
    for (std::size_t x = 0; x < p.size(); ++x) {
      if (const double mass = std::min(residual[x], q[x]); mass > 0) accepted(i, x, reached * mass);
    }
    reached *= take_residual(residual, q.probabilities());
  }
  for (double& value : residual) value *= reached;
  return residual;
}

/// One draft after the other, each without those rejected before it.
class WithoutReplacement {
 public:
  explicit WithoutReplacement(MultiDraftLaw& law) : law_(law) {}

  void visit(std::size_t i, const std::vector<double>& target, const std::vector<double>& draft, double reached) {
    if (i == law_.by_draft.size() || draft.empty()) {
      for (std::size_t x = 0; x < target.size(); ++x) law_.corrected[x] += reached * target[x];
      return;
    }
    for (std::size_t x = 0; x < target.size(); ++x) {
      const double mass = reached * std::min(target[x], draft[x]);
      law_.accepted[x] += mass;
      law_.by_draft[i] += mass;
    }
    std::vector<double> residual = target;
    if (take_residual(residual, draft) == 0) return;
    for (std::size_t x = 0; x < target.size(); ++x) {
      if (draft[x] > target[x]) visit(i + 1, residual, without(draft, x), reached * (draft[x] - target[x]));
    }
  }

 private:
  /// Empty if nothing is left to draw.
  static std::vector<double> without(std::vector<double> draft, std::size_t token) {
    draft[token] = 0;
    return mass_of(draft) > 0 ? scaled_to_one(draft) : std::vector<double>();
  }

  MultiDraftLaw& law_;
};

inline MultiDraftLaw recursive_rejection_without_replacement(const core::TargetDistribution& p,
                                                      const core::DraftDistribution& q, std::int64_t k) {
  const auto drafted = static_cast<double>(p.size());
  double sequences = 1;
  for (std::int64_t i = 0; i < k; ++i) sequences *= std::max(1.0, drafted - static_cast<double>(i));
  if (!(sequences <= most_sequences))
    throw std::domain_error("recursive_rejection: drafts without replacement make more than 1e7 sequences");
  MultiDraftLaw law = no_law(p.size(), k);
  WithoutReplacement(law).visit(0, scaled_to_one(p.probabilities()), scaled_to_one(q.probabilities()), 1);
  return law;
}

/// max_H Q(H)^k - P(H) over the initial segments H of the tokens in descending order of q/p.
inline double transport_rejection_with(const core::TargetDistribution& p, const core::DraftDistribution& q, std::int64_t k) {
  std::vector<std::size_t> tokens;
  for (std::size_t x = 0; x < p.size(); ++x)
    if (q[x] > 0) tokens.push_back(x);
  std::sort(tokens.begin(), tokens.end(), [&](std::size_t a, std::size_t b) { return q[a] / p[a] > q[b] / p[b]; });
  core::CompensatedSum target;
  core::CompensatedSum draft;
  double rejection = 0;
  for (const std::size_t x : tokens) {
    target.add(p[x]);
    draft.add(q[x]);
    rejection = std::max(rejection, std::pow(std::min(draft.value(), 1.0), static_cast<double>(k)) - target.value());
  }
  return rejection;
}

/// The same over all sets H of the tokens that can be drafted; sets are bit masks.
inline double transport_rejection_without(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                   std::int64_t k) {
  std::vector<double> target;
  std::vector<double> draft;
  for (std::size_t x = 0; x < p.size(); ++x) {
    if (q[x] == 0) continue;
    target.push_back(p[x]);
    draft.push_back(q[x]);
  }
  core::require_in("transport_acceptance", "tokens with q > 0, drawn without replacement,",
                   static_cast<std::int64_t>(draft.size()), 1, most_drafted_tokens);
  const std::size_t tokens = draft.size();
  const auto drawn = static_cast<int>(std::min(k, static_cast<std::int64_t>(tokens)));
  const std::size_t sets = std::size_t{1} << tokens;
  std::vector<double> target_mass(sets, 0.0);
  std::vector<double> draft_mass(sets, 0.0);
  for (std::size_t set = 1; set < sets; ++set) {
    const auto lowest = static_cast<std::size_t>(std::countr_zero(set));
    target_mass[set] = target_mass[set & (set - 1)] + target[lowest];
    draft_mass[set] = draft_mass[set & (set - 1)] + draft[lowest];
  }
  // P(the first |S| drafts are the set S), summed over the choices of the last one; then over the sets within each set.
  std::vector<double> within(sets, 0.0);
  within[0] = 1;
  for (std::size_t set = 1; set < sets; ++set) {
    if (std::popcount(set) > drawn) continue;
    for (std::size_t x = 0; x < tokens; ++x) {
      const std::size_t before = set & ~(std::size_t{1} << x);
      if (before != set) within[set] += within[before] * draft[x] / draft_mass[(sets - 1) & ~before];
    }
  }
  for (std::size_t set = 0; set < sets; ++set)
    if (std::popcount(set) != drawn) within[set] = 0;
  for (std::size_t x = 0; x < tokens; ++x)
    for (std::size_t set = 0; set < sets; ++set)
      if (set >> x & 1) within[set] += within[set & ~(std::size_t{1} << x)];
  double rejection = 0;
  for (std::size_t set = 0; set < sets; ++set) rejection = std::max(rejection, within[set] - target_mass[set]);
  return rejection;
}

/// P(i of n chains draft x) for i = 0..n.
inline std::vector<double> copies_of(double probability, std::int64_t n) {
  std::vector<double> copies(static_cast<std::size_t>(n) + 1, 0.0);
  copies[0] = 1;
  for (std::size_t chain = 1; chain < copies.size(); ++chain) {
    for (std::size_t i = chain; i > 0; --i) copies[i] = copies[i] * (1 - probability) + copies[i - 1] * probability;
    copies[0] *= 1 - probability;
  }
  return copies;
}

/// Recursive rejection sampling: draft i is accepted with probability min(1, p_i / q_i), otherwise the next one is
/// tried against the residual.
///
///   p_1 = p,   p_(i+1) = norm(max(0, p_i - q_i)),   acceptance = 1 - prod_i (1 - beta_i)      (q_i = q)
///
/// Without replacement q_i is q without the drafts before it, so p_i depends on which they were; the law is then
/// summed over all sequences of rejected drafts, with both rows scaled to sum 1.
///
/// Source:   Miao et al. 2024 (SpecInfer); without replacement Chen et al. 2024 (Sequoia);
///           docs/theory.md#several-drafts-at-one-position
/// Time:     O(k vocab) with, O(vocab^k) without replacement
/// @throws std::domain_error if, without replacement, there are more than 1e7 sequences of drafts
/// Accuracy: absolute error <= 1e-14
inline MultiDraftLaw recursive_rejection(const core::TargetDistribution& p, const core::DraftDistribution& q, std::int64_t k,
                                  Replacement replacement) {
  require_drafts("recursive_rejection", p, q, k);
  if (replacement == Replacement::without) return recursive_rejection_without_replacement(p, q, k);
  MultiDraftLaw law = no_law(p.size(), k);
  law.corrected = reject_recursively(p, q, k, [&](std::int64_t i, std::size_t x, double mass) {
    law.accepted[x] += mass;
    law.by_draft[static_cast<std::size_t>(i)] += mass;
  });
  return law;
}

/// The acceptance that no scheme can exceed, and optimal transport attains, with H any set of tokens:
///
///   acceptance = min_H 1 + P(H) - Pr(all drafts are in H)
///
/// With replacement Pr = Q(H)^k, and only the initial segments of the tokens in descending order of q/p are needed.
///
/// Source:   Sun et al. 2023 (SpecTr); the sets: Hu et al. 2025; docs/theory.md#several-drafts-at-one-position
/// Time:     O(vocab log vocab) with replacement; O(2^s s) without, with s the number of tokens with q > 0
/// @throws std::domain_error if, without replacement, s > 20
/// Accuracy: absolute error <= 1e-14
inline core::AcceptanceRate transport_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                          std::int64_t k, Replacement replacement) {
  require_drafts("transport_acceptance", p, q, k);
  const double rejection =
      replacement == Replacement::with ? transport_rejection_with(p, q, k) : transport_rejection_without(p, q, k);
  return core::AcceptanceRate::from_rejection(std::min(rejection, 1.0));
}

/// k independent chains of drafts, verified level by level with recursive rejection: those with the accepted
/// token continue. [s] = P(s of the k chains survive one level), s = 0..k.
/// Source:   docs/theory.md#several-drafts-at-one-position
/// Time:     O(k^3 vocab)
/// Accuracy: absolute error <= 1e-14
inline std::vector<double> surviving_chains(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                     std::int64_t k) {
  require_drafts("surviving_chains", p, q, k);
  std::vector<double> survive(static_cast<std::size_t>(k) + 1, 0.0);
  const auto accepted = [&](std::int64_t i, std::size_t x, double mass) {
    // An earlier copy of x was not rejected: rejected tokens have no residual. Later chains are still independent.
    const std::vector<double> later = copies_of(std::min(q[x], 1.0), k - i - 1);
    for (std::size_t copies = 0; copies < later.size(); ++copies) survive[copies + 1] += mass * later[copies];
  };
  survive[0] = mass_of(reject_recursively(p, q, k, accepted));
  return survive;
}

/// Expected tokens of a step of k such chains of length gamma, the target's own token included.
/// Source:   docs/theory.md#several-drafts-at-one-position
/// Assumes:  the same p and q at every position.
/// Time:     O(k^4 vocab + gamma k^2)
/// @param gamma  levels, [0, longest_chain]
/// @return in [1, gamma + 1]
/// @throws std::domain_error if gamma is outside its range
/// Accuracy: relative error <= 1e-13
inline double chains_expected_tokens(const core::TargetDistribution& p, const core::DraftDistribution& q, std::int64_t k,
                              std::int64_t gamma) {
  require_drafts("chains_expected_tokens", p, q, k);
  core::require_in("chains_expected_tokens", "gamma", gamma, 0, longest_chain);
  std::vector<std::vector<double>> survive;  // by number of chains alive
  for (std::int64_t m = 1; m <= k; ++m) survive.push_back(surviving_chains(p, q, m));
  std::vector<double> alive(static_cast<std::size_t>(k) + 1, 0.0);  // law of the number of chains alive at a level
  alive.back() = 1;
  core::CompensatedSum tokens;
  tokens.add(1);
  for (std::int64_t level = 0; level < gamma; ++level) {
    std::vector<double> next(alive.size(), 0.0);
    double any = 0;
    for (std::size_t m = 1; m < alive.size(); ++m) {
      for (std::size_t s = 1; s <= m; ++s) {
        const double mass = alive[m] * survive[m - 1][s];
        next[s] += mass;
        any += mass;
      }
    }
    tokens.add(any);
    alive = std::move(next);
  }
  return tokens.value();
}

}  // namespace specdec::theory
