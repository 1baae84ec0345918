#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "analysis/estimate/estimate.hpp"
#include "sim/generation.hpp"
#include "sim/validation/method_timing.hpp"
#include "sim/validation/methods.hpp"

namespace specdec::validation {

/// One method on the sequences of one task, or on all of them.
struct MethodResult {
  Method method;
  /// Empty for all tasks.
  std::string task;
  std::int64_t sequences = 0;
  sim::Counters counters;
  estimate::Estimate tokens_per_step;
  /// The value by the rule's closed form for the prefixes encountered, see docs/reference/methods.md#the-table. Empty if no draft was judged.
  std::optional<double> closed_form_tokens_per_step;
  /// Deviation of the measured figure from it; empty if the closed form leaves too little to chance.
  std::optional<double> deviation_standard_errors;
  /// Mean closed-form acceptance of the drafts that were judged; empty for block verification, which judges no draft
  /// individually.
  std::optional<estimate::Estimate> acceptance;
  /// Mean over emitted tokens of the total variation between the law from which the token came, given its prefix and
  /// its place in the round, and the target's. 0 if the method is lossless.
  double total_variation_per_token = 0;
  double target_calls_per_token = 0;
  /// Empty if a recording does not determine how much was drafted; counters.drafted and drafted_at then mean nothing.
  std::optional<double> draft_calls_per_token;
  /// Operations per token over those of plain decoding; empty for models that compute none.
  std::optional<double> operations_factor;
  /// Weights read per token over those of plain decoding, where a call reads each weight of its model
  /// once; empty for models that compute none.
  std::optional<double> memory_factor;
  /// Empty without a cost.
  std::optional<estimate::Estimate> speedup;
  /// Empty unless settings.timed, for plain decoding, and for trees, whose nodes the simulator scores one by one.
  std::optional<MethodTiming> timing;

  /// [j]: of the rounds that drafted j + 1 tokens or more, the share in which at least that many were accepted.
  std::vector<double> acceptance_by_position() const;
};

struct ComparedMethods {
  std::vector<MethodResult> results;
  /// The last method's results cover only the sequences that were finished, and later methods were not started.
  bool interrupted = false;
  /// Methods that ended at settings.tokens before they reached the requested precision.
  std::vector<Method> imprecise;
  /// Notes for the reader on the recording that methods were replayed over.
  std::vector<Note> notes;
  /// Tokens of all methods, and the time they took.
  std::int64_t tokens = 0;
  double seconds = 0;
};

/// A table pair drawn by the seed (sim/table_models.hpp), and prompts of one token each, the first 16 of the
/// vocabulary.
/// @param vocab_size  [2, 4096]
/// @param noise       the draft's, in logits, [0, 100]
/// @throws std::domain_error if a parameter is out of range
MethodSource synthetic_source(std::int64_t vocab_size, double noise, std::uint64_t seed);

/// The same with one row of such a pair at every prefix.
/// @param vocab_size  [2, 2^20]
MethodSource fixed_source(std::int64_t vocab_size, double noise, std::uint64_t seed);

/// Runs every method over the same prompts with the same random numbers.
///
/// Sequence s continues prompt s mod prompts with the stream (seed, s). Results are a function of source and settings
/// without `threads`, bit for bit. Intervals allow for dependence between sequences of one prompt.
///
/// @param hooks  an interrupted run ends after the sequences in progress
/// @return for each method its results on all sequences, followed by those of each task if there are several
/// @throws std::invalid_argument if a method lacks something, there is no prompt, or vocabularies differ
/// @throws std::domain_error if a setting is out of range; anything that the models throw
ComparedMethods compare(const MethodContext& context, std::span<const Method> methods,
                        const core::RunHooks& hooks = {});

}  // namespace specdec::validation
