#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// Results of a run as benchmark programs write them: one JSON object a run, alone in its file, in JSON lines or
// in an array. Keys may be missing or null, others are not read (but become labels where they are strings of `labels`
// below). CountUnit::run.
//
// vllm bench serve:
//
//   {"backend": "vllm", "model_id": "m", "num_prompts": 100, "request_rate": "inf", "max_concurrency": 8,
//    "duration": 20.5, "completed": 100, "total_input_tokens": 102400, "total_output_tokens": 12800,
//    "output_throughput": 624.4, "mean_tpot_ms": 11.9, "mean_itl_ms": 28.1,
//    "spec_decode_acceptance_rate": 50.0, "spec_decode_acceptance_length": 2.5, "spec_decode_num_drafts": 40,
//    "spec_decode_draft_tokens": 120, "spec_decode_accepted_tokens": 60,
//    "spec_decode_per_position_acceptance_rates": [0.75, 0.5, 0.25]}
//
// The rate is a percentage of the drafted tokens, the length includes the bonus token, and the rates by position are
// fractions of all drafts, so they never rise. What is given twice must agree to the digits that are written.
//
// SGLang's bench_serving:
//
//   {"backend": "sglang", "dataset_name": "random", "request_rate": Infinity, "max_concurrency": 8, "duration": 20.5,
//    "completed": 100, "total_input_tokens": 102400, "total_output_tokens": 12800, "output_throughput": 624.4,
//    "mean_tpot_ms": 11.9, "mean_itl_ms": 11.9, "accept_length": 2.5}
//
// accept_length is tokens a round with the bonus token, averaged since the server started. Rounds are counted back from
// it: the first token of every request comes from its prompt, so the rounds put out total_output_tokens - completed.
//
// The draft becomes the label draft where draft_model, speculative_model, speculative_draft_model_path or draft names
// it, speculative_draft_model_path in server_info or server_args, or model in speculative_config.
//
// Without speculation keys a run is a baseline: its BenchRun alone.

/// One unit a run.
CountsFormat vllm_bench_format();
CountsFormat sglang_bench_format();

}  // namespace specdec::traces
