#include "analysis/estimate/label_groups.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <optional>

#include "analysis/core/parsed_number.hpp"

namespace specdec::estimate {

std::string LabelGroups::group_of(std::string_view value) const {
  if (bounds.empty()) return std::string(value);
  const std::optional<double> number = core::parsed_number(value);
  return number ? range_of(*number) : std::string();
}

std::string LabelGroups::range_of(double value) const {
  return ranges()[static_cast<std::size_t>(std::upper_bound(bounds.begin(), bounds.end(), value) - bounds.begin())];
}

std::vector<std::string> LabelGroups::ranges() const {
  std::vector<std::string> names = {fmt::format("<{}", bounds.front())};
  for (std::size_t i = 1; i < bounds.size(); ++i) names.push_back(fmt::format("{}-{}", bounds[i - 1], bounds[i]));
  names.push_back(fmt::format(">={}", bounds.back()));
  return names;
}

}  // namespace specdec::estimate
