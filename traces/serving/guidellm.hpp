#pragma once

#include <string_view>

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// The report that guidellm writes (https://github.com/vllm-project/guidellm, 0.8; --output kind=json): one object,
// whose list has one benchmark for each concurrency or rate. CountUnit::run for each of them.
//
//   {"metadata": {"version": 2, "guidellm_version": "0.8.1"},
//    "config": {"spec": {"data": [{"kind": "synthetic_text"}]}}, "benchmarks": [
//     {"config": {"strategy": {"type_": "concurrent", "streams": 4}, "backend": {"model": "m"}},
//      "metrics": {"request_totals": {"successful": 12, "errored": 0, "incomplete": 0, "total": 12},
//                  "prompt_token_count": {"successful": {"total_sum": 240.0}},
//                  "output_token_count": {"successful": {"total_sum": 526.0}},
//                  "inter_token_latency_ms": {"successful": {"mean": 8.3}}},
//      "requests": {"successful": [{"response_metrics": {"speculative_decoding": {"num_spec_steps": 12,
//                   "num_accepted_draft_tokens": 15, "num_draft_tokens": 36, "acceptance_histogram": [5, 2, 2, 3],
//                   "num_spec_tokens": 3}}}]},
//      "duration": 1.35}]}
//
// Its inter-token latency is the time between a request's first and last token by the tokens behind the first, the mean
// weighted by these; its time per output token, which is not read, has the wait for the first token in it. Output
// tokens a second are total_sum / duration.
//
// guidellm keeps what a server says of a request; where that is vLLM's speculative_decoding
// (--per-request-spec-decode-metrics), the counts of the benchmark's requests are summed. Without any the run is a
// baseline. Where it keeps a sample of the requests (sample_size) the counts are of these, with the warning
// "sample_of_requests".

/// The engine of a run whose server nobody names.
inline constexpr std::string_view guidellm_engine = "guidellm";

/// One unit a benchmark.
CountsFormat guidellm_format();

}  // namespace specdec::traces
