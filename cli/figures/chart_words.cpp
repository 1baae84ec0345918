#include "cli/figures/chart_words.hpp"

#include <string_view>

#include "cli/text.hpp"

namespace specdec::cli {

std::string interval_text(const estimate::Estimate& estimate, int decimals) {
  constexpr std::string_view typed = "+-";
  std::string text = with_interval(estimate, decimals);
  if (const std::size_t at = text.find(typed); at != std::string::npos) text.replace(at, typed.size(), "±");
  return text;
}

}  // namespace specdec::cli
