#pragma once

#include <string_view>

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// Output of AIPerf (https://github.com/ai-dynamo/aiperf, 0.13).
//
// Records, profile_export.jsonl of --export-level records: JSON lines, one a request, of which these keys are read:
//
//   {"metadata": {"benchmark_phase": "profiling", "was_cancelled": false},
//    "metrics": {"output_sequence_length": {"value": 41, "unit": "tokens"}},
//    "spec_decode_acceptance": {"engine": "vllm", "mean_acceptance_length": 2.25,
//     "draft_acceptance_rate": 0.4166666666666667, "acceptance_histogram": {"0": 5, "1": 2, "2": 2, "3": 3},
//     "num_accepted_draft_tokens": 15, "num_draft_tokens": 36, "num_spec_steps": 12, "num_spec_tokens": 3,
//     "per_step_accepted": null, "per_step_drafted": null},
//    "error": null}
//
// CountUnit::request. The length includes the bonus token, the rate is a fraction, the histogram leaves out numbers of
// accepted drafts that no round had. Requests of another phase than "profiling" are left out with the warning
// "warmup_left_out", those without spec_decode_acceptance with "requests_without_speculation"; a file of nothing else
// is refused. Drafts of vLLM are chains; of others the shape is unknown.
//
// The summary, profile_export_aiperf.json: one object a run, of whose metrics the mean is read ("avg"):
//
//   {"aiperf_version": "0.13.0", "request_count": {"unit": "requests", "avg": 12},
//    "inter_token_latency": {"unit": "ms", "avg": 11.9}, "output_token_throughput": {"unit": "tokens/sec", "avg":
//    624.4}, "benchmark_duration": {"unit": "sec", "avg": 20.5}, "total_isl": {"unit": "tokens", "avg": 102400},
//    "total_osl": {"unit": "tokens", "avg": 12800}, "total_spec_decode_steps": {"unit": "count", "avg": 40},
//    "total_accepted_draft_tokens": {"unit": "tokens", "avg": 60}, "total_draft_tokens": {"unit": "tokens", "avg":
//    120}, "pooled_spec_decode_acceptance_histogram": {"0": 10, "1": 10, "2": 10, "3": 10}}
//
// and of input_config the first model's name, the kind of the first data set (label dataset_name) and the concurrency
// of the phase "profiling". CountUnit::run. Its inter-token latency is the time behind the first token by the tokens
// behind it, a mean over requests: what other programs call the time per output token. Without the totals of
// speculation the run is a baseline. AIPerf 0.13 has them from vLLM alone, whose drafts are chains. A unit of another
// name is refused.

/// The engine of counts whose server nobody names.
inline constexpr std::string_view aiperf_engine = "aiperf";

/// One unit a request.
CountsFormat aiperf_records_format();
/// One unit a run.
CountsFormat aiperf_summary_format();

}  // namespace specdec::traces
