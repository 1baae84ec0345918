#include "render/figures/chart_words.hpp"

#include <string_view>

#include "render/text.hpp"

namespace specdec::render {

std::string estimate_label(const estimate::Estimate& estimate, int decimals) {
  constexpr std::string_view typed = "+-";
  std::string text = with_interval(estimate, decimals);
  if (const std::size_t at = text.find(typed); at != std::string::npos) text.replace(at, typed.size(), "±");
  return text;
}

}  // namespace specdec::render
