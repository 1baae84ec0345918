#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analysis/cost/fitted_cost.hpp"
#include "traces/serving/serving_counts.hpp"

namespace specdec::cost {

/// A benchmark run's rounds, with what they were inferred from.
struct BenchRounds {
  ObservedRound round = {};
  /// (accepted + rounds) / rounds; 1 for a run without speculation.
  double tokens_per_step = 1;
  /// round.seconds / tokens_per_step = mean_tpot.
  double seconds_per_output_token = 0;
  double output_tokens_per_second = 0;
};

/// Rounds of a benchmark run from its own means:
///
///   batch   = output_throughput mean_tpot          (Little's law: requests in their decoding phase)
///   gamma   = drafted / rounds;   tokens per step = 1 + accepted / rounds;   0 and 1 where there were no rounds
///   seconds = mean_tpot tokens per step
///   context = (total_input_tokens + total_output_tokens / 2) / completed, or the same of means over requests; none
///             where one of them is missing
///
/// mean_tpot is per token; a round is never inferred from mean_itl, whose meaning differs by engine and release.
/// Source:   Little 1961; docs/theory.md#cost-of-a-round
/// @param run    with counts.bench
/// @param gamma  drafted tokens per round of a speculative run that does not count them; >= 0
/// @param tokens_per_step  that of a speculative run that does not say it: drafts_uncounted; [1, gamma + 1]
/// @throws traces::FileError that names the key where one is missing, not positive, or contradicts another
BenchRounds bench_rounds(const traces::ServingCounts& run, std::optional<double> gamma = std::nullopt,
                         std::optional<double> tokens_per_step = std::nullopt);

/// Whether a run drafted, by the length of its drafts alone: it does not say how much was accepted.
bool drafts_uncounted(const traces::ServingCounts& run);

/// Mean drafted tokens of a step by gamma, as FitOptions::mean_drafts takes them, where counts by step of chains say
/// that some drafts were shorter than gamma or missing (ServingCounts::made). Empty where none says so.
std::function<double(double gamma)> mean_drafts_of(std::span<const traces::ServingCounts* const> counts);

/// Output tokens/s over all requests of two runs that differ in their load alone.
struct FallingThroughput {
  const traces::ServingCounts* fewer = nullptr;  ///< requests at a time
  const traces::ServingCounts* more = nullptr;
};

/// Throughput that falls below this share of its value falls, and load is several times another from this factor on.
inline constexpr double throughput_held = 0.9;
inline constexpr double several_times_the_load = 4;

/// The two runs of one model and gamma, or tree, between which the throughput of all requests together falls most, to
/// less than throughput_held although the load is several_times_the_load or more: as throughput of each request does.
/// More requests at a time put out more tokens together until a server is full, and hardly fewer from there on. Empty
/// if there are none; runs without a load or a throughput are passed over.
std::optional<FallingThroughput> falling_throughput(std::span<const traces::ServingCounts> runs);

/// The warning of it, "throughput_falls_with_load", and what to do about it, which it does not say.
Note warning_of(const FallingThroughput& falling);
inline constexpr std::string_view remedy_of_falling_throughput =
    "throughput is that of all requests together: multiply it by the concurrency if what is written is of one request";

/// The gamma of drafts of so many tokens on average, of which ends of answers cut some off: a whole number up to 5%
/// above it. Empty if there is none.
std::optional<std::int64_t> gamma_of_mean(double drafted_per_round);

/// Answers of a server that decodes `max_concurrency` of them at a time, one where they do not say it, as one run:
///
///   mean_tpot = seconds of generation / tokens behind the first of each answer
///   output_throughput = max_concurrency / mean_tpot
///
/// In a run that speculates every pass of the target is a round, also those of answers without drafts; `made` says how
/// many drafted, if all answers tell it. Those without a BenchRun are left out.
/// @param answers  answers of one file, at least one, with the BenchRun of one request each
/// @throws traces::FileError where answers are of several slots, which decode together, or no answer has a BenchRun
traces::ServingCounts run_of_answers(std::span<const traces::ServingCounts> answers);

/// The rounds in engines' logs.
struct LogRounds {
  /// By engine in the order of the logs, then rising by batch.
  std::vector<ObservedRound> rounds;
  std::size_t windows = 0;
  /// Windows that priced a round.
  std::size_t steady_windows = 0;
  /// The usual batches of the rounds, rising: the smallest, the largest, and between them the powers of two.
  std::vector<double> usual_batches() const;
};

/// At most so many rounds of one engine at one batch.
inline constexpr std::size_t rounds_of_one_load = 4;

/// The rounds of engines, told apart by file and labels, and by file whether they speculate, from those windows that
/// neither read prompts nor changed the number of running requests:
///
///   seconds = running tokens per step / generation_tokens_per_second
///
/// A window counts if its prompt throughput is 0, nothing waits, and `running` is the same in the windows before and
/// after it; both must be there. Other windows hold idle time or prompts. The context is unknown. Windows without
/// counts are of a server without speculation where no other one has any, and else of unknown drafts. The windows of
/// an engine at one batch are taken together in up to rounds_of_one_load stretches of time, since neighbouring
/// windows err alike:
///
///   seconds = windows / sum 1 / seconds,   gamma = mean over the rounds
///
/// An engine without such a window gives those that only may be steady: nothing tells of the windows beside them, or of
/// the prompts that SGLang's first one read; and without those, all that put out tokens, prompts or not. They are in no
/// count of steady windows.
///
/// @param windows  windows of all logs, those of an engine in their order; those without window figures are passed over
/// @param gamma    as in bench_rounds
/// @throws traces::FileError as bench_rounds, or for a log without a window that put out tokens
LogRounds log_rounds(std::span<const traces::ServingCounts> windows, std::optional<double> gamma = std::nullopt);

/// Batches within this factor are one load.
inline constexpr double one_load = 1.25;

/// Where the batches of all rounds lie within a factor of one_load, sets them to the mean of the rounds without
/// speculation (of all where there are none): at one batch a fit knows fixed parts and a slope over gamma, and would
/// take what a faster round leaves in flight for a slope over the batch.
/// @return that batch; empty if they lie further apart, or there are no rounds
std::optional<double> join_batches(std::span<ObservedRound> rounds);

}  // namespace specdec::cost
