#include "render/json_values.hpp"

#include <cmath>

namespace specdec::render {

using nlohmann::ordered_json;

void put_number(ordered_json& object, const std::string& key, double value) {
  object[key] = std::isfinite(value) ? ordered_json(value) : ordered_json();
  if (std::isfinite(value)) return;
  object[key + "_note"] = std::isnan(value) ? "not a number" : value > 0 ? "infinite" : "minus infinity";
}

ordered_json pair_of(const std::optional<estimate::Interval>& interval) {
  return interval ? ordered_json({interval->lo, interval->hi}) : ordered_json();
}

ordered_json estimate_json(const std::optional<estimate::Estimate>& estimate) {
  return {{"value", estimate ? number_or_null(estimate->value) : ordered_json()},
          {"ci95", estimate ? pair_of(estimate->ci95) : ordered_json()},
          {"method", estimate ? ordered_json(estimate->method) : ordered_json()}};
}

ordered_json bracket_json(const std::optional<estimate::Interval>& ends,
                          const std::optional<estimate::Interval>& ci95) {
  const bool exact = ends && ends->lo == ends->hi;
  return {{"value", exact ? number_or_null(ends->lo) : ordered_json()},
          {"bounds", exact ? ordered_json() : pair_of(ends)},
          {"ci95", pair_of(ci95)}};
}

ordered_json number_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? ordered_json(*value) : ordered_json();
}

ordered_json notes_json(std::span<const Note> notes) {
  ordered_json all = ordered_json::array();
  for (const Note& note : notes) all.push_back({{"code", note.code}, {"message", note.message}});
  return all;
}

}  // namespace specdec::render
