#pragma once

#include <cstdint>
#include <span>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/distribution.hpp"

/// Several drafts for one position, of which at most one is accepted. Every scheme here is lossless. Rows of different
/// lengths: std::invalid_argument; a number of drafts outside [1, most_drafts]: std::domain_error.
namespace specdec::theory {

/// The largest number of drafts at one position.
inline constexpr std::int64_t most_drafts = 1024;

/// The way the drafts of one position are drawn from q: independently, or each from what the previous ones leave,
/// renormalised. Drawing without replacement ends when the support of q is exhausted.
enum class Replacement { with, without };

/// The acceptance of recursive rejection for given drafts: P(one of them is accepted | x_1, ..., x_k).
///
///   1 - prod_i (1 - min(1, p_i(x_i) / q_i(x_i))),   p_1 = p,   p_(i+1) = norm(max(0, p_i - q_i))
///
/// With replacement q_i is q, without it is q without the drafts before it, both rows scaled to sum 1.
///
/// Time:     O(k vocab)
/// Source:   Miao et al. 2024 (SpecInfer); without replacement Chen et al. 2024 (Sequoia);
///           docs/theory.md#several-drafts-at-one-position
/// @param drafts  in the order in which they are tried; tokens of the vocabulary, distinct without replacement
/// @throws std::domain_error if a token is outside the vocabulary
/// Accuracy: absolute error <= 1e-13
double recursive_acceptance_of(const core::TargetDistribution& p, const core::DraftDistribution& q,
                               std::span<const std::int64_t> drafts, Replacement replacement);

/// The smallest rho for which k-SEQ is lossless: the root of 1 - (1 - b(rho))^k = rho b(rho), with b as in
/// k_seq_acceptance.
///
/// Source:   Sun et al. 2023 (SpecTr); docs/theory.md#several-drafts-at-one-position
/// @return in [1, k]; 1 if the supports are disjoint, so that b is 0
/// Accuracy: relative error <= 1e-14
double k_seq_least_rho(const core::TargetDistribution& p, const core::DraftDistribution& q, std::int64_t k);

/// k-SEQ: each of k independent drafts is accepted with probability min(1, p / (rho q)), and the first accepted one is
/// taken. At the least rho it accepts at least 1 - 1/e of the acceptance of optimal transport.
///
///   b(rho) = sum_x min(p(x) / rho, q(x)),   acceptance = 1 - (1 - b)^k
///   corrected = p - min(p / rho, q) acceptance / b
///
/// Source:   Sun et al. 2023 (SpecTr); docs/theory.md#several-drafts-at-one-position
/// @throws std::domain_error if rho is infinite, or below k_seq_least_rho: some corrected probability would be negative
/// Accuracy: absolute error <= 1e-14
core::AcceptanceRate k_seq_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                      std::int64_t k, double rho);

/// Acceptance of proposals that are given rather than drawn, p(set): the n tokens named by a table or a ranking.
/// Source:   docs/theory.md#several-drafts-at-one-position
/// @param drafts  tokens, distinct
/// @throws std::domain_error if a token is outside the vocabulary or named twice
/// Accuracy: relative error <= 1e-15
core::AcceptanceRate distinct_drafts_acceptance(const core::TargetDistribution& p,
                                                std::span<const std::int64_t> drafts);

}  // namespace specdec::theory
