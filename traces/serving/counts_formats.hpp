#pragma once

#include <string_view>

#include "traces/serving/read_serving_counts.hpp"

/// The formats of counts. What each looks like, what is read of it and what is left out stands in the file of its name,
/// such as aiperf.cpp.
namespace specdec::traces {

/// The engine of counts whose server nobody names, by the program or table that has them.
inline constexpr std::string_view aiperf_engine = "aiperf", guidellm_engine = "guidellm",
                                  run_table_engine = "run-table";

/// One unit a request, or a choice where choices are counted alone: response_counts.cpp.
CountsFormat vllm_requests_format();
CountsFormat tensorrt_llm_requests_format();
CountsFormat sglang_responses_format();
CountsFormat llama_server_timings_format();
CountsFormat aiperf_records_format();

/// One unit a question: stored_acceptance.cpp.
CountsFormat spec_bench_format();
CountsFormat eagle_format();
/// One unit a result.
CountsFormat speed_bench_format();
/// One unit a sequence and draft.
CountsFormat position_trace_counts_format();

/// One unit a run: bench_results.cpp, aiperf.cpp, guidellm.cpp, run_table.cpp.
CountsFormat vllm_bench_format();
CountsFormat sglang_bench_format();
CountsFormat aiperf_summary_format();
CountsFormat guidellm_format();
CountsFormat run_table_format();

/// Totals of one scrape, and windows between several.
CountsFormat prometheus_text_format();
CountsFormat prometheus_api_format();

/// One unit an iteration that drafted: iteration_stats.cpp.
CountsFormat tensorrt_llm_iterations_format();
/// One unit a window, an answer or a program run, by engine.
CountsFormat engine_log_format();
/// Whether a log holds windows of vLLM or SGLang, with speculation or without.
bool has_engine_windows(const FileHead& head);
/// Whether a text holds llama.cpp's lines about answers.
bool times_answers(const FileHead& head);

}  // namespace specdec::traces
