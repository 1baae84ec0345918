#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/estimate/estimate.hpp"
#include "sim/generation.hpp"
#include "sim/validation/methods.hpp"

namespace specdec::validation {

/// One method on the sequences of one task, or on those of all.
struct MethodResult {
  Method method;
  /// Empty for all.
  std::string task;
  std::int64_t sequences = 0;
  sim::Counters counters;
  estimate::Estimate tokens_per_step;
  /// What the rule's closed form gives for the prefixes that were met, see docs/methods.md#the-table; of beams what
  /// independence gives (beam_system.hpp). Nothing where no draft was judged.
  std::optional<double> closed_form_tokens_per_step;
  /// Of the measured figure from it; nothing where the closed form leaves too little to chance.
  std::optional<double> deviation_standard_errors;
  /// Mean closed-form acceptance of the drafts that were judged; nothing for block verification, which judges no draft
  /// by itself.
  std::optional<estimate::Estimate> acceptance;
  /// Mean over emitted tokens of the total variation between the law from which the token came, given its prefix and
  /// its place in the round, and the target's. 0 where the method is lossless, nothing where it searches beams.
  std::optional<double> total_variation_per_token = 0;
  /// Blocks of the target that were run, and KL of a token's law from the target's, in nats; for methods that leave the
  /// target early. The latter is nothing where it is infinite, too.
  std::optional<double> blocks_per_token;
  std::optional<double> kullback_leibler_per_token;
  /// For methods that search beams, see Keeps::beams: sequences whose beams are not those of plain search, which is 0.
  std::optional<std::int64_t> different_beams;
  double target_calls_per_token = 0;
  /// Nothing where a recording does not tell how much was drafted; counters.drafted and drafted_at say nothing then.
  std::optional<double> draft_calls_per_token;
  /// Operations per token over those of plain decoding, or plain search; nothing for models that compute none.
  std::optional<double> operations_factor;
  /// Weights read per token over those of plain decoding, or plain search, a call reading each weight of its model
  /// once; nothing for models that compute none.
  std::optional<double> memory_factor;
  /// Nothing without a cost.
  std::optional<estimate::Estimate> speedup;

  /// [j]: of the rounds that drafted j + 1 tokens or more, the share in which so many stayed.
  std::vector<double> acceptance_by_position() const;
};

/// What a run of compare tells while it goes on, and asks. Either may be empty.
struct ComparisonHooks {
  /// Takes the share of the work done, in [0, 1].
  std::function<void(double share)> progress;
  /// True ends the run after the sequences that are under way. Asked by every thread.
  std::function<bool()> interrupt;
};

struct ComparedMethods {
  std::vector<MethodResult> results;
  /// The last method's results are of those sequences that were finished, and later methods were not begun.
  bool interrupted = false;
  /// Methods that ended at settings.tokens before they were as precise as was asked for.
  std::vector<Method> imprecise;
  /// What a reader should know of the recording that methods were replayed over.
  std::vector<Note> notes;
  /// Tokens of all methods, and the time that they took.
  std::int64_t tokens = 0;
  double seconds = 0;
};

/// c where every operation takes the same time: those of one token of the draft model over the target's. Nothing where
/// the target computes none.
std::optional<double> operations_ratio(const MethodContext& context);

/// A table pair drawn by the seed (sim/table_models.hpp), and prompts of one token each, the first 16 of the
/// vocabulary.
/// @param vocab_size  [2, 4096]
/// @param noise       of the draft, in logits, [0, 100]
/// @throws std::domain_error if a parameter is out of range
MethodSource synthetic_source(std::int64_t vocab_size, double noise, std::uint64_t seed);

/// The same with one row of such a pair at every prefix.
/// @param vocab_size  [2, 2^20]
MethodSource fixed_source(std::int64_t vocab_size, double noise, std::uint64_t seed);

/// Runs every method over the same prompts with the same random numbers.
///
/// Sequence s continues prompt s mod prompts with the stream (seed, s). Everything is a function of source and settings
/// without `threads`, bit for bit. Intervals respect that sequences of one prompt are alike.
///
/// @return for each method its results on all sequences, followed by those of each task where there are several
/// @throws std::invalid_argument if something is lacking for a method, there is no prompt, or vocabularies differ
/// @throws std::domain_error if a setting is out of range; whatever the models throw
ComparedMethods compare(const MethodContext& context, std::span<const Method> methods,
                        const ComparisonHooks& hooks = {});

}  // namespace specdec::validation
