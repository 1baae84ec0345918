#include "analysis/estimate/label_groups.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <optional>

#include "analysis/core/parsed_number.hpp"

namespace specdec::estimate {

namespace {

/// The name of the range of numbers below bounds[place], or from the last bound on.
std::string range_name(const std::vector<double>& bounds, std::size_t place) {
  if (place == 0) return fmt::format("<{}", bounds.front());
  return place < bounds.size() ? fmt::format("{}-{}", bounds[place - 1], bounds[place])
                               : fmt::format(">={}", bounds.back());
}

}  // namespace

std::string LabelGroups::group_of(std::string_view value) const {
  if (bounds.empty()) return std::string(value);
  const std::optional<double> number = core::parsed_number(value);
  if (!number) return {};
  return range_name(bounds,
                    static_cast<std::size_t>(std::upper_bound(bounds.begin(), bounds.end(), *number) - bounds.begin()));
}

std::vector<std::string> LabelGroups::ranges() const {
  std::vector<std::string> names;
  for (std::size_t place = 0; place <= bounds.size(); ++place) names.push_back(range_name(bounds, place));
  return names;
}

}  // namespace specdec::estimate
