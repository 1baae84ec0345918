#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "sim/drafting.hpp"
#include "sim/language_model.hpp"
#include "sim/verifier.hpp"

namespace specdec::sim {

/// A draft model that is itself accelerated by a smaller draft: the tokens of a round are made by speculative decoding
/// of the middle model, whose rows are their law. Non-owning.
///
/// An inner round requests min(inner gamma, tokens still wanted - 1) tokens from the inner draft, so that no token is
/// made in excess, and lets the middle model score them in one call. The round's policy sees the middle
/// model's rows, point masses at temperature 0; the inner draft has no policy. Its random numbers are those of
/// InnerUniforms.
///
/// Source:   Leviathan et al. 2023, Section 6; docs/reference/methods.md#hierarchical-drafts
class HierarchicalDraft final : public Draft {
 public:
  /// @param inner_gamma      tokens drafted per inner round, >= 0; with 0 the middle model drafts alone
  /// @param standardisation  applied to the middle model's rows
  /// @param verifier         for the inner rounds, lossless: under any other the rows are not the tokens' law
  /// @throws std::invalid_argument if the vocabularies differ in size
  /// @throws std::domain_error if inner_gamma < 0 or a field of `standardisation` is out of range
  HierarchicalDraft(LanguageModel& middle, Draft& inner, std::int64_t inner_gamma,
                    const core::Standardisation& standardisation, Verifier verifier = verify_tokens);

  std::int64_t vocab_size() const override { return middle_.vocab_size(); }
  std::int64_t max_length() const override;
  void begin(std::span<const Token> prompt) override;
  void propose(const DraftRequest& request, Proposal& proposal) override;
  void keep(std::int64_t length) override;
  /// Work of both models.
  DraftWork work() const override;
  /// Work of the middle model alone; a call is an inner round.
  DraftWork middle_work() const;
  DraftWork inner_work() const { return inner_.work(); }

 private:
  Verdict run_inner_round(const UniformSource& uniforms, std::int64_t round, std::int64_t wanted);

  LanguageModel& middle_;
  Draft& inner_;
  std::int64_t inner_gamma_;
  core::Standardisation standardisation_;
  Verifier verifier_;
  std::int64_t calls_ = 0;
  std::int64_t positions_ = 0;
  // Data of the current round, kept to reuse the memory.
  std::vector<Token> text_;
  Proposal inner_proposal_;
  std::vector<Token> block_;
  std::vector<double> rows_;
};

}  // namespace specdec::sim
