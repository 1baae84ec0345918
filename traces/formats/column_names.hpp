#pragma once

#include <optional>
#include <string_view>

#include "traces/position_batch.hpp"
#include "traces/position_source.hpp"

namespace specdec::traces {

// Internal header of the library; it is not installed.
//
// Common names for the columns of the two models. Case is ignored, words are separated by '_', '-', '.'
// or a blank, a word may have a plural s, and words come in any order:
//
//   whose   one of: p target | q draft
//   what    none, or one of: prob probability | logprob log_prob logp log_p (log_q for the draft) | logit | rank
//   filler  token, model; with a `what` only: target_token and target_model are not numbers of the target
//
// So p, q, target_logprobs, p.token_logprob, logprob_draft, log_q and "Draft Probability" are such names.

struct ModelColumn {
  Role role = Role::target;
  /// The kind of the numbers; empty if the name does not state it.
  std::optional<RowSpace> space;
  bool rank = false;
};

/// The meaning of a name, or empty if it is not such a name.
std::optional<ModelColumn> model_column(std::string_view name);
/// The kind of the numbers, for a name with other words in it, such as a file's.
std::optional<RowSpace> space_named_in(std::string_view name);

/// The columns of a recording: those of the two models, and the others.
enum class PairColumn { sequence, place, token, task, prompt, overlap, target, draft, target_rank, draft_rank };

/// The meaning of the name of a column that is no model's: seq sequence sequence_id request request_id | pos position
/// place | token token_id | task category | prompt | overlap.
std::optional<PairColumn> index_column(std::string_view name);

/// "target" or "draft".
std::string_view name_of(Role role);
/// "probabilities", "log-probabilities" or "logits".
std::string_view name_of(RowSpace space);

}  // namespace specdec::traces
