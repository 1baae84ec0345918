#pragma once

#include "traces/serving/counted_fields.hpp"

namespace specdec::traces {

// A header of the library's own sources.

/// Sets shape, gamma and verified positions by SGLang's arguments, as far as they are given.
void set_sglang_drafts(std::optional<double> steps, std::optional<double> top_k, std::optional<double> verified,
                       ServingCounts& counts);

/// Shape, gamma and verified positions from SGLang's server arguments speculative_num_steps, speculative_eagle_topk and
/// speculative_num_draft_tokens, which count the root, where the object holds them itself or in its server_info or
/// server_args: a tree where the second exceeds 1 or the third the first by more than 1.
/// @throws FileError if one is no count
void read_sglang_arguments(const CountedFields& fields, ServingCounts& counts);

}  // namespace specdec::traces
