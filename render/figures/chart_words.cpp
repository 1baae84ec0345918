#include "render/figures/chart_words.hpp"

#include <fmt/format.h>
#include <algorithm>

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

std::string deployment_of(const std::string& target_model, const planner::Cost* cost) {
  std::string text = target_model.empty() ? "the model" : target_model;
  if (cost == nullptr) return text;
  if (cost->draft.model) text += fmt::format(" with {}", *cost->draft.model);
  if (cost->roofline == nullptr) return text;
  const cost::RooflineOptions& placed = cost->roofline->options();
  const std::int64_t accelerators = placed.target.tensor_parallel;
  return text + (accelerators > 1 ? fmt::format(" on {} {}", accelerators, placed.hardware.name)
                                  : fmt::format(" on {}", placed.hardware.name));
}

std::string deployment_of(const planner::Plan& plan) {
  return deployment_of(plan.target_model, plan.drafts.empty() ? nullptr : &plan.drafts[plan.shown()].cost);
}

std::string acceptance_words(const planner::Acceptance& acceptance, std::string_view alpha) {
  if (!acceptance.stated || !acceptance.stated->interval) return acceptance.text;
  const planning::RateInterval& rates = *acceptance.stated->interval;
  return fmt::format("{} {} to {}", alpha, brief(rates.low.alpha()), brief(rates.high.alpha()));
}

}  // namespace specdec::render
