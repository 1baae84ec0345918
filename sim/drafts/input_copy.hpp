#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/drafting.hpp"

namespace specdec::sim {

/// Proposes the rest of an input that the output copies except for some edits, as many tokens as requested (shallow
/// aggressive decoding: correcting grammar, editing code, rewriting).
///
/// The output is the text after the prompt. It is expected to begin where the input does, and to continue after each
/// token that was expected. At the first unexpected token the place is lost, and is searched anew in each round:
/// it is after the tokens of the input that agree with the longest end of the output, at least
/// `shortest` tokens; if there are several such places, the first one after the token expected when the place was
/// lost, or else none. While it is lost, and at the input's end, nothing is proposed. (The source waits for a unique
/// agreement; but a wrong guess costs no run of the target.)
///
/// No randomness and no model: the rows are point masses, no policy stops it, and its work is 0.
/// Time: O(input) per round in which the place is lost.
///
/// Source:   Sun et al. 2021, "Instantaneous grammatical error correction with shallow aggressive decoding"
class InputCopyDraft final : public Draft {
 public:
  using InputOf = std::function<std::vector<Token>(std::span<const Token> prompt)>;

  /// @param input_of  returns the input that belongs to a prompt; called when a text begins
  /// @param shortest  fewest tokens that identify a place, >= 1
  /// @throws std::domain_error if a number is out of range
  InputCopyDraft(std::int64_t vocab_size, InputOf input_of, std::int64_t shortest = 1);

  std::int64_t vocab_size() const override { return vocab_size_; }
  /// @throws std::domain_error if a token of the input is outside the vocabulary
  void begin(std::span<const Token> prompt) override;
  void propose(const DraftRequest& request, Proposal& proposal) override;

  /// The index of the input's token that is expected next, as of the last round; empty if the place was lost.
  std::optional<std::int64_t> place() const { return place_; }

 private:
  std::optional<std::int64_t> find(std::span<const Token> output) const;

  std::int64_t vocab_size_;
  InputOf input_of_;
  std::int64_t shortest_;
  std::vector<Token> input_;
  /// Tokens of the text that have been examined, the prompt included, and its length.
  std::size_t seen_ = 0;
  std::size_t prompt_length_ = 0;
  std::optional<std::int64_t> place_;
  /// The last known place.
  std::int64_t known_ = 0;
};

}  // namespace specdec::sim
