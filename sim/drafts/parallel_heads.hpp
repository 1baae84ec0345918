#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

#include "analysis/core/standardisation.hpp"
#include "sim/drafting.hpp"
#include "sim/transformer/checkpoint.hpp"
#include "sim/transformer/transformer.hpp"

namespace specdec::sim {

/// Heads that each predict the token at one distance, bound to their target's weights; immutable, shared by any number
/// of drafts.
///
///   r_j = f_t + silu(W_j f_t + b_j)        logits of x_(t+1+j) = output_matrix r_j        j = 1, 2, ..
///
/// f_t is the target's state of position t after its final norm, output_matrix the target's: head j predicts the token
/// j places beyond the one that the target predicts itself, without knowing the tokens between.
///
/// Source:   Stern et al. 2018, "Blockwise parallel decoding"; Cai et al. 2024, "Medusa" (its first recipe, the target
///           frozen). docs/reference/methods.md#parallel-heads
struct ParallelHeads;

/// Reads heads trained for `target` (sim/models/README.md has the format), as many as the file has.
/// @throws FileError naming the metadata entry or tensor that is missing, has a shape or type other than the target
///   requires, holds a number that is not finite, or has no place in the heads
std::shared_ptr<const ParallelHeads> load_parallel_heads(const std::filesystem::path& path,
                                                         std::shared_ptr<const TransformerWeights> target);
/// 2 * (parameters of all matrices that a call of all heads reads: the W_j and the output matrix).
double operations_of(const ParallelHeads& heads);

/// Drafts by parallel heads: one call per round gives the rows of all proposed tokens, at most one per head.
/// Reads the features of the very object that verifies. Nothing is proposed while the text has only one token, for
/// which no feature is known.
///
/// A row does not depend on the tokens proposed before its own; under a lossless verifier the text still keeps the
/// target's law.
class ParallelHeadDraft final : public Draft {
 public:
  /// @param target  the object that the decoder uses, which must keep its features and outlive this one
  /// @throws std::invalid_argument if the target's shape differs from the one that the heads were loaded for, or it
  ///   does not keep features
  /// @throws std::domain_error if a field of `standardisation` is out of range
  ParallelHeadDraft(std::shared_ptr<const ParallelHeads> heads, const Transformer& target,
                    const core::Standardisation& standardisation, Proposing proposing = Proposing::sampled);

  std::int64_t vocab_size() const override { return target_.vocab_size(); }
  std::int64_t max_length() const override { return target_.max_length(); }
  void begin(std::span<const Token>) override { work_ = {}; }
  /// @throws std::invalid_argument if the target does not hold the text without its last token
  void propose(const DraftRequest& request, Proposal& proposal) override;
  /// Positions are rows; operations are those of their W_j and of the output matrix.
  DraftWork work() const override { return work_; }

 private:
  /// Fills logits for the first `count` heads.
  void compute(std::span<const float> feature, std::size_t count);
  std::span<float> logits(std::size_t j) { return {logits_.row(j), static_cast<std::size_t>(vocab_size())}; }

  std::shared_ptr<const ParallelHeads> heads_;
  const Transformer& target_;
  core::Standardisation standardisation_;
  Proposing proposing_;
  std::size_t width_;
  Activations feature_;
  Activations ones_;
  Activations gate_;
  Activations states_;
  Activations logits_;
  DraftWork work_;
};

}  // namespace specdec::sim
