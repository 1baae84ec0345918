#include "render/figures/chart_words.hpp"

#include <algorithm>
#include <string_view>

#include "render/text.hpp"

namespace specdec::render {

std::string estimate_label(const estimate::Estimate& estimate, int decimals) {
  constexpr std::string_view typed = "+-";
  std::string text = with_interval(estimate, decimals);
  if (const std::size_t at = text.find(typed); at != std::string::npos) text.replace(at, typed.size(), "±");
  return text;
}

std::string interval_name(std::span<const planning::PointPlan> points) {
  const auto has_bounds = [](const planning::DeploymentRow& row) { return row.speedup_bounds.has_value(); };
  const bool is_range = std::any_of(points.begin(), points.end(), [&](const planning::PointPlan& point) {
    return std::any_of(point.rows.begin(), point.rows.end(), has_bounds);
  });
  return is_range ? "range" : "95% interval";
}

}  // namespace specdec::render
