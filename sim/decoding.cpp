#include "sim/decoding.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/core/checks.hpp"
#include "sim/sampling.hpp"

namespace specdec::sim {
namespace {

/// Empties the model and lets it read the prompt except its last token, which is part of the first step.
void read_prompt(LanguageModel& model, std::span<const Token> prompt) {
  model.roll_back(0);
  if (prompt.size() > 1) model.score(prompt.first(prompt.size() - 1), {});
}

/// The state of one speculative run. `text_` is the prompt and everything generated so far.
class SpeculativeRun {
 public:
  SpeculativeRun(LanguageModel& target, Draft& draft, std::span<const Token> prompt, const DecodingOptions& options,
                 const UniformSource& uniforms)
      : target_(target),
        draft_(draft),
        options_(options),
        uniforms_(uniforms),
        vocab_(static_cast<std::size_t>(target.vocab_size())),
        gamma_(options.gamma),
        text_(prompt.begin(), prompt.end()) {
    read_prompt(target_, prompt);
    draft_.begin(prompt);
  }

  Generation finish() {
    for (std::int64_t round = 0; !result_.ended && result_.counters.tokens < options_.max_new_tokens; ++round) {
      propose(round);
      score_proposals();
      settle(options_.verifier({target_rows_, proposal_.rows, proposal_.tokens}, uniforms_, round));
      if (options_.policy.next_gamma) gamma_ = options_.policy.next_gamma(gamma_, result_.steps.back());
    }
    const DraftWork work = draft_.work();
    Counters& counters = result_.counters;
    counters.draft_calls = work.calls;
    counters.draft_positions = work.positions;
    counters.operations =
        work.operations + target_.operations_per_token() * static_cast<double>(counters.target_positions);
    return std::move(result_);
  }

 private:
  void propose(std::int64_t round) {
    constexpr std::string_view function = "decode_with_draft";
    core::require_in(function, "gamma", gamma_, 0, std::numeric_limits<std::int64_t>::max());
    const std::int64_t wanted = options_.max_new_tokens - result_.counters.tokens;
    const std::int64_t limit = std::min(gamma_, wanted - 1);
    draft_.propose({text_, limit, round, options_.policy, uniforms_}, proposal_);
    core::require_in(function, "proposed tokens", length_of(proposal_.tokens), 0, limit);
  }

  /// One call of the target over the text's last token and all drafts.
  void score_proposals() {
    block_.assign(1, text_.back());
    block_.insert(block_.end(), proposal_.tokens.begin(), proposal_.tokens.end());
    target_rows_.resize(block_.size() * vocab_);
    target_.score(block_, target_rows_);
    result_.counters.target_calls += 1;
    result_.counters.target_positions += length_of(block_);
    for (std::size_t i = 0; i < block_.size(); ++i)
      core::standardise(std::span(target_rows_).subspan(i * vocab_, vocab_), options_.standardisation);
  }

  /// Appends the accepted drafts and the extra token to the text, and removes the rejected drafts from the models.
  void settle(Verdict verdict) {
    const std::int64_t kept_length = length_of(text_) + verdict.accepted;
    target_.roll_back(kept_length);
    draft_.keep(kept_length);
    const std::int64_t drafted = length_of(proposal_.tokens);
    const bool all = verdict.accepted == drafted;
    const Token rejected = all ? -1 : proposal_.tokens[static_cast<std::size_t>(verdict.accepted)];
    result_.begin_step({drafted, verdict.accepted, 0, rejected}, drafted);
    for (std::int64_t i = 0; i < verdict.accepted && !result_.ended; ++i)
      emit(proposal_.tokens[static_cast<std::size_t>(i)]);
    if (!result_.ended) emit(verdict.extra);
  }

  void emit(Token token) {
    text_.push_back(token);
    result_.emit(token, options_.end_token);
  }

  LanguageModel& target_;
  Draft& draft_;
  const DecodingOptions& options_;
  const UniformSource& uniforms_;
  std::size_t vocab_;
  std::int64_t gamma_;
  std::vector<Token> text_;
  Generation result_;
  // Data of the current step, kept to reuse the memory.
  Proposal proposal_;
  std::vector<Token> block_;
  std::vector<double> target_rows_;
};

void require_valid(std::string_view function, const LanguageModel& target, std::int64_t draft_vocab,
                   std::int64_t draft_max_length, std::span<const Token> prompt, const DecodingOptions& options) {
  require_one_vocabulary(function, target.vocab_size(), draft_vocab);
  for (const std::int64_t max_length : {target.max_length(), draft_max_length})
    require_room_for_text(function, max_length, prompt, options.max_new_tokens);
  core::require_in(function, "gamma", options.gamma, 0, std::numeric_limits<std::int64_t>::max());
  core::require_valid(options.standardisation);
}

}  // namespace

Generation decode_speculatively(LanguageModel& target, LanguageModel& draft, std::span<const Token> prompt,
                                const DecodingOptions& options, const UniformSource& uniforms) {
  require_valid("decode_speculatively", target, draft.vocab_size(), draft.max_length(), prompt, options);
  ModelDraft model_draft(draft, options.standardisation);
  return SpeculativeRun(target, model_draft, prompt, options, uniforms).finish();
}

Generation decode_with_draft(LanguageModel& target, Draft& draft, std::span<const Token> prompt,
                             const DecodingOptions& options, const UniformSource& uniforms) {
  require_valid("decode_with_draft", target, draft.vocab_size(), draft.max_length(), prompt, options);
  return SpeculativeRun(target, draft, prompt, options, uniforms).finish();
}

Generation decode_autoregressively(LanguageModel& target, std::span<const Token> prompt, const DecodingOptions& options,
                                   const UniformSource& uniforms) {
  require_room_for_text("decode_autoregressively", target.max_length(), prompt, options.max_new_tokens);
  core::require_valid(options.standardisation);
  read_prompt(target, prompt);

  Generation result;
  Token last = prompt.back();
  std::vector<double> row(static_cast<std::size_t>(target.vocab_size()));
  for (std::int64_t t = 0; t < options.max_new_tokens && !result.ended; ++t) {
    target.score(std::span(&last, 1), row);
    core::standardise(row, options.standardisation);
    last = sample(row, uniforms.uniform(t, 0, Purpose::target));
    result.tokens.push_back(last);
    result.ended = last == options.end_token;
  }
  Counters& counters = result.counters;
  counters.tokens = counters.target_calls = counters.target_positions = length_of(result.tokens);
  counters.operations = target.operations_per_token() * static_cast<double>(counters.target_positions);
  return result;
}

}  // namespace specdec::sim
