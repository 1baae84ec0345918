#include "planner/near_names.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>

namespace specdec::planner {
namespace {

constexpr std::size_t most_names = 3;

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

/// Number of insertions, deletions, exchanges and swaps of neighbours that lead from one to the other.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j] + (a[i] == b[j] ? 0U : 1U), row[j + 1] + 1, next[j] + 1});
      if (i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j])
        next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row.back();
}

}  // namespace

std::string near_names(std::string_view name, const std::vector<std::string>& known) {
  // No name is longer.
  constexpr std::size_t longest = 200;
  if (name.empty() || name.size() > longest) return "";
  const std::string given = lower(name);
  // Names that begin with the given one come first.
  std::vector<std::pair<std::pair<bool, std::size_t>, std::string>> found;
  for (const std::string& candidate : known) {
    const std::string other = lower(candidate);
    const bool holds = other.find(given) != std::string::npos || given.find(other) != std::string::npos;
    const std::size_t distance = edits(given, other);
    if (holds || 3 * distance <= given.size()) found.push_back({{!other.starts_with(given), distance}, candidate});
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (found.empty()) return "";
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(found.size(), most_names); ++i) names.push_back(found[i].second);
  return fmt::format(" (near it: {})", fmt::join(names, ", "));
}

}  // namespace specdec::planner
