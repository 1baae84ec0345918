#pragma once

#include <span>

#include "analysis/core/embedded_file.hpp"

namespace specdec::cost {

// A header of the library's own sources: the files of analysis/cost/presets as they were when the library was built.

/// presets/hardware, one device each (hardware_spec.hpp).
std::span<const core::EmbeddedFile> hardware_preset_files();
/// presets/efficiency.json, alone.
std::span<const core::EmbeddedFile> efficiency_preset_files();
/// presets/kernels, one device each (kernel_times.hpp).
std::span<const core::EmbeddedFile> kernel_preset_files();
/// presets/models, one model each (model_config.hpp).
std::span<const core::EmbeddedFile> model_preset_files();

}  // namespace specdec::cost
