#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace specdec::traces {

// A header of the library's own sources; it is not installed.

/// What a column of a table of runs holds.
enum class RunColumn {
  unknown,
  unused,         ///< known and not needed: percentiles, times to the first token, speedups, notes
  unclear,        ///< could be one of several: NamedColumn::advice says what to write
  setting,        ///< how the run was set: "baseline", "EAGLE3 K=3"
  strategy,       ///< guidellm's: "synchronous" is one request at a time
  concurrency,    ///< requests in flight at most
  batch,          ///< requests that decode at a time
  gamma,
  throughput,      ///< output tokens/s of all requests
  each_throughput, ///< output tokens/s of one request
  ms_per_token,
  ms_between,     ///< between tokens or between chunks, by engine and release
  tokens_per_step,
  drafts_per_step,  ///< accepted ones, without the target's own token
  acceptance_rate,  ///< accepted/drafted
  rounds,
  drafted,
  accepted,
  accepted_at,    ///< share of all rounds whose draft NamedColumn::position was accepted
  topk,
  verified,
  draft_tokens,   ///< drafted ones in all beside counts, verified ones of a round beside topk
  steps,          ///< drafts of a round, or many as rounds are
  requests,
  seconds,
  request_rate,
  mean_input,
  mean_output,
  total_input,
  total_output,
  model,
  draft,
  engine,
  server,
  category,
};

enum class Statistic { none, mean, median };

/// What a heading says of its column.
struct NamedColumn {
  RunColumn what = RunColumn::unknown;
  /// In lower case, words joined by '_', without its unit.
  std::string name;
  /// As written between brackets or behind the name: "ms", "%", "tok/s"; empty if it states none.
  std::string unit;
  Statistic statistic = Statistic::none;
  std::size_t position = 0;
  /// Whether single words of the heading say it, and a heading that is known as a whole comes before it.
  bool by_words = false;
  /// Of an unclear column: what to write instead.
  std::string_view advice = {};
};

NamedColumn column_of(std::string_view heading);

/// A number as people write it in a cell.
struct CellNumber {
  double value = 0;
  /// Half of its last digit.
  double rounding = 0;
  /// What follows it, in lower case: "%", "ms", "x".
  std::string unit;
};

/// "**1,234.5** ± 3", "76 %", "27.6 ms", "1.2k"; empty if it is none, without what stands behind ± or in brackets.
/// @param decimal_comma  1.234,5 is 1234.5
std::optional<CellNumber> number_of_cell(std::string_view cell, bool decimal_comma);

/// Whether a number is written with a comma that can only be a decimal one: 22,92.
bool has_decimal_comma(std::string_view cell);

/// A cell without marks around it (**bold**, `code`); empty for a dash, n/a, null and the like.
std::string_view bare_cell(std::string_view cell);

/// Whether a cell says that the run did not speculate: baseline, off, none, ...
bool says_plain(std::string_view cell);

/// The drafted tokens that a setting states: 3 of "EAGLE3, K=3".
std::optional<double> gamma_in_setting(std::string_view cell);

/// How a setting says that drafts are made: "eagle3" of "EAGLE3, K=3"; empty where it does not.
std::string method_in_setting(std::string_view cell);

/// By how much a value in the unit is multiplied to be one of the column's own (ms, tokens/s); empty for another unit.
std::optional<double> scale_of_unit(RunColumn what, std::string_view unit);

}  // namespace specdec::traces
