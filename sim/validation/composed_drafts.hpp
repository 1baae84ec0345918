#pragma once

#include <string>

#include "sim/validation/method_decoder.hpp"

/// Entries of draft_kinds(): drafts that are made of other models, or of other texts.
namespace specdec::validation {

/// The target's first blocks and an exit.
std::string lacks_early_exit(const MethodContext& context);
DraftBenchFactory early_exit_benches(const MethodContext& context);

/// The draft model, drafted for by counted bigrams.
std::string lacks_hierarchical(const MethodContext& context);
DraftBenchFactory hierarchical_benches(const MethodContext& context);

/// The target's own greedy text, of which some tokens have been replaced: a task of editing.
DraftBenchFactory input_copy_benches(const MethodContext& context);

}  // namespace specdec::validation
