#pragma once

#include <string_view>

namespace specdec::core {

/// A text file that is part of the library (cmake/SpecdecEmbed.cmake). Both views live as long as the program.
struct EmbeddedFile {
  /// The name without its folder: "h100-sxm.json".
  std::string_view name;
  std::string_view content;
};

}  // namespace specdec::core
