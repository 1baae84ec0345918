#pragma once

#include <span>
#include <string>
#include <string_view>

#include "analysis/cost/hardware_spec.hpp"

namespace specdec::cost {

/// A link between nodes, one adapter to each accelerator.
struct LinkSpec {
  std::string name = {};
  /// Each direction, of one adapter.
  SourcedNumber bytes_per_second = {};
};

/// Those that come with the program, in order of name.
std::span<const LinkSpec> link_presets();
/// Null where none has the name.
const LinkSpec* link_preset(std::string_view name);

}  // namespace specdec::cost
