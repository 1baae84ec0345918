#pragma once

#include "traces/formats/response_reader.hpp"

namespace specdec::traces {

// SGLang's own responses (/generate with return_logprob), one or an array of them:
//
//   {"text": "!", "meta_info": {"prompt_tokens": 3, "completion_tokens": 1,
//     "input_token_logprobs": [[null, 1, null], [-2.5, 7, "Hi"], [-0.5, 9, null]],
//     "output_token_logprobs": [[-1.25, 0, "!"]],
//     "input_top_logprobs": [null, [[-0.5, 9, null], [-2.5, 7, "Hi"]], [[-0.5, 9, null], [-1.5, 7, null]]],
//     "output_top_logprobs": [[[-0.75, 4, "."], [-1.25, 0, "!"]]]}}
//
// Each entry is [log-probability, token id, text or null]. The input begins at `logprob_start_len` and its first
// log-probability is null; its numbers are raw whatever the temperature. The output's are those sampled from.

bool is_sglang_response(simdjson::dom::object response);
void read_sglang_response(simdjson::dom::object response, ResponseReader& reader);

}  // namespace specdec::traces
