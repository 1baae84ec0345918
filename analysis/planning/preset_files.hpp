#pragma once

#include <span>

#include "analysis/core/embedded_file.hpp"

namespace specdec::planning {

// Internal header of the library: the files of analysis/planning/presets as they were when it was built.

/// Acceptance rates, each file from one source (published_acceptance.hpp).
std::span<const core::EmbeddedFile> published_acceptance_files();
/// Acceptance lengths of heads (published_lengths.hpp).
std::span<const core::EmbeddedFile> published_length_files();

}  // namespace specdec::planning
