#pragma once

#include <string>

#include "sim/validation/method_decoder.hpp"

/// Entries of draft_kinds(): drafts composed of other models or other texts.
namespace specdec::validation {

/// The target's first blocks and an exit.
std::string lacks_early_exit(const MethodContext& context);
DraftBenchFactory early_exit_benches(const MethodContext& context);

/// The draft model, with counted bigrams drafting for it.
std::string lacks_hierarchical(const MethodContext& context);
DraftBenchFactory hierarchical_benches(const MethodContext& context);

/// The target's own greedy text with some tokens replaced: an editing task.
DraftBenchFactory input_copy_benches(const MethodContext& context);

}  // namespace specdec::validation
