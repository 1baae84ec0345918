#pragma once

#include <string>

#include "sim/validation/method_decoder.hpp"

namespace specdec::validation {

/// Entries of draft_kinds(): heads that read the target's features.
std::string lacks_eagle_head(const MethodContext& context);
DraftBenchFactory eagle_drafts(const MethodContext& context);

std::string lacks_parallel_heads(const MethodContext& context);
DraftBenchFactory parallel_drafts(const MethodContext& context);

/// Entries of draft_kinds(): drafts composed of other models or other texts.
/// The target's first blocks and an exit.
std::string lacks_early_exit(const MethodContext& context);
DraftBenchFactory early_exit_benches(const MethodContext& context);

/// The draft model, with counted bigrams drafting for it.
std::string lacks_hierarchical(const MethodContext& context);
DraftBenchFactory hierarchical_benches(const MethodContext& context);

/// The target's own greedy text with some tokens replaced: an editing task.
DraftBenchFactory input_copy_benches(const MethodContext& context);

}  // namespace specdec::validation
