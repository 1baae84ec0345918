#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// Benchmark runs as people tabulate them and programs print them, a run a row. CountUnit::run.
//
//   concurrency,gamma,output_tokens_per_second,tokens_per_step
//   1,0,163.2,                                                   gamma 0: without speculation
//   1,3,299.7,2.67
//
//   | bs | K        | tok/s        | AL       |                 Markdown, or columns between blanks
//   |---:|----------|-------------:|----------|
//   |  1 | baseline | 163.2 ± 0.4  |          |
//   |  1 | 3        | **299.7**    | 2.67     |
//
//   ============ Serving Benchmark Result ============           what a benchmark program prints: one run a summary
//   Maximum request concurrency:             64
//   Output token throughput (tok/s):         2148.42
//
// docs/reference/formats.md#a-table-of-runs lists the columns, their other names and their units. Of throughput and time one gives
// the other by Little's law, the batch being as stated, or else as large as the concurrency. Where rounds are not given
// the tokens per step are a mean of unknown precision. A column that could be several things is refused where it is
// needed, and else left out with the warning "columns_left_out".

/// The value of ServingCounts::engine where no column names it.
inline constexpr std::string_view run_table_engine = "run-table";

CountsFormat run_table_format();

}  // namespace specdec::traces
