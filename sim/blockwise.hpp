#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/drafting.hpp"
#include "sim/generation.hpp"
#include "sim/language_model.hpp"

/// Greedy blockwise parallel decoding.
namespace specdec::sim {

/// Offset predictors, or heads: the tokens that they expect after a text, at distances 1, 2, ... from its end. That
/// end is the model's own next token; heads of one model call do not know it and are trained for one distance each.
///
/// @param text   the prompt, what has been generated, and the model's own next token, which the model itself does not
///               hold yet
/// @param count  >= 0
/// @return at most `count` tokens of the vocabulary
using OffsetPredictors = std::function<std::vector<Token>(std::span<const Token> text, std::int64_t count)>;

/// Any draft as heads, in particular ParallelHeadDraft: it should propose greedily. The draft must outlive them and
/// begins with the prompt, once; create them anew for every text.
OffsetPredictors predictors_of(Draft& draft, std::span<const Token> prompt);

/// The call of the model that proposes a block.
enum class BlockProposal {
  own_call,          ///< a separate call before the call that verifies the block
  with_verification  ///< the call that verifies the previous block, whose rows follow every token of that block
};

struct BlockwiseOptions {
  /// k: the model's own token and those of k - 1 heads, >= 1.
  std::int64_t block = 4;
  BlockProposal proposal = BlockProposal::with_verification;
  /// As in DecodingOptions.
  std::int64_t max_new_tokens = 128;
  std::optional<Token> end_token = std::nullopt;
};

/// Proposes the model's most probable token and its heads' tokens for the following places; the heads' are kept as long
/// as each is the model's most probable one given those before it. Lossless in the only sense possible for greedy text:
/// the result is that of decode_autoregressively at temperature 0, whatever the heads propose.
///
/// A step's `drafted` are the tokens of heads, `accepted` those of them that are kept; the model's own token precedes
/// them, so that a step emits accepted + 1 tokens. Blocks are cut to the tokens still wanted.
///
///   target calls = 2 steps with a separate call for each proposal, steps + 1 if proposals come with verification
///
/// A proposing call scores one position, a verifying one all tokens of the block. The work of heads is not
/// counted: they are layers on the hidden state of the model's call.
///
/// Source:   Stern et al. 2018, "Blockwise parallel decoding"; docs/reference/methods.md#blockwise-decoding
/// @param target  its prefix is discarded
/// @param prompt  at least one token, at most the model's max_length
/// @throws std::domain_error if the prompt is empty or too long, an option is out of range, prompt and max_new_tokens
///         do not fit into the model's max_length, or the heads return more tokens than requested or one outside the
///         vocabulary
Generation decode_blockwise(LanguageModelRef target, const OffsetPredictors& heads, std::span<const Token> prompt,
                            const BlockwiseOptions& options);

}  // namespace specdec::sim
