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

/// Options for generation. Plain decoding uses only max_new_tokens, end_token and standardisation.
struct DecodingOptions {
  /// Drafted tokens per step, >= 0; for a policy that changes it, those of the first step.
  std::int64_t gamma = 5;
  /// Length limit of the generated text, >= 0.
  std::int64_t max_new_tokens = 128;
  /// The token that ends a text; it is emitted too.
  std::optional<Token> end_token;
  core::Standardisation standardisation;
  Verifier verifier = verify_tokens;
  DraftingPolicy policy;
};

/// Speculative decoding: the draft proposes, the target scores all proposals in one call, the verifier decides.
///
/// Both models are emptied first and read the prompt. Each step drafts min(gamma, tokens still wanted - 1) tokens,
/// so that the last step never produces more than wanted. An end token among the accepted drafts ends the text
/// there: `accepted` still counts what the verifier accepted, `emitted` and `tokens` only tokens of the text.
///
/// Between steps the target holds the prefix without its last token. After a step that accepted everything the draft
/// lacks one more token; its next block contains it, which counts in draft_positions but not as a separate call.
/// Calls and positions of the prompt (without its last token) are not counted.
///
/// Uniforms: (step, slot, draft) for each draft, then the verifier's.
///
/// Source:   Leviathan et al. 2023, Algorithm 1
/// @param target, draft  two model objects, even if they are the same model; their prefixes are discarded
/// @param prompt  at least one token, at most either model's max_length
/// @return tokens distributed as the target's own under the same standardisation, if the verifier is lossless
/// @throws std::invalid_argument if the models' vocabularies differ in size
/// @throws std::domain_error if the prompt is empty or too long, an option is out of range, or
///         prompt and max_new_tokens do not fit into a model's max_length
Generation decode_speculatively(LanguageModel& target, LanguageModel& draft, std::span<const Token> prompt,
                                const DecodingOptions& options, const UniformSource& uniforms);

/// The same with any kind of draft, which has its own standardisation.
///
/// Each step requests min(gamma, tokens still wanted - 1) tokens, and takes what the draft proposes: no token means a
/// step of the target alone. The draft's calls, positions and operations are those that it reports.
/// @throws std::domain_error if the draft proposes more than requested, or the policy's gamma is below 0
Generation decode_with_draft(LanguageModel& target, Draft& draft, std::span<const Token> prompt,
                             const DecodingOptions& options, const UniformSource& uniforms);

/// Plain decoding, one target call per token: the baseline. Token t uses the uniform (t, 0, target).
/// Parameters, counting and errors as for decode_speculatively; `steps` stays empty, as do the draft's counters.
Generation decode_autoregressively(LanguageModel& target, std::span<const Token> prompt, const DecodingOptions& options,
                                   const UniformSource& uniforms);

}  // namespace specdec::sim
