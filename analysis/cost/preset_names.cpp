#include "analysis/cost/preset_names.hpp"

#include <cctype>

namespace specdec::cost {

std::string preset_key(std::string_view name) {
  std::string key;
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') continue;
    key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return key;
}

}  // namespace specdec::cost
