#pragma once

#include "traces/formats/response_reader.hpp"

namespace specdec::traces {

// Responses of OpenAI's interface and compatible ones; one text for each element of `choices`. Keys that are not
// named here are not read.
//
// Completions. A text of n tokens has n of each; top_logprobs may be null, and so may its elements:
//
//   {"model": "m", "choices": [{"index": 0, "logprobs": {"tokens": ["Hi", "!"], "token_logprobs": [-0.5, -1.25],
//     "top_logprobs": [{"Hi": -0.5, "Yo": -1.5}, {"!": -1.25, ".": -0.75}], "text_offset": [0, 2]}}],
//    "usage": {"prompt_tokens": 3}}
//
// With `echo` the prompt precedes the output, and its first token has null.
//
// Chat. A text of n tokens; `id` is llama-server's, which writes the same in `completion_probabilities`:
//
//   {"choices": [{"logprobs": {"content": [{"token": "Hi", "id": 7, "logprob": -0.5,
//     "top_logprobs": [{"token": "Hi", "id": 7, "logprob": -0.5}, {"token": "Yo", "id": 9, "logprob": -1.5}]}]}}]}
//
// With llama-server's `post_sampling_probs` it is `prob` and `top_probs`, probabilities of what was sampled from.
//
// vLLM adds `token_ids` and `prompt_token_ids` to a choice (`return_token_ids`), or names tokens "token_id:7"
// (`return_tokens_as_token_ids`), and scores prompts: a list in a choice (completions) or beside `choices` (chat),
// whose first element is null and whose others are the given token and the most probable ones, by id:
//
//   {"choices": [{"prompt_token_ids": [1, 7], "prompt_logprobs": [null,
//     {"7": {"logprob": -2.5, "rank": 4, "decoded_token": "Hi"}, "9": {"logprob": -0.5, "rank": 1}}]}]}
//
// Without prompt_token_ids the first of each element is the given token. prompt_logprobs are raw; whether the
// log-probabilities of an output are those sampled from depends on how the server was started: unknown.

/// True if the object is such a response.
bool is_openai_response(simdjson::dom::object response);

/// Adds its texts to the reader's.
void read_openai_response(simdjson::dom::object response, ResponseReader& reader);

}  // namespace specdec::traces
