#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>

#include "sim/language_model.hpp"
#include "sim/random.hpp"

namespace specdec::sim {

/// The drafts of one step and both models' distributions at them, standardised.
///
/// Shape: target_rows (gamma + 1, vocab), draft_rows (gamma, vocab), row-major, rows sum to 1; drafted (gamma).
/// drafted[i] was sampled from draft row i, which is a point mass if the draft chose deterministically; target row i
/// belongs to the same prefix, the last one comes after all drafts.
struct DraftedBlock {
  std::span<const double> target_rows;
  std::span<const double> draft_rows;
  std::span<const Token> drafted;

  std::size_t gamma() const { return drafted.size(); }
  std::size_t vocab() const { return target_rows.size() / (gamma() + 1); }
  /// Row i of the target, 0 <= i <= gamma, and of the draft, 0 <= i < gamma.
  std::span<const double> p(std::size_t i) const { return target_rows.subspan(i * vocab(), vocab()); }
  std::span<const double> q(std::size_t i) const { return draft_rows.subspan(i * vocab(), vocab()); }
  std::size_t token(std::size_t i) const { return static_cast<std::size_t>(drafted[i]); }

  /// @throws std::invalid_argument if the shapes do not match
  /// @throws std::domain_error if a drafted token is outside the vocabulary
  void require_valid(std::string_view function) const;
};

/// The first `accepted` drafts are kept and `extra` follows them.
struct Verdict {
  std::int64_t accepted = 0;
  Token extra = 0;

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

/// A rule that decides how many drafts of a round are kept and which token follows. Every rule throws
/// std::invalid_argument if the block's shapes do not match, and std::domain_error if a drafted token is outside the
/// vocabulary or a row that is sampled from is not normalised.
using Verifier = std::function<Verdict(const DraftedBlock&, const UniformSource&, std::int64_t round)>;

/// Token verification, the rule of Algorithm 1: drafts are accepted one by one until the first rejection.
///
///   accept draft i iff r_i q_i(x_i) < p_i(x_i);   n = accepted drafts
///   extra ~ norm(max(0, p_n - q_n)) if n < gamma, else p_gamma
///
/// Uses the uniforms (round, i, acceptance) for i = 0..n, then (round, n, residual) or (round, gamma, bonus).
///
/// Source:   Leviathan et al. 2023, Algorithm 1
Verdict verify_tokens(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round);

/// The result of every rule if nothing was rejected: all drafts, and a token of the last target row by the uniform
/// (round, gamma, bonus). Assumes a valid block.
Verdict accept_all(const DraftedBlock& block, const UniformSource& uniforms, std::int64_t round);

}  // namespace specdec::sim
