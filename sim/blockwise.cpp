#include "sim/blockwise.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/standardisation.hpp"

namespace specdec::sim {
namespace {

constexpr std::string_view blockwise_function = "decode_blockwise";

/// The state of one run. Between steps the model holds the text without its last token, or all of it if a proposal
/// for the continuation is available.
class BlockwiseRun {
 public:
  BlockwiseRun(LanguageModelRef target, const OffsetPredictors& heads, std::span<const Token> prompt,
               const BlockwiseOptions& options)
      : target_(target),
        heads_(heads),
        options_(options),
        vocab_(static_cast<std::size_t>(target.vocab_size())),
        text_(prompt.begin(), prompt.end()) {
    target_.roll_back(0);
    if (prompt.size() > 1) target_.score(prompt.first(prompt.size() - 1), {});
  }

  Generation finish() {
    while (!result_.ended && wanted() > 0) {
      if (own_.empty() || options_.proposal == BlockProposal::own_call) propose();
      verify();
    }
    result_.counters.operations =
        target_.operations_per_token() * static_cast<double>(result_.counters.target_positions);
    return std::move(result_);
  }

 private:
  std::int64_t wanted() const { return options_.max_new_tokens - result_.counters.tokens; }

  /// Appends the tokens and stores the model's most probable one after each in own_.
  void call(std::span<const Token> tokens) {
    rows_.resize(tokens.size() * vocab_);
    target_.score(tokens, rows_);
    own_.clear();
    for (std::size_t i = 0; i < tokens.size(); ++i)
      own_.push_back(static_cast<Token>(core::argmax(std::span(rows_).subspan(i * vocab_, vocab_))));
    result_.counters.target_calls += 1;
    result_.counters.target_positions += static_cast<std::int64_t>(tokens.size());
  }

  void propose() {
    // After a verification the model holds the whole text.
    target_.roll_back(static_cast<std::int64_t>(text_.size()) - 1);
    call(std::span(text_).last(1));
  }

  /// The block is the model's own token, the last of own_, followed by the heads' tokens.
  void verify() {
    const std::int64_t asked = std::min(options_.block, wanted()) - 1;
    block_.assign(1, own_.back());
    text_.push_back(own_.back());
    const std::vector<Token> guesses = heads_(text_, asked);
    const auto drafted = static_cast<std::int64_t>(guesses.size());
    core::require_in(blockwise_function, "tokens of the heads", drafted, 0, asked);
    block_.insert(block_.end(), guesses.begin(), guesses.end());
    call(block_);

    std::size_t right = 0;
    while (right < guesses.size() && guesses[right] == own_[right]) ++right;
    const auto accepted = static_cast<std::int64_t>(right);
    // The prediction after the last kept token is the next block's own token.
    own_.resize(right + 1);
    target_.roll_back(static_cast<std::int64_t>(text_.size()) + accepted);
    result_.begin_step({drafted, accepted, 0, accepted == drafted ? -1 : guesses[right]}, drafted);
    result_.emit(block_.front(), options_.end_token);
    for (std::size_t i = 0; i < right && !result_.ended; ++i) {
      text_.push_back(guesses[i]);
      result_.emit(guesses[i], options_.end_token);
    }
  }

  LanguageModelRef target_;
  const OffsetPredictors& heads_;
  const BlockwiseOptions& options_;
  std::size_t vocab_;
  std::vector<Token> text_;
  Generation result_;
  /// The model's most probable tokens after those of the last call, as far as these are kept.
  std::vector<Token> own_;
  std::vector<Token> block_;
  std::vector<double> rows_;
};

}  // namespace

OffsetPredictors predictors_of(Draft& draft, std::span<const Token> prompt) {
  draft.begin(prompt);
  return [&draft, round = std::int64_t{0}](std::span<const Token> text, std::int64_t count) mutable {
    // It may have seen another token at the place of the model's own one.
    draft.keep(static_cast<std::int64_t>(text.size()) - 1);
    const DraftingPolicy policy;
    const RandomStream none(0, 0);
    Proposal proposal;
    draft.propose({text, count, round++, policy, none}, proposal);
    return std::move(proposal.tokens);
  };
}

Generation decode_blockwise(LanguageModelRef target, const OffsetPredictors& heads, std::span<const Token> prompt,
                            const BlockwiseOptions& options) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto length = static_cast<std::int64_t>(prompt.size());
  core::require_in(blockwise_function, "prompt length", length, 1, target.max_length());
  core::require_in(blockwise_function, "block", options.block, 1, most);
  core::require_in(blockwise_function, "max_new_tokens", options.max_new_tokens, 0, target.max_length() - length);
  return BlockwiseRun(target, heads, prompt, options).finish();
}

}  // namespace specdec::sim
