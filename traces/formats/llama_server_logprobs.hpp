#pragma once

#include "traces/formats/response_reader.hpp"

namespace specdec::traces {

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
// `generation_settings`: llama_server_sampling.hpp.

bool is_llama_server_response(simdjson::dom::object response);
void read_llama_server_response(simdjson::dom::object response, ResponseReader& reader);

/// Reads a list of {id, token, logprob, top_logprobs} or {.., prob, top_probs} as the positions of `text`; `token_ids`,
/// if not empty, are the ids of the tokens that have none of their own.
void read_token_entries(simdjson::dom::array entries, const std::string& list, std::span<const std::int32_t> token_ids,
                        ResponseReader& reader, ScoredText& text);

}  // namespace specdec::traces
