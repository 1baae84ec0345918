#include "cli/given_options.hpp"

#include <fmt/format.h>

#include "cli/usage_error.hpp"

namespace specdec::cli {

std::vector<std::string_view> names_given(const GivenOptions& options) {
  std::vector<std::string_view> names;
  for (const auto& [name, is_given] : options) {
    if (is_given) names.push_back(name);
  }
  return names;
}

void refuse_given(const GivenOptions& options, std::string_view why) {
  const auto names = names_given(options);
  if (!names.empty()) throw UsageError(fmt::format("{} is given, but {}", names.front(), why));
}

}  // namespace specdec::cli
