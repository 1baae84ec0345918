#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// Benchmark runs as people tabulate them: a header, then a run a line. CountUnit::run.
//
//   concurrency,gamma,output_tokens_per_second,tokens_per_step
//   1,0,163.2,                                                   gamma 0: without speculation
//   1,3,299.7,2.67
//   32,3,3249,2.59
//
// Fields are separated by a comma, a semicolon or a tab. Columns come in any order; capitals do not matter, and blanks,
// '_' and '-' are alike:
//
//   concurrency (max_concurrency)      requests in flight at most, > 0; or batch: requests that decode at a time, > 0
//   gamma (num_speculative_tokens)     drafted tokens a round, a whole number >= 0
//   output_tokens_per_second (output_throughput)   of all requests, > 0; and or: ms_per_token (mean_tpot_ms), > 0
//   tokens_per_step (acceptance_length, accept_length)   bonus token included, in [1, gamma + 1]
//   rounds                             that tokens_per_step is the mean of, >= 1
//   topk                               drafts at one position: a tree where it is above 1; gamma (num_steps): its depth
//   verified_tokens (num_draft_tokens) of a tree: positions that a round verifies, the root included, above gamma
//   input_tokens, output_tokens        means over requests, >= 0;   requests: how many were completed
//   model, draft, engine               names
//   server                             names the start of the server that ran it: a date, a number, ...
//
// The first three must be there, a field may be empty. Of throughput and time one gives the other by Little's law, the
// batch being as stated, or else as large as the concurrency. Where rounds are not given the tokens per step are a mean
// of unknown precision.

/// The value of ServingCounts::engine where no column names it.
inline constexpr std::string_view run_table_engine = "run-table";

CountsFormat run_table_format();

}  // namespace specdec::traces
