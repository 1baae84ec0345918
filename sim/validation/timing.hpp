#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/model_factory.hpp"

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

/// Of the calls that read a prompt, and of the others.
double prompt_seconds(std::span<const TimedModel::Call> calls);
double scoring_seconds(std::span<const TimedModel::Call> calls);

/// The time components of one configuration. Medians, single stream. Every call that yields a token includes the
/// standardising and sampling of that token, so that a draft equal to the target has c = 1 and v(1) = 1.
struct Timing {
  /// Standardising a row and sampling from it, as in plain decoding for each token.
  double sampling_seconds = 0;
  /// One token of plain decoding: a call of the target for one token, and sampling.
  double target_step_seconds = 0;
  /// A call of the draft for one token, and sampling.
  double draft_step_seconds = 0;
  /// A call of the target for gamma + 1 tokens, and sampling one token.
  double verify_seconds = 0;
  /// The rest of a speculative step, 0 if nothing is left: standardising the other rows, accepting, roll-back.
  double overhead_seconds = 0;
  /// Plain decoding's time per token over that of speculative decoding.
  double speedup = 0;

  double c() const { return draft_step_seconds / target_step_seconds; }
  double verify_factor() const { return verify_seconds / target_step_seconds; }
  double overhead() const { return overhead_seconds / target_step_seconds; }
};

/// Decodes each prompt plainly and speculatively in turn and times both; reading the prompts is not counted.
///
/// @param threads   threads of each model
/// @param prompts   at least one
/// @param decoding  with gamma >= 1 and max_new_tokens >= gamma + 1, so that a full step occurs
/// @param seed, first_sequence  prompt i uses the streams of sequences first_sequence + 2i and the one after it
Timing measure_timing(const sim::ModelPair& models, std::int64_t threads,
                      std::span<const std::span<const sim::Token>> prompts, const sim::DecodingOptions& decoding,
                      std::uint64_t seed, std::uint64_t first_sequence);

}  // namespace specdec::validation
