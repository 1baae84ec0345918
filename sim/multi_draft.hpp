#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/language_model.hpp"
#include "sim/random.hpp"

/// Several drafts for one position, of which at most one is kept. Every rule is lossless: its result is
/// distributed as p.
namespace specdec::sim {

/// Candidates for one position, standardised. Shape: target_row and draft_row (vocab), sum to 1; drafted (k), k >= 0.
struct DraftedCandidates {
  std::span<const double> target_row;
  std::span<const double> draft_row;
  std::span<const Token> drafted;
};

/// The token at the position, and the index of its candidate: the first of equal ones, empty if all were rejected.
struct CandidateVerdict {
  std::optional<std::size_t> accepted;
  Token token = 0;

  friend bool operator==(const CandidateVerdict&, const CandidateVerdict&) = default;
};

// The rules use the uniforms (round, slot + i, acceptance) for candidate i until one is accepted, then (round, slot,
// residual) if none is. They throw std::invalid_argument if the rows differ in length, and std::domain_error if a
// candidate is outside the vocabulary.

/// Recursive rejection sampling of candidates that were drawn from q independently of each other.
///
///   p_1 = p;   accept candidate i with probability min(1, p_i(x_i) / q(x_i));   p_(i+1) = norm(max(0, p_i - q))
///
/// Source:   Miao et al. 2024, "SpecInfer"; docs/reference/methods.md#recursive-rejection-sampling
CandidateVerdict verify_recursively(const DraftedCandidates& candidates, const UniformSource& uniforms,
                                    std::int64_t round, std::int64_t slot = 0);

/// The same for candidates that were drawn without replacement (sample_without_replacement): candidate i came from q_i,
/// which is q without the candidates before it, and is compared with it.
///
/// Source:   Chen et al. 2024, "Sequoia"; docs/reference/methods.md#recursive-rejection-sampling
CandidateVerdict verify_recursively_without_replacement(const DraftedCandidates& candidates,
                                                        const UniformSource& uniforms, std::int64_t round,
                                                        std::int64_t slot = 0);

/// k-sequential selection of independent candidates: all are compared with the same divisor.
///
///   accept candidate i with probability min(1, p(x_i) / (rho q(x_i)));   b = sum_x min(p / rho, q)
///   else a token ~ norm(p - min(p / rho, q) (1 - (1 - b)^k) / b)
///
/// rho is k_sequential_divisor, below which the last line would not be a law.
///
/// Source:   Sun et al. 2023, "SpecTr"; docs/reference/methods.md#k-sequential-selection
CandidateVerdict verify_k_sequentially(const DraftedCandidates& candidates, const UniformSource& uniforms,
                                       std::int64_t round, std::int64_t slot = 0);

/// Membership among candidates that were chosen deterministically, such as a draft's most probable tokens: a token of
/// the target is kept iff it is one of them. Uses the uniform (round, slot, acceptance) alone.
///
/// Source:   Cai et al. 2024, "Medusa"; docs/reference/methods.md#token-trees
CandidateVerdict verify_by_membership(const DraftedCandidates& candidates, const UniformSource& uniforms,
                                      std::int64_t round, std::int64_t slot = 0);

/// Any one of these rules.
using CandidateVerifier = std::function<CandidateVerdict(
    const DraftedCandidates& candidates, const UniformSource& uniforms, std::int64_t round, std::int64_t slot)>;

/// The least divisor for k candidates: the root of 1 - (1 - b(rho))^k = rho b(rho) in [1, k], rounded up.
/// @param candidates  k >= 1
/// @throws std::invalid_argument if the rows differ in length; std::domain_error if k < 1
/// Accuracy: relative error <= 1e-14
double k_sequential_divisor(std::span<const double> target_row, std::span<const double> draft_row,
                            std::int64_t candidates);

/// Draws k distinct tokens of q, candidate i by the uniform (round, slot + i, draft); fewer if q has fewer.
/// @throws std::domain_error if k < 0
std::vector<Token> sample_without_replacement(std::span<const double> draft_row, std::int64_t k,
                                              const UniformSource& uniforms, std::int64_t round, std::int64_t slot = 0);

}  // namespace specdec::sim
