#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include "render/text.hpp"

namespace specdec::cli {
namespace {

constexpr std::string_view bold = "1", green = "32", yellow = "33";

std::string in_colour(std::string_view text, std::string_view colour) {
  return fmt::format("\x1b[{}m{}\x1b[0m", colour, text);
}

}  // namespace

std::optional<TerminalSize> terminal_size() {
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return std::nullopt;
  if (size.ws_col == 0 || size.ws_row == 0) return std::nullopt;
  return TerminalSize{size.ws_col, size.ws_row};
}

bool is_colour_terminal() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr && terminal != nullptr &&
         std::string_view(terminal) != "dumb";
}

std::string coloured(std::string_view answer) {
  if (answer.find('\x1b') != std::string_view::npos) return std::string(answer);
  std::string text;
  // Columns stand two blanks apart.
  bool is_opening = answer.substr(0, answer.find("\n\n")).find("  ") == std::string_view::npos;
  std::string_view separator;
  for (const std::string_view line : render::split(answer, '\n')) {
    text += separator;
    separator = "\n";
    if (line.empty()) {
      is_opening = false;
    } else if (line.starts_with("Warning (")) {
      const std::size_t end = line.find(':');
      text += in_colour(line.substr(0, end), yellow);
      if (end != std::string_view::npos) text += line.substr(end);
    } else if (line.ends_with("  best")) {
      text += in_colour(line, green);
    } else {
      text += is_opening ? in_colour(line, bold) : std::string(line);
    }
  }
  return text;
}

}  // namespace specdec::cli
