#pragma once

#include <span>

#include "analysis/core/embedded_file.hpp"

namespace specdec::cli {

/// specdec.bash, _specdec (zsh's) and specdec.fish, in this order.
std::span<const core::EmbeddedFile> completion_files();

}  // namespace specdec::cli
