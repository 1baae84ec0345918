#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "traces/position_source.hpp"

namespace specdec::traces {

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
