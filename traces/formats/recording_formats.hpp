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

// Arrays written by numpy. An NPY file is one array:
//
//   "\x93NUMPY" | u8 major 1, 2 or 3 | u8 minor | header length: u16 (version 1) or u32 | header | data
//   {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      padded with spaces, ended by a newline
//
// An NPZ file is a zip archive of NPY files, one per array, either stored (numpy.savez) or deflated
// (numpy.savez_compressed):
//
//   np.savez("trace.npz", p=p, q=q, token=token, seq=seq)
//
// Arrays of an NPZ; all have N entries along their first axis; others in the file are named in a note and not read:
//
//   p, q             probabilities, [N, V] for whole rows, or [N] for the emitted token. Float16, 32 or 64
//   p_logprobs, ...  the same, with names that state what they are: _probs, _logprobs or _logits ('.' for '_' and
//                    the singular too); `target` and `draft` for p and q. Logits cannot be [N]: their normaliser is
//                    lost
//   token            the emitted tokens (any integer type)
//   seq              the sequence of each position, not decreasing; without it all is one sequence, or a new one begins
//                    where pos decreases
//   pos              the place in its sequence, rising by one; without it 0, 1, 2, ...
//   task             integers, or strings (numpy's <U or S types)
//   prompt           the same
//
// Float64 is rounded to float32, logits after subtracting their row's largest, so that a probability loses at most
// 1e-6 of itself. Big-endian and Fortran-ordered arrays are rejected, and so are Python objects (|O).

/// True if a file that begins like this is an NPY file.
bool is_npy(std::string_view head);
/// True if a file that begins like this is a zip archive.
bool is_npz(std::string_view head);

/// One archive with both models' arrays.
/// @throws FileError naming the archive's entry or byte
std::unique_ptr<PositionSource> open_npz(const std::filesystem::path& path, const ArrayNames& options = {});

/// Two NPY files, the same positions by the target and by the draft. The file names state what the numbers are
/// (for instance p_logits.npy), else the options must.
/// @throws FileError
std::unique_ptr<PositionSource> open_npy_pair(const std::filesystem::path& target, const std::filesystem::path& draft,
                                              const ArrayNames& options = {});

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

// Position traces, one sequence per line: for every place of the text the number of tokens that a round starting there
// would emit, the target's own included:
//
//   {"prompt_token_ids":[1,15],"generated_token_ids":[7,9,3],"acc_eagle":{"acc_len":[3,2,1]}}
//
// Each `acc_NAME` is one draft. generated_token_ids may be left out, or be longer than acc_len if the last places
// were not measured. A `task` or `category` may be present. Lines of one `prompt`, or without it of one
// prompt_token_ids, are texts of one prompt. Other keys are not read.

inline constexpr std::string_view position_trace_draft_prefix = "acc_";

/// True if a text that begins like this has such an object on its first line.
bool is_position_traces(std::string_view head);

/// Tier accepted_length.
/// @throws FileError naming the line and the key
std::unique_ptr<PositionSource> open_position_traces(const std::filesystem::path& path, const ArrayNames& options = {});

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

// Two numbers per token, as plain text: those of the target and the draft for the emitted token.
//
// CSV, the first line naming the columns in any order; separated by commas, semicolons or tabs; fields may be quoted:
//
//   request_id,token,target_logprob,draft_logprob,task
//   a,17,-0.25,-0.5,prose
//   a,4,-1.75,-inf,prose
//   b,17,-0.5,-0.125,code
//
// JSONL, one object per token, or one per sequence with arrays:
//
//   {"request_id":"a","token":17,"target_logprob":-0.25,"draft_logprob":-0.5,"task":"prose"}
//   {"request_id":"a","tokens":[17,4],"target_logprobs":[-0.25,-1.75],"draft_logprobs":[-0.5,-9999],"task":"prose"}
//
// Names of columns and keys (case and the choice of '_', '-', '.' or ' ' are ignored, a plural s may follow):
//
//   target    p_logprob, target_logprob, logprob_target, log_p, ...; the same with prob or probability; or p or target
//             alone, see below
//   draft     the same with q or draft
//   sequence  seq, sequence, sequence_id, request or request_id: text or numbers. All rows of a sequence are
//             contiguous. Without it a new sequence begins where pos does not rise; without both all is one sequence,
//             and each object with arrays is one
//   others    pos, position or place, rising by one; token or token_id; task or category; prompt;
//             overlap (sum min(p, q)); p_rank or target_rank, q_rank or draft_rank (1 = the most probable token)
//
// -inf, and anything from -9999 down (engines' floors), is probability 0; NaN and empty fields are rejected, except in
// overlap, token, task and the ranks, where they mean unknown. Columns called just p and q hold probabilities or
// log-probabilities: the first number that is not 0 decides for both, and every other must fit. A number above its
// limit by at most 1e-4 is read as the limit. Other columns are not read, and a note names them.

/// True if a text that begins like this is a CSV file whose header names both models.
bool is_token_pairs_csv(std::string_view head);
/// True if a text that begins like this has a JSON object on its first line that names both models.
bool is_token_pairs_jsonl(std::string_view head);
/// The same for at least one model, including by the options' names.
bool names_a_model_csv(std::string_view head, const ArrayNames& options);
bool names_a_model_jsonl(std::string_view head, const ArrayNames& options);

/// @throws FileError naming the line and the column
std::unique_ptr<PositionSource> open_token_pairs_csv(const std::filesystem::path& path, const ArrayNames& options = {});
std::unique_ptr<PositionSource> open_token_pairs_jsonl(const std::filesystem::path& path,
                                                       const ArrayNames& options = {});

}  // namespace specdec::traces
