#include "traces/formats/printable.hpp"

#include <fmt/format.h>

namespace specdec::traces {

std::string printable(std::string_view text, std::size_t longest) {
  std::string shown;
  for (const char c : text.substr(0, longest)) {
    if (' ' <= c && c <= '~') {
      shown += c;
    } else {
      shown += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  if (text.size() > longest) shown += "...";
  return shown;
}

}  // namespace specdec::traces
