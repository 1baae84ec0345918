#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

#include "traces/position_source.hpp"

namespace specdec::traces {

// The format of `llama-perplexity --kl-divergence-base FILE` (alias --save-all-logits), little-endian:
//
//   8 bytes "_logits_" | i32 n_ctx | i32 n_vocab | i32 n_chunk | i32 tokens[n_chunk][n_ctx] | row[n_chunk][R]
//   row = f32 scale | f32 min_log_prob | u16 code[n_vocab] | one u16 of padding if n_vocab is odd
//   R   = n_ctx - 1 - n_ctx/2        (only the second half of each chunk is scored)
//
// Row i of a chunk is the distribution of the chunk's token n_ctx/2 + i + 1; log p = scale * code + min_log_prob. So
// n_ctx 4, n_vocab 3 and n_chunk 1 give R = 1 and a file of 20 + 4*4 + 2*(4 + 4) = 52 bytes, here with the
// probabilities 0, 1/2 and 1/2 for the token 2 that came last:
//
//   _logits_ | 4 | 3 | 1 | 0 1 1 2 | 0.00024414435 | -16.693147 | 0 65535 65535 | padding
//
// Code 0 means "at or below the floor", at most 16 nats below the row's largest logit, and is read as probability 0.
// The row is not renormalised: what is missing from 1 is the mass of the tokens at the floor. scale 0 is the uniform
// row. A text that was too short leaves a file of 12 bytes; an interrupted run leaves a truncated one.

/// True if a file that begins like this is such a file.
bool is_llamacpp_logits(std::string_view head);

/// Two of these files, target and draft over the same text, as full rows of probabilities (F32). Each chunk is a
/// sequence; place 0 is the chunk's first scored token.
/// @param text_source  the origin of the text, which the files do not state
/// @throws FileError if a file's size does not match its header, its chunks, vocabulary or tokens differ from those of
///   the other (the first different token is named), or a token lies outside the vocabulary. Reading rejects rows whose
///   scale or floor is not a number in range, and rows whose sum exceeds 1, or lacks more than its floor can hold.
std::unique_ptr<PositionSource> open_llamacpp_logits(const std::filesystem::path& target,
                                                     const std::filesystem::path& draft,
                                                     TextSource text_source = TextSource::other);

}  // namespace specdec::traces
