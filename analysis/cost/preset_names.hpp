#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

namespace specdec::cost {

// A header of the library's own sources; it is not installed.

/// A name as it is compared: lower case, without spaces, dashes and underscores.
std::string preset_key(std::string_view name);

/// The preset that has this name or alias; null where none has it. `presets` are ModelSpecs or HardwareSpecs.
template <class Preset>
const Preset* find_preset(std::span<const Preset> presets, std::string_view name) {
  const std::string key = preset_key(name);
  const auto is_called = [&](std::string_view other) { return preset_key(other) == key; };
  const auto found = std::find_if(presets.begin(), presets.end(), [&](const Preset& preset) {
    return is_called(preset.name) || std::any_of(preset.aliases.begin(), preset.aliases.end(), is_called);
  });
  return found == presets.end() ? nullptr : &*found;
}

}  // namespace specdec::cost
