#include "traces/prompt_id.hpp"

#include "traces/formats/text_parts.hpp"

namespace specdec::traces {
namespace {

std::uint64_t fnv1a(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

}  // namespace

std::int64_t prompt_id(std::string_view text) {
  if (text.empty()) return no_prompt;
  if (const auto number = number_in<std::int64_t>(text)) return *number;
  constexpr std::uint64_t beyond_integers = std::uint64_t{1} << 62U;
  return static_cast<std::int64_t>(beyond_integers | (scrambled(fnv1a(text)) & (beyond_integers - 1)));
}

}  // namespace specdec::traces
