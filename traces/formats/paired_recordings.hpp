#pragma once

#include <filesystem>
#include <memory>

#include "traces/position_source.hpp"

namespace specdec::traces {

// Two files that each hold one model's numbers for the same texts, joined token by token. Each file is in any of the
// formats of model_recording.hpp; the two formats may differ.
//
// Requests are paired in their order; if both files give every request a `custom_id` (OpenAI's batch format), by
// that, in whatever order the draft's file has them. Within a request:
//
// - If both state at which token of the text they begin, the positions that both have are joined; else they are
//   joined from their ends. Thus a generation, which leaves its prompt out, pairs with a scoring of prompt and output.
// - Every joined token must be the same in both. Tokens are compared by id; if neither file has ids, by text.
//   Texts get ids that are valid within the request only, and a note says so. Two entries of one list with the
//   same text (pieces of a character print alike) are two tokens that match nothing in the other model's lists.
//
// The tier is top-k if both models have lists, else scalar. Both have the emitted token's log-probability, which may
// lie outside of the list, and its rank.

/// @throws FileError naming file, line, request and token at which the files differ, and as model_recording.hpp says
std::unique_ptr<PositionSource> open_paired_recordings(const std::filesystem::path& target,
                                                       const std::filesystem::path& draft);

/// True if a JSON text that begins like this is a response with log-probabilities.
bool is_model_recording(std::string_view head);

}  // namespace specdec::traces
