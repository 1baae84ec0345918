#pragma once

#include <string>

#include "sim/validation/method_decoder.hpp"

/// Entries of the table of drafts: heads that read the target's features.
namespace specdec::validation {

std::string lacks_eagle_head(const MethodContext& context);
DraftBenchFactory eagle_drafts(const MethodContext& context);

std::string lacks_parallel_heads(const MethodContext& context);
DraftBenchFactory parallel_drafts(const MethodContext& context);

}  // namespace specdec::validation
