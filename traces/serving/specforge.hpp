#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// Output of benchmarks/bench_eagle3.py of SpecForge (https://github.com/sgl-project/SpecForge, commit a6b6b023): one
// object, whose keys but "model", the draft's path, name benchmarks, with a run of SGLang for each of their
// configurations and a metrics for each repetition of it. CountUnit::run for each of these; the benchmark is the label
// "category", the draft the label "draft".
//
//   {"model": "org/draft",
//    "gsm8k": [{"batch_size": 1, "steps": 3, "topk": 1, "num_draft_tokens": 4,
//               "metrics": [{"latency": 20.5, "output_throughput": 312.0, "accept_length": 2.56, "accuracy": 0.8,
//                            "num_questions": 80, "num_valid_predictions": 80, "categorical_performance": null}],
//               "num_samples": 80}]}
//
// steps are 0 without speculation, and null where the server was not started by the script: gamma is unknown then.
// Drafts of topk above 1, or of more tokens than steps and the root, are trees.
//
//   tokens = output_throughput latency,   rounds = tokens / accept_length,   accepted = tokens - num_questions - rounds
//
// since accept_length counts the first token of each answer, which its prompt gives; that of further turns of a
// conversation, which are not told, stays among the accepted. Time per token is batch_size / output_throughput, as if
// batch_size requests decoded at all times.

/// One unit a metrics.
CountsFormat specforge_format();

}  // namespace specdec::traces
