#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/file_error.hpp"
#include "traces/note.hpp"
#include "traces/trace_metadata.hpp"

/// Servers' counts of speculative decoding, in one form whoever wrote them: docs/reference/formats.md.
namespace specdec::traces {

/// 2^53: doubles count no further.
inline constexpr double largest_count = 9007199254740992.0;

/// Sum of a histogram's counts.
double sum_of(std::span<const double> counts);
/// sum_j j counts[j]: what the rounds of a histogram have together.
double weighted_sum(std::span<const double> counts);
/// Adds a histogram to sums of histograms, which are extended to its length.
void add_counts(std::vector<double>& sums, std::span<const double> counts);

/// The arrangement of the drafts of a round.
enum class DraftShape {
  unknown,
  chain,  ///< gamma drafts one after the other
  tree,   ///< several drafts at one position
};

/// "unknown", "chain" or "tree".
std::string_view name_of(DraftShape shape);

/// The unit that a set of counts was counted over; requests, windows, runs and instances are clusters of rounds.
enum class CountUnit {
  total,    ///< everything since the server started, or a whole program run: one scrape of counters, one summary
  window,   ///< an interval of time: the difference of two scrapes, a log line that reports one interval
  request,  ///< one request
  run,      ///< one benchmark run
};

/// "total", "window", "request" or "run".
std::string_view name_of(CountUnit unit);

/// A name and a value that tell counts apart: model_name="m", instance="10.0.0.1:8000", category="writing".
struct CountLabel {
  std::string name;
  std::string value;

  friend bool operator==(const CountLabel&, const CountLabel&) = default;
};

/// Figures that a benchmark program wrote of one run, in its own words; see docs/reference/formats.md for what may be inferred
/// from them.
struct BenchRun {
  std::optional<double> max_concurrency;
  /// Requests that decode at a time, where the source states it; else it follows from throughput and time per token.
  std::optional<double> batch;
  /// Requests/s; infinity where all were sent at once.
  std::optional<double> request_rate;
  std::optional<double> num_prompts, completed;
  std::optional<double> duration_s;
  std::optional<double> total_input_tokens, total_output_tokens;
  /// Means, where the source gives them instead of totals.
  std::optional<double> input_tokens_per_request, output_tokens_per_request;
  /// Output tokens of each answer, where the source tells all of them and they are equal.
  std::optional<double> equal_output_tokens;
  /// Output tokens/s over all requests; NaN where the source says that.
  std::optional<double> output_throughput;
  /// Time per output token after the first, mean over requests; the only one that a round may be inferred from. NaN
  /// where the source says that.
  std::optional<double> mean_tpot_ms;
  /// Time between chunks or between tokens, by engine and release.
  std::optional<double> mean_itl_ms;

  friend bool operator==(const BenchRun&, const BenchRun&) = default;
};

/// Expected in place of a time per token that is in another unit than milliseconds; empty where none is seen to be.
std::string of_other_unit(const BenchRun& run);

/// Figures of one window in an engine's log, beside its counts.
struct EngineWindow {
  /// Requests of one engine.
  std::optional<double> running, waiting;
  /// 0 where the log shows that no prompt was read.
  std::optional<double> prompt_tokens_per_second, generation_tokens_per_second;

  friend bool operator==(const EngineWindow&, const EngineWindow&) = default;
};

/// Times between two edges, seconds.
struct TimesBetween {
  double low = 0, high = 0, count = 0;
};

/// The times between two outputs of a request, which are those of rounds, as an engine's histogram has them.
struct RoundTimes {
  /// Number of times, > 0, and their sum.
  double count = 0, seconds = 0;
  /// Iterations of the engine, and first tokens of requests, whose prompts some of these iterations read.
  double iterations = 0, first_tokens = 0;
  /// Number of times up to so many seconds, rising with them; the last is all of them at infinity.
  std::map<double, double> up_to;

  /// Those with times in them, rising.
  std::vector<TimesBetween> buckets() const;

  friend bool operator==(const RoundTimes&, const RoundTimes&) = default;
};

/// The drafts that were made, where counts by step hold tokens that were not drafted.
struct DraftsMade {
  /// Rounds with a draft, and the tokens of all drafts.
  double rounds = 0, tokens = 0;

  friend bool operator==(const DraftsMade&, const DraftsMade&) = default;
};

/// What a quantity may be by one of several figures that a source has of it: ends apart by rounding, or since the figure
/// is of another moment.
struct StatedFigure {
  /// "tokens per step", "output tokens/s".
  std::string_view quantity;
  /// As the source calls it.
  std::string name;
  double low = 0, high = 0;

