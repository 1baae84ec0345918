#include "planner/traffic_mix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <cmath>
#include <string_view>

#include "analysis/core/parsed_number.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

/// Tolerance of the sum of shares about 1, since people round them.
constexpr double unsummed = 1e-3;

}  // namespace

std::string TrafficMix::text() const {
  std::vector<std::string> texts;
  for (const Part& part : parts) texts.push_back(fmt::format("{} {}", part.group, brief(part.share)));
  return fmt::format("{} of the {}", fmt::join(texts, ", "), by_requests ? "requests" : "output tokens");
}

estimate::LabelGroups label_groups(const std::string& by) {
  const std::size_t colon = by.find(':');
  estimate::LabelGroups groups{by.substr(0, colon), {}};
  if (groups.label.empty()) refuse("--by", by.empty() ? "\"\"" : by, "LABEL or LABEL:B1,B2,...");
  if (colon == std::string::npos) return groups;
  for (const std::string_view part : split(std::string_view(by).substr(colon + 1), ',')) {
    const std::optional<double> bound = core::parsed_number(part);
    if (!bound || (!groups.bounds.empty() && *bound <= groups.bounds.back())) {
      refuse("--by", by, "LABEL or LABEL:B1,B2,... with rising numbers");
    }
    groups.bounds.push_back(*bound);
  }
  return groups;
}

std::vector<double> context_bounds(const std::string& by) {
  const estimate::LabelGroups groups = label_groups(by);
  if (groups.label == "context" && !groups.bounds.empty() && groups.bounds.front() > 0) return groups.bounds;
  refuse("--by", by, "context:N1,N2,... with places above 0, or beside --mix");
}

TrafficMix traffic_mix(const std::optional<std::string>& by, const std::string& mix, bool by_requests) {
  TrafficMix traffic;
  if (by) traffic.groups = label_groups(*by);
  traffic.by_requests = by_requests;
  double sum = 0;
  for (const std::string_view part : split(mix, ',')) {
    // Groups of numbers have names such as ">=4096".
    const std::size_t equals = part.rfind('=');
    const auto share = equals == std::string_view::npos ? std::nullopt : core::parsed_number(part.substr(equals + 1));
    if (!share || equals == 0 || !(0 < *share && *share <= 1)) {
      refuse("--mix", mix, "GROUP=SHARE,... with shares in (0, 1]");
    }
    const std::string group(part.substr(0, equals));
    for (const TrafficMix::Part& other : traffic.parts) {
      if (other.group == group) throw QuestionError(fmt::format("--mix names {} twice, but must name it once", group));
    }
    traffic.parts.push_back({group, *share});
    sum += *share;
  }
  if (std::abs(sum - 1) > unsummed) {
    refuse("--mix", mix, fmt::format("shares that sum to 1, not to {}", brief(sum)));
  }
  return traffic;
}

}  // namespace specdec::planner
