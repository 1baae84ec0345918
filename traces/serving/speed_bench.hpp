#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// Output of llama.cpp's tools/server/bench/speed-bench/speed_bench.py --output (llama.cpp pull request 23869): one
// object, with a result for each prompt or conversation that llama-server answered. CountUnit::request for each; its
// category is a label, model_name is that of config.
//
//   {"completed_samples": 1, "config": {"bench": "qualitative", "category": "all", "concurrency": 1, "extra_inputs":
//     {"temperature": 0}, "model": null, "osl": 1024, "url": "localhost:8080"}, "failed_samples": 0,
//    "results": [{"category": "coding", "completion_tokens": 40, "draft_n": 36, "draft_n_accepted": 15, "error": null,
//      "finish_reason": "stop", "id": "q1", "latency_s": 0.6, "ok": true, "predicted_ms": 480.0,
//      "predicted_per_second": 83.3, "prompt_ms": 20.0, "prompt_per_second": 5000.0, "prompt_tokens": 100,
//      "total_tokens": 140, "turns": 1}],
//    "selected_samples": 1, "summary": [{"accept_rate": 0.4166666666666667, "accepted": 15, "avg_latency": 0.6,
//      "avg_pred_t_s": 83.3, "avg_prompt_t_s": 5000.0, "category": "overall", "draft_n": 36, "failed": 0,
//      "requests": 1, "turns": 1}]}
//
// A result sums its turns, whose timings are those that response_counts.hpp reads: rounds = completion_tokens - turns -
// draft_n_accepted, with the same exceptions. Results that failed are left out with the warning "failed_left_out". The
// summary's row "overall" must have the drafts of all results. Every result has a BenchRun of its turns (completed) at
// config.concurrency; where times are wanted (CountsSink::plain_windows) predicted_ms must be there, and results
// without drafts are units, too.

/// One unit a result.
CountsFormat speed_bench_format();

}  // namespace specdec::traces