  friend bool operator==(const StatedFigure&, const StatedFigure&) = default;
};

/// One unit's counts. What its source does not say stays empty and is never guessed; counts that a source gives as
/// rounded rates are counted back and marked `from_rates`.
struct ServingCounts {
  std::filesystem::path file;
  /// Line of the record in the file, from 1; 0 where it has no line.
  std::int64_t line = 0;
  /// "vllm", "sglang", "tensorrt-llm", "llama.cpp", "spec-bench", "eagle", "position-trace", "run-table".
  std::string engine;
  /// As the list of formats shows it, for instance "vllm metrics".
  std::string_view format;
  CountUnit unit = CountUnit::total;
  /// Id of a request, as its source writes it; empty where it does not.
  std::string id;
  std::vector<CountLabel> labels;
  /// Unix seconds.
  std::optional<double> begin_s, end_s;
  /// True for what lies between two scrapes, which may be files of their own.
  bool between_scrapes = false;

  /// How drafts are made, in the engine's own word ("eagle3", "mtp", "ngram"); empty where it does not say it.
  std::string draft_method;
  std::optional<AcceptanceRule> rule;
  DraftShape shape = DraftShape::unknown;
  /// Longest chain of drafts of a round: the number of speculative tokens, for a tree its depth.
  std::optional<std::int64_t> gamma;
  /// Target positions verified a round, the root included, where it is a tree.
  std::optional<std::int64_t> verified_per_round;
  /// Drafts at one position that a tree goes on from, where the source tells them.
  std::optional<std::int64_t> top_k;

  /// Verification rounds, >= 0.
  std::optional<double> rounds;
  /// Passes of the target behind the first token of each request, those without a draft included, where the source
  /// tells them.
  std::optional<double> steps;
  /// The fewest and the most that `rounds` may have been, where the source rounds what it is counted back from.
  std::optional<std::pair<double, double>> rounds_between;
  std::optional<double> drafted, accepted;
  /// Set where rounds without a draft are among them: by counted_by_step, and of runs of answers.
  std::optional<DraftsMade> made;
  /// Tokens put out by these rounds, the bonus or corrected token of each included.
  std::optional<double> emitted;
  /// Mean of the tokens put out by a round, the bonus or corrected token included, where the source rounds it and says
  /// neither how many rounds nor how many tokens it is the mean of.
  std::optional<double> tokens_per_round;
  /// Figures beside the counts that say the same again.
  std::vector<StatedFigure> stated;
  /// [j] = rounds with exactly j accepted drafts; empty where unknown.
  std::vector<double> rounds_by_accepted;
  /// The same by the length of the round's draft.
  std::map<std::int64_t, std::vector<double>> rounds_by_accepted_and_drafted;
  /// [j] = rounds whose draft j + 1 was accepted (all before it too), and was made.
  std::vector<double> accepted_at, drafted_at;
  bool from_rates = false;

  std::optional<BenchRun> bench;
  std::optional<EngineWindow> window;
  std::optional<RoundTimes> round_times;

  /// Value of a label; empty where there is none.
  std::string_view label(std::string_view name) const;

  /// Where the counts stand, for messages: "requests.jsonl:3", or the file alone.
  std::string place() const;
  /// The error to throw where they cannot be used as they are.
  FileError refusal(std::string field, std::string found, std::string expected) const;

  friend bool operator==(const ServingCounts&, const ServingCounts&) = default;
};

/// ServingCounts::steps, or for a benchmark run what follows from its totals: every request gets its first token from
/// its prompt, and a step puts out one token more than it accepts,
///
///   steps = max(rounds, total_output_tokens - completed - accepted)
///
/// At most the last step of a request accepts tokens that its end cuts off. Empty where the source tells neither.
std::optional<double> steps_of(const ServingCounts& counts);

/// Counts of a benchmark run back from the mean tokens of its rounds; false where its totals do not tell its tokens.
bool count_back(ServingCounts& run, double tokens_per_round);

/// The same of a run of vLLM without counts: its mean_itl_ms is between chunks, and a chunk holds the tokens of a
/// round, so that it is so many times mean_tpot_ms. Below 1.4 nothing, since means over requests and over chunks
/// differ, too.
/// @return what was taken for what, if anything was
std::optional<Note> count_chunks(ServingCounts& run);

/// ServingCounts::gamma, or else the one that is stated, or the longest draft that was counted by position; empty where
/// nothing says it.
std::optional<std::int64_t> longest_draft_of(const ServingCounts& counts,
                                             std::optional<std::int64_t> stated = std::nullopt);

/// Drafted tokens of a round, where all rounds may have drafted as many; empty where they did not, or nothing tells.
std::optional<std::int64_t> equal_drafts_of(const ServingCounts& counts);

/// The same counts with every step for a round, as of a server that drafts gamma tokens in each: where a lookup finds
/// nothing, or less than gamma tokens, the missing ones count as drafts that were rejected, and `made` says what was
/// drafted. Without steps_of every round counts as a step; trees, and what counts no rounds, stay as they are.
/// @param gamma  that of counts which neither state it nor count by position
ServingCounts counted_by_step(ServingCounts counts, std::optional<std::int64_t> gamma = std::nullopt);

}  // namespace specdec::traces
