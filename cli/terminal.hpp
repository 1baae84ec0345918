#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace specdec::cli {

struct TerminalSize {
  int columns = 80;
  int rows = 24;
};

/// The size of standard output; empty if it is no terminal, or one that does not say.
std::optional<TerminalSize> terminal_size();

/// True if standard output is a terminal that shows colours and NO_COLOR does not forbid them.
bool is_colour_terminal();

/// An answer in colours: its first paragraph bold unless it is a table, rows marked as the best green, and what
/// warnings are called yellow. A text that has escapes already stays as it is.
std::string coloured(std::string_view answer);

}  // namespace specdec::cli
