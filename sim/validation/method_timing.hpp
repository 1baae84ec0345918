#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "analysis/core/step_cost.hpp"
#include "sim/language_model.hpp"
#include "sim/validation/method_decoder.hpp"

namespace specdec::validation {

double seconds_since(std::chrono::steady_clock::time_point start);

/// A model that records how long each of its scoring calls took. The underlying model must outlive it.
class TimedModel final : public sim::LanguageModel {
 public:
  struct Call {
    std::int64_t tokens = 0;
    std::int64_t rows = 0;
    double seconds = 0;
  };

  explicit TimedModel(sim::LanguageModel& model) : model_(model) {}

  std::int64_t vocab_size() const override { return model_.vocab_size(); }
  std::int64_t max_length() const override { return model_.max_length(); }
  std::int64_t length() const override { return model_.length(); }
  double operations_per_token() const override { return model_.operations_per_token(); }
  void score(std::span<const sim::Token> block, std::span<double> rows) override;
  void roll_back(std::int64_t length) override { model_.roll_back(length); }

  std::span<const Call> calls() const { return calls_; }
  void forget_calls() { calls_.clear(); }

 private:
  sim::LanguageModel& model_;
  std::vector<Call> calls_;
};

/// Where the time of a method's text went, and that of plain decoding of the same prompt.
struct RunTimes {
  /// Of the method's text.
  sim::Counters counters = {};
  /// Without reading the prompt, per token.
  double plain_seconds = 0;
  /// A plain step's call, and the rest of its step.
  std::vector<double> plain_calls;
  double sampling_seconds = 0;
  /// Without reading the prompt and without what only tests need.
  double seconds = 0;
  /// Scoring calls of the target.
  std::vector<TimedModel::Call> calls;
  double drafting_seconds = 0;
  /// The rest of a step.
  double rest_seconds = 0;
};

/// Wall clock of one method: medians over its steps, drafting and ratios over all its texts.
struct MethodTiming {
  double plain_step_seconds = 0;
  /// Drafting a token over a plain step: the mean, since a round that copies drafts for nothing and the next by a
  /// model.
  double c = 0;
  /// v(n) by the number of scored tokens, where there were enough calls; those of one token are not among them.
  std::vector<core::VerificationCost::Point> verification;
  /// The rest of a step over a plain step.
  double overhead = 0;
  /// The speedup by Theorem 3.8 from the acceptance and c alone; empty where rounds do not draft gamma tokens.
  std::optional<double> theorem;
  /// The speedup by the closed form's tokens per step, c, v and overhead.
  double expected = 0;
  /// Plain decoding's time per token over the method's.
  double measured = 0;
};

/// Times the calls of a method's target and draft while it decodes.
class MethodClock {
 public:
  /// The same bench, timed. The clock must outlive it.
  DraftBench timed(DraftBench bench);
  /// Adds time that no engine would spend.
  void exclude(double seconds) { excluded_ += seconds; }
  /// Completes the times of a text that took so many seconds, prompt and exclusions included, and forgets them.
  void finish(double total, RunTimes& times);

 private:
  class TimedDraft;
  /// What was wrapped.
  std::vector<DraftBench> inner_;
  std::shared_ptr<TimedModel> target_;
  std::shared_ptr<TimedDraft> draft_;
  double excluded_ = 0;
};

/// Times plain decoding of a prompt, then `decode`, which decodes it by the bench that the clock times.
///
/// @param target    for plain decoding
/// @param decoding  of both
RunTimes time_in_turn(sim::LanguageModel& target, std::span<const sim::Token> prompt,
                      const sim::DecodingOptions& decoding, const sim::UniformSource& uniforms, MethodClock& clock,
                      const std::function<sim::Counters()>& decode);

/// @param gamma     that every round was asked for
/// @param alpha     mean acceptance of a draft, if known
/// @param expected_tokens_per_step  by the closed form
MethodTiming timing_of(std::span<const RunTimes> times, std::int64_t gamma, std::optional<double> alpha,
                       double expected_tokens_per_step);

}  // namespace specdec::validation
