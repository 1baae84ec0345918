#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/drafting.hpp"

namespace specdec::sim {

/// Proposes the rest of an input that the output copies but for some edits, as far as it is asked for (shallow
/// aggressive decoding: correcting grammar, editing code, rewriting).
///
/// The output is the text behind the prompt. It is expected to begin where the input does, and to go on behind each
/// token that was expected. From the first token that was not, the place is lost, and is looked for in each round
/// anew: it is behind those tokens of the input that agree with the end of the output in the greatest number, at least
/// `shortest`; where so many agree more than once, the first time behind the token that was expected when the place was
/// lost, or else nowhere. While it is lost, and at the input's end, nothing is proposed. (The source waits until they
/// agree once alone; a wrong guess costs no run of the target, though.)
///
/// No chance and no model: the rows are point masses, no policy stops it, and its work is 0.
/// Time: O(input) per round in which the place is lost.
///
/// Source:   Sun et al. 2021, "Instantaneous grammatical error correction with shallow aggressive decoding"
class InputCopyDraft final : public Draft {
 public:
  using InputOf = std::function<std::vector<Token>(std::span<const Token> prompt)>;

  /// @param input_of  the input that belongs to a prompt; asked when a text begins
  /// @param shortest  fewest tokens that tell a place, >= 1
  /// @throws std::domain_error if a number is out of range
  InputCopyDraft(std::int64_t vocab_size, InputOf input_of, std::int64_t shortest = 1);

  std::int64_t vocab_size() const override { return vocab_size_; }
  std::int64_t max_length() const override;
  /// @throws std::domain_error if a token of the input is outside the vocabulary
  void begin(std::span<const Token> prompt) override;
  void propose(const DraftRequest& request, Proposal& proposal) override;
  void keep(std::int64_t) override {}
  DraftWork work() const override { return {}; }

  /// The index of the input's token that is expected next, as of the last round; nothing where the place was lost.
  std::optional<std::int64_t> place() const { return place_; }

 private:
  std::optional<std::int64_t> find(std::span<const Token> output) const;

  std::int64_t vocab_size_;
  InputOf input_of_;
  std::int64_t shortest_;
  std::vector<Token> input_;
  /// Tokens of the text that have been looked at, the prompt included, and how long that is.
  std::size_t seen_ = 0;
  std::size_t prompt_length_ = 0;
  std::optional<std::int64_t> place_;
  /// The last place that was known.
  std::int64_t known_ = 0;
};

}  // namespace specdec::sim
