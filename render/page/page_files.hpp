#pragma once

#include <span>

#include "analysis/core/embedded_file.hpp"

namespace specdec::render {

/// page.css, alone.
std::span<const core::EmbeddedFile> page_files();

}  // namespace specdec::render
