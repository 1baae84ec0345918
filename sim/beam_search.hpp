#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/generation.hpp"
#include "sim/language_model.hpp"

/// Beam search, with and without a draft.
namespace specdec::sim {

struct BeamSearchOptions {
  /// w, >= 1.
  std::int64_t width = 4;
  /// Steps of the search, >= 0.
  std::int64_t max_new_tokens = 128;
  /// A beam that ends with it is not continued; it remains among the beams while its probability suffices.
  std::optional<Token> end_token = std::nullopt;
};

/// A text that may be generated.
struct Beam {
  /// Without the prompt.
  std::vector<Token> tokens;
  /// Natural logarithm of its probability given the prompt: the sum over its tokens, in their order.
  double log_probability = 0;
  bool ended = false;

  friend bool operator==(const Beam&, const Beam&) = default;
};

/// A call of the target, which scores prefixes all at once.
struct BeamCall {
  std::int64_t scored = 0;
  /// Steps that the draft was ahead, and how many of them were kept.
  std::int64_t drafted = 0;
  std::int64_t kept = 0;
};

struct BeamSearch {
  /// The most probable first.
  std::vector<Beam> beams;
  std::vector<BeamCall> calls;
  /// As for a decoder, with a step of the search as a token: `tokens` steps, `drafted` of them by the draft, of which
  /// `accepted` were kept. A call scores all of its prefixes at once; `positions` are prefixes.
  Counters counters;
};

/// Beam search: in each step the w most probable continuations by one token of the w beams.
///
/// Equally probable ones are ordered by their beam's rank, then by token. Texts of probability 0
/// are not beams, so there may be fewer than w. Ends after max_new_tokens steps or when every beam has ended. No
/// length penalty. One call of the target per step; `steps` and all draft counters stay 0.
///
/// @param target  its prefix is discarded
/// @param prompt  at least one token, at most the model's max_length
/// @throws std::domain_error if the prompt is empty or too long, an option is out of range, or prompt and
///         max_new_tokens do not fit into the model's max_length
BeamSearch search_beams(LanguageModelRef target, std::span<const Token> prompt, const BeamSearchOptions& options);

/// Options for a draft that runs ahead.
struct BeamDrafting {
  /// u, >= the width of the search.
  std::int64_t width = 6;
  /// Steps drafted per round, >= 0; limited to the number still wanted - 1.
  std::int64_t gamma = 3;
};

/// Beam search with a draft: from the target's beams the draft searches gamma steps with width u; the target scores its
/// beams and all of the draft's in one call, w + u gamma prefixes; then its search goes on for as long as its beams are
/// among the draft's of that step. The first step at which one is not still counts, so that a round makes 1 to gamma +
/// 1 steps. Beams that have ended need no continuation and may be missing from the draft's.
///
/// Beams, their order and their scores are those of search_beams, bit for bit: they are computed from the same rows in
/// the same way. A round is one of counters.steps. Positions that a draft with a cache must read of the target's beams
/// after all of its steps were kept count as its own.
///
/// Source:   Leviathan et al. 2023, Appendix A.4; docs/reference/methods.md#beam-search
/// @param target, draft  two model objects, even if they are the same model
/// @throws as search_beams; std::invalid_argument if the vocabularies differ in size
BeamSearch search_beams_speculatively(LanguageModelRef target, LanguageModelRef draft, std::span<const Token> prompt,
                                      const BeamSearchOptions& options, const BeamDrafting& drafting);

}  // namespace specdec::sim
