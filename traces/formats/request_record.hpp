#pragma once

#include <filesystem>
#include <memory>

#include "traces/position_source.hpp"

namespace specdec::traces {

// The format that scripts/record_openai.py writes: JSON lines, both models in one file. The first line holds what all
// requests share, each other line is one request. Two numbers and two ranks per token, without the prompt.
//
//   {"format": "specdec-record", "version": 1, "target_model": "meta/big", "draft_model": "meta/small",
//    "engine": "vllm", "temperature": 1.0, "logprob_space": "raw", "path": "target"}
//   {"id": "q7", "task": "prose", "prompt": "q7", "prompt_tokens": 2, "token_ids": [16289, 28793],
//    "target": {"logprobs": [-0.25, -3.5], "ranks": [1, 7]}, "draft": {"logprobs": [-0.75, -9.25], "ranks": [2, 90]}}
//
// Each on one line of the file. The first line:
//
//   format          "specdec-record"
//   version         1
//   target_model, draft_model, engine, draft_kind      strings; may be left out
//   temperature     >= 0, the sampling temperature of the text; may be left out or null, as may:
//   top_k           integer >= 0 (0: not cut)
//   top_p           in (0, 1]
//   min_p           in [0, 1] (0: not cut)
//   temperature_last  true if the temperature came after the cuts
//   vocab_size      integer >= 1
//   logprob_space   "raw", "processed" or "unknown" (without the key)
//   path            "target" if the target sampled the text, "other" if not, or "unknown" (without the key)
//   acceptance      "rejection", "greedy-draft" or "greedy"
//
// A request:
//
//   id              string or integer; may be left out
//   task            string; may be left out
//   prompt          string or integer that names the prompt, the same for all texts of one; may be left out
//   token_ids       the n >= 0 emitted tokens, integers in [0, 2^31)
//   target, draft   {"logprobs": n numbers, "ranks": n integers}: the natural logarithm of that model's probability of
//                   each token of token_ids, given the prompt and the tokens before it, and the token's rank in that
//                   model's distribution. -9999 and less, including -Infinity, is probability 0. Rank 1 is the most
//                   probable token, 2 may just mean "not 1", and 0 or null is unknown; ranks may be left out.
//
// Other keys of the first line are kept as metadata, others are not read. A file that ends within a line is an error at
// that line.

/// A record as a recording of the scalar tier.
/// @throws FileError naming line, key, what is there and what is expected; here for the first line, from read() for the
///   others
std::unique_ptr<PositionSource> open_request_record(const std::filesystem::path& path);

/// True if a JSON text that begins like this is a record.
bool is_request_record(std::string_view head);

}  // namespace specdec::traces
