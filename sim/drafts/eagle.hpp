#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "sim/drafting.hpp"
#include "sim/transformer/checkpoint.hpp"
#include "sim/transformer/transformer.hpp"

namespace specdec::sim {

/// A head that drafts from the target's own states, bound to its target's weights; immutable, shared by any number of
/// drafts.
///
///   g_(t+1) = norm(block(fc [embedding(x_(t+1)); f_t]))        logits of x_(t+2) = output_matrix g_(t+1)
///
/// f_t is the target's state of position t after its final norm, `block` one block of the target's shape with a
/// key/value cache of its own; embedding and output_matrix are the target's, of the latter the rows of the tokens that
/// the head knows, if its file names them (d2t). Deeper in a round, beyond the target's
/// last position, g takes the place of f.
///
/// Source:   Li et al. 2024, "EAGLE: speculative sampling requires rethinking feature uncertainty"; the same shape as
///           the multi-token prediction modules of DeepSeek-V3. docs/reference/methods.md#drafting-heads
struct EagleHead;

/// Reads a head trained for `target` (sim/models/README.md has the format).
/// @throws FileError naming the metadata entry or tensor that is missing, has a shape or type other than the target
///   requires, holds a number that is not finite, or has no place in the head; or if the target is not of the Llama
///   family
std::shared_ptr<const EagleHead> load_eagle_head(const std::filesystem::path& path,
                                                 std::shared_ptr<const TransformerWeights> target);

/// 2 * (parameters of all matrices that a call reads: fc, block and output matrix).
double operations_of(const EagleHead& head);

/// Drafts by an EAGLE head, one call per token. Reads the features of the very object that verifies.
///
/// A round's first call contains all positions that the text has gained, with the target's true features; the others
/// contain one drafted token each, with the feature that the head predicted. The drafted positions of a round are
/// discarded at its end, accepted or not, since true features replace the predicted ones. Nothing is proposed while the
/// text has only one token, for which no feature is known.
///
/// The law of a proposal depends on its depth in the round, not only on the prefix; under a lossless verifier the text
/// still keeps the target's law.
class EagleDraft final : public Draft {
 public:
  /// @param target  the object that the decoder uses, which must keep its features and outlive this one
  /// @throws std::invalid_argument if the target's shape differs from the one that the head was loaded for, or it does
  ///   not keep features
  /// @throws std::domain_error if a field of `standardisation` is out of range
  EagleDraft(std::shared_ptr<const EagleHead> head, const Transformer& target,
             const core::Standardisation& standardisation, Proposing proposing = Proposing::sampled);

  std::int64_t vocab_size() const override { return target_.vocab_size(); }
  std::int64_t max_length() const override { return target_.max_length(); }
  void begin(std::span<const Token> prompt) override;
  /// @throws std::invalid_argument if the target does not hold the text without its last token
  void propose(const DraftRequest& request, Proposal& proposal) override;
  void keep(std::int64_t length) override;
  /// Operations: fc and block for every position, the output matrix for every row.
  DraftWork work() const override { return work_; }

 private:
  /// Reads the text's entries up to `entries`, where entry t has token t + 1 and the target's feature of t, and
  /// writes the row after the last one, if one is wanted. Returns the number of new ones.
  std::int64_t read(std::span<const Token> text, std::int64_t entries, std::span<double> row);
  /// Appends the vector of a token and the feature before it.
  void add_vector(Token token, std::span<const float> feature);

  std::shared_ptr<const EagleHead> head_;
  const Transformer& target_;
  core::Standardisation standardisation_;
  Proposing proposing_;
  std::size_t width_;
  Transformer model_;
  /// Number of entries in the cache with true features.
  std::int64_t verified_ = 0;
  /// Shape: (vectors, width).
  std::vector<float> vectors_;
  Activations pair_;
  Activations vector_;
  DraftWork work_;
};

}  // namespace specdec::sim
