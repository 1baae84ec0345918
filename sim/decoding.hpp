#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "analysis/core/standardisation.hpp"
#include "sim/drafting.hpp"
#include "sim/generation.hpp"
#include "sim/language_model.hpp"
#include "sim/random.hpp"
#include "sim/verifier.hpp"

namespace specdec::sim {

/// How to generate. Plain decoding uses max_new_tokens, end_token and standardisation only.
struct DecodingOptions {
  /// Drafted tokens per step, >= 0; of the first one, where the policy changes it.
  std::int64_t gamma = 5;
  /// Length limit of the generated text, >= 0.
  std::int64_t max_new_tokens = 128;
  /// The token that ends a text; it is emitted itself.
  std::optional<Token> end_token;
  core::Standardisation standardisation;
  /// A draft model's own, when it shall differ from the target's.
  std::optional<core::Standardisation> draft_standardisation;
  /// How a draft model's rows become proposals.
  Proposing proposing = Proposing::sampled;
  Verifier verifier = verify_tokens;
  DraftingPolicy policy;
};

/// Speculative decoding: the draft proposes, the target scores all proposals in one call, the verifier decides.
///
/// Both models are emptied first and read the prompt. Each step drafts min(gamma, tokens still wanted - 1) tokens,
/// so that the last step never produces more than is wanted. An end token among the accepted drafts ends the text
/// there: `accepted` still counts what the verifier accepted, `emitted` and `tokens` what stands in the text.
///
/// Between steps the target holds the prefix without its last token. After a step that accepted everything the draft
/// lacks one token more; its next block carries it, which counts in draft_positions and not as a call of its own.
/// Calls and positions of the prompt (without its last token) are not counted.
///
/// Uniforms: (step, slot, draft) for each draft, then the verifier's.
///
/// Source:   Leviathan et al. 2023, Algorithm 1
/// @param target, draft  two model objects, also where they are the same model; what they hold is discarded
/// @param prompt  at least one token, at most either model's max_length
/// @return tokens distributed as the target's own under the same standardisation, when the verifier is lossless
/// @throws std::invalid_argument if the models' vocabularies differ in size
/// @throws std::domain_error if the prompt is empty or too long, an option is out of range, or
///         prompt and max_new_tokens do not fit into a model's max_length
Generation decode_speculatively(LanguageModelRef target, LanguageModelRef draft, std::span<const Token> prompt,
                                const DecodingOptions& options, const UniformSource& uniforms);

/// The same with a draft of any kind; the standardisation of drafts and `proposing` are its own.
///
/// Each step asks for min(gamma, tokens still wanted - 1) tokens, and takes what the draft proposes: none is a step of
/// the target alone. The draft's calls, positions and operations are those that it reports.
/// @throws std::domain_error if the draft proposes more than it was asked for, or the policy's gamma is below 0
Generation decode_with_draft(LanguageModelRef target, Draft& draft, std::span<const Token> prompt,
                             const DecodingOptions& options, const UniformSource& uniforms);

/// Plain decoding, one target call per token: the baseline. Token t uses the uniform (t, 0, target).
/// Parameters, counting and errors as for decode_speculatively; `steps` stays empty, as do the draft's counters.
Generation decode_autoregressively(LanguageModelRef target, std::span<const Token> prompt,
                                   const DecodingOptions& options, const UniformSource& uniforms);

}  // namespace specdec::sim
