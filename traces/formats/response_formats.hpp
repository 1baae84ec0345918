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

// llama-server's own responses (/completion with n_probs):
//
//   {"model": "m", "tokens_evaluated": 3, "completion_probabilities": [{"id": 7, "token": "Hi", "bytes": [72, 105],
//     "logprob": -0.5, "top_logprobs": [{"id": 7, "token": "Hi", "bytes": [72, 105], "logprob": -0.5}]}]}
//
// With `post_sampling_probs` the names are `prob` and `top_probs`: probabilities of the distribution that was sampled
// from; otherwise the log-probabilities are raw. -3.4028235e38 is probability 0. Older servers wrote
//
//   {"completion_probabilities": [{"content": "Hi", "probs": [{"tok_str": "Hi", "prob": 0.75}]}]}
//
// where the written token must be among those listed. The sampling settings are read from
// `generation_settings`: read_generation_settings.

bool is_llama_server_response(simdjson::dom::object response);
void read_llama_server_response(simdjson::dom::object response, ResponseReader& reader);

/// Reads a list of {id, token, logprob, top_logprobs} or {.., prob, top_probs} as the positions of `text`; `token_ids`,
/// if not empty, are the ids of the tokens that have none of their own.
void read_token_entries(simdjson::dom::array entries, const std::string& list, std::span<const std::int32_t> token_ids,
                        ResponseReader& reader, ScoredText& text);

// The sampling of an answer by llama-server, according to its `generation_settings`:
//
//   {"generation_settings": {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "typical_p": 1.0, ...,
//     "samplers": ["penalties", "dry", "top_n_sigma", "top_k", "typ_p", "top_p", "min_p", "xtc", "temperature"]}}
//
// Only the samplers of the list are active, in its order (without a list all of the above, in that order): a top_k of
// 40 has no effect if the list has no "top_k".

/// The sampling of a llama-server answer without settings: unknown, and raw numbers may not be those of the text.
SampledWith settings_not_stated(bool raw);

/// Reads the settings of a response; settings_not_stated() if it has none.
/// @param raw  the numbers are those before sampling, so that the settings must be applied to them: an active sampler
///   other than temperature, top-k, top-p and min-p, one that is unknown or named twice, or an order that
///   Standardisation cannot express (the cuts in this order, the temperature before or after them), is an error
/// @throws FileError
SampledWith read_generation_settings(simdjson::dom::object response, const ResponseReader& reader, bool raw);

}  // namespace specdec::traces
