#pragma once

#include "traces/formats/response_reader.hpp"

namespace specdec::traces {

// Top-k lists that teachers write for distillation; one model per file.
//
// NeMo, one text per line. Row t of the T rows predicts token t + 1; there are T or T + 1 tokens. K logits per row with
// the logarithm of the sum of the exponentials of all logits, so the tail is known:
//
//   {"tokens": [1, 7, 9], "topk_logits": [[2.5, 1.0], [3.0, 0.5]], "topk_token_ids": [[7, 4], [9, 0]],
//    "log_sum_exp_logits": [3.25, 3.5]}
//
// TRL, a batch of B texts per line: little-endian f4 log-probabilities and i4 ids of shape [B, T, K] in base64, padded
// after the `completion_lengths`, and those of the actual tokens, of shape [B, T, 1]; the last three may be
// left out, and then the tokens are unknown:
//
//   {"shape": [1, 1, 2], "logprobs_b64": "AAAAv8P1qL8=", "token_ids_b64": "BwAAAAQAAAA=", "completion_lengths": [1],
//    "actual_logprobs_b64": "AAAAvw==", "actual_token_ids_b64": "BwAAAA=="}
//
// NeMo's numbers are raw; TRL's are at the requested temperature, which the file does not state: unknown.

bool is_nemo_text(simdjson::dom::object object);
void read_nemo_text(simdjson::dom::object object, ResponseReader& reader);

bool is_trl_batch(simdjson::dom::object object);
void read_trl_batch(simdjson::dom::object object, ResponseReader& reader);

}  // namespace specdec::traces
