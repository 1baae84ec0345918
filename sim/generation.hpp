#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/language_model.hpp"

namespace specdec::sim {

/// One step of Algorithm 1: `drafted` tokens proposed, the first `accepted` of them kept, one more from the target.
struct Step {
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  /// Tokens of this step in the generated text; fewer than accepted + 1 only if the text ended.
  std::int64_t emitted = 0;
  /// The draft's token that was rejected, or -1 if all were accepted.
  Token rejected = -1;
};

/// Counters of one run or, after merging, of many. Plain data.
struct Counters {
  std::int64_t steps = 0;
  std::int64_t tokens = 0;
  std::int64_t drafted = 0;
  std::int64_t accepted = 0;
  /// drafted_at[j], accepted_at[j]: steps in which slot j (0-based) was drafted, and accepted.
  std::vector<std::int64_t> drafted_at;
  std::vector<std::int64_t> accepted_at;
  std::int64_t draft_calls = 0;
  std::int64_t target_calls = 0;
  /// Token positions scored by each model, prompts excluded.
  std::int64_t draft_positions = 0;
  std::int64_t target_positions = 0;
  /// Arithmetic operations of both models over those positions.
  double operations = 0;

  /// The whole numbers among them.
  static constexpr auto counts() {
    return std::array{&Counters::steps,           &Counters::tokens,          &Counters::drafted,
                      &Counters::accepted,        &Counters::draft_calls,     &Counters::target_calls,
                      &Counters::draft_positions, &Counters::target_positions};
  }
  /// Adds another run's counters to this one.
  void merge(const Counters& other);
  friend bool operator==(const Counters&, const Counters&) = default;
};

/// The result of a decoder: the generated tokens (prompt excluded), their steps, and the counters.
struct Generation {
  std::vector<Token> tokens;
  /// One entry per step; empty for plain autoregressive decoding.
  std::vector<Step> steps;
  Counters counters;
  /// True if the text ended with the end token rather than at the length limit.
  bool ended = false;

  /// Starts a step and counts it: slots up to `depth` were drafted, and nothing is emitted yet.
  /// @param depth  the drafted tokens of a chain, the levels of a tree; >= step.accepted
  void begin_step(const Step& step, std::int64_t depth);
  /// Appends a token of the last step to the text, which ends with the end token.
  void emit(Token token, const std::optional<Token>& end_token);
};

/// The decoders' requirements for a prompt, for each of their models: the last generated token is never read.
/// @throws std::domain_error if the prompt is empty or longer than max_length, or max_new_tokens is outside
///         [0, max_length - prompt length + 1]
void require_room_for_text(std::string_view function, std::int64_t max_length, std::span<const Token> prompt,
                           std::int64_t max_new_tokens);

/// @throws std::invalid_argument if the vocabularies differ in size
void require_one_vocabulary(std::string_view function, std::int64_t target_vocab, std::int64_t draft_vocab);

}  // namespace specdec::sim
