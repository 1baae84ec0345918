#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "sim/language_model.hpp"
#include "sim/random.hpp"

namespace specdec::sim {

/// The drafts of one step and what both models say about them, standardised.
///
/// Shape: target_rows (gamma + 1, vocab), draft_rows (gamma, vocab), row-major, rows sum to 1; drafted (gamma).
/// drafted[i] was sampled from draft row i; target row i stands at the same prefix, the last one after all drafts.
struct DraftedBlock {
  std::span<const double> target_rows;
  std::span<const double> draft_rows;
  std::span<const Token> drafted;
};

/// The first `accepted` drafts stay and `extra` follows them.
struct Verdict {
  std::int64_t accepted = 0;
  Token extra = 0;

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// A rule that decides how many drafts of a round stay and which token follows.
using Verifier = std::function<Verdict(const DraftedBlock&, const UniformSource&, std::int64_t round)>;

/// Token verification, the rule of Algorithm 1: drafts are accepted one by one until the first rejection.
///
///   accept draft i iff r_i q_i(x_i) < p_i(x_i);   n = accepted drafts
///   extra ~ norm(max(0, p_n - q_n)) if n < gamma, else p_gamma
///
/// Uses the uniforms (round, i, acceptance) for i = 0..n, then (round, n, residual) or (round, gamma, bonus).
///
/// Source:   Leviathan et al. 2023, Algorithm 1
/// @throws std::invalid_argument if the shapes do not fit each other
/// @throws std::domain_error if a drafted token is outside the vocabulary or a row that is sampled from is not
///         normalised
Verdict verify_tokens(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round);

}  // namespace specdec::sim
