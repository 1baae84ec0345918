#pragma once

#include "traces/serving/read_serving_counts.hpp"

namespace specdec::traces {

// Lines that engines log, among any others and behind any prefix (times, process names, containers, colours):
//
//   vLLM, an interval each; the line of the engine in front of it gives the window's load:
//     Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg generation throughput: 238.7 tokens/s, Running: 10 reqs, ...
//     SpecDecoding metrics: Mean acceptance length: 3.07, ..., Accepted: 141 tokens, Drafted: 204 tokens,
//       Per-position acceptance rate: 0.897, 0.676, 0.500, Avg Draft acceptance rate: 69.1%
//     ... speculative_config=SpeculativeConfig(method='eagle3', ...       how all that follows drafts
//   SGLang, an interval each, as a mean without counts; the arguments of its start say how it drafts:
//     server_args=ServerArgs(..., speculative_num_steps=3, speculative_eagle_topk=1, speculative_num_draft_tokens=4)
//     Decode batch, #running-req: 1, ..., accept len: 2.85, ..., gen throughput (token/s): 0.73, #queue-req: 0
//     Prefill batch, #new-seq: 1, ...        between two of them: the second window has read prompts
//   llama.cpp's server, a request each, in three generations:
//     eval time =     783.55 ms /    64 tokens (   12.44 ms per token,    80.40 tokens per second)
//     draft acceptance = 0.10563 (   15 accepted /   142 generated), mean len =  1.31
//          acc per pos = (0.250, 0.063)                            where its trace level is on
//     draft acceptance = 0.64479 (  167 accepted /   259 generated), mean acceptance length =  2.92, acceptance rate
//       per position = (0.805, 0.632, 0.483)
//     draft acceptance rate = 0.57576 (  171 accepted /   297 generated)
//   llama-speculative and llama-speculative-simple, a program run each, on lines of their own:
//     n_draft = 4, n_predict = 121, n_drafted = 378, n_accept = 25, accept = 6.614%
//
// vLLM's and llama.cpp's mean lengths and rates by position are counted back to the numbers of rounds that they are
// roundings of (from_rates, rounds_between); of llama.cpp at most the passes that its answer's tokens took. The last
// line of a file that is still written to may be cut off.

/// "engine log".
CountsFormat engine_log_format();

/// Whether a log holds windows of vLLM or SGLang, with speculation or without.
bool has_engine_windows(const FileHead& head);

/// Whether a text holds llama.cpp's lines about answers.
bool times_answers(const FileHead& head);

}  // namespace specdec::traces
