#include "analysis/theory/acceptance_inversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/theory/power_sum_root.hpp"

namespace specdec::theory {
namespace {

// Differences of two lengths are rounded; an excess below this does not violate monotonicity.
double rounding_of(double length) { return 8 * std::numeric_limits<double>::epsilon() * length; }

void require_length(std::string_view function, double tokens_per_step, std::int64_t gamma) {
  core::require_in(function, "gamma", gamma, 1, std::numeric_limits<std::int64_t>::max());
  const double longest = static_cast<double>(gamma) + 1;
  if (1 <= tokens_per_step && tokens_per_step <= longest) return;
  throw std::domain_error(
      fmt::format("{}: acceptance length is {} at gamma {}, but must be in [1, {}] with the bonus token counted; "
                  "a length without the bonus token is in [0, {}]: add 1 to it",
                  function, tokens_per_step, gamma, longest, gamma));
}

/// The least concave function above the points, whose x are increasing, at each of them.
std::vector<double> concave_majorant(std::span<const AcceptanceLength> points) {
  std::vector<AcceptanceLength> corners;
  const auto slope = [](const AcceptanceLength& a, const AcceptanceLength& b) {
    return (b.tokens_per_step - a.tokens_per_step) / static_cast<double>(b.gamma - a.gamma);
  };
  for (const AcceptanceLength& point : points) {
    while (corners.size() > 1 && slope(corners[corners.size() - 2], corners.back()) <= slope(corners.back(), point)) {
      corners.pop_back();
    }
    corners.push_back(point);
  }
  std::vector<double> values;
  std::size_t corner = 0;
  for (const AcceptanceLength& point : points) {
    while (corner + 1 < corners.size() && corners[corner + 1].gamma <= point.gamma) ++corner;
    const double beyond = static_cast<double>(point.gamma - corners[corner].gamma);
    values.push_back(corners[corner].tokens_per_step +
                     (beyond > 0 ? beyond * slope(corners[corner], corners[corner + 1]) : 0));
  }
  return values;
}

/// Lengths of a survival function within half a unit of each, see profile_from_acceptance_lengths; empty if there
/// are none.
std::optional<std::vector<AcceptanceLength>> concave_lengths(std::span<const AcceptanceLength> lengths) {
  std::vector<AcceptanceLength> points = {{0, 1.0}};
  for (const AcceptanceLength& length : lengths) points.push_back(length);
  const auto within = [&](const std::vector<double>& values) {
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double most = points[i].tokens_per_step + points[i].half_unit;
      if (values[i] > most + rounding_of(most)) return false;
    }
    return true;
  };
  const auto never_falling = [](std::vector<double> values) {
    for (std::size_t i = 1; i < values.size(); ++i) values[i] = std::max(values[i], values[i - 1]);
    return values;
  };
  const std::vector<double> tight = never_falling(concave_majorant(points));
  bool concave = true;
  for (std::size_t i = 0; i < points.size(); ++i) {
    concave = concave && tight[i] <= points[i].tokens_per_step + rounding_of(points[i].tokens_per_step);
  }
  if (concave) return std::vector<AcceptanceLength>(lengths.begin(), lengths.end());

  std::vector<AcceptanceLength> lowest = points;
  for (AcceptanceLength& point : lowest) point.tokens_per_step = std::max(1.0, point.tokens_per_step - point.half_unit);
  const std::vector<double> majorant = never_falling(concave_majorant(lowest));
  if (!within(majorant)) return std::nullopt;
  double raise = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < points.size(); ++i) {
    const double most =
        std::min(points[i].tokens_per_step + points[i].half_unit, static_cast<double>(points[i].gamma) + 1);
    raise = std::min({raise, points[i].half_unit, most - majorant[i]});
  }
  std::vector<AcceptanceLength> found(lengths.begin(), lengths.end());
  for (std::size_t i = 0; i < found.size(); ++i) found[i].tokens_per_step = majorant[i + 1] + std::max(0.0, raise);
  return found;
}

/// Mean survival between a length and the one before it.
double mean_survival(const AcceptanceLength& before, const AcceptanceLength& here) {
  return (here.tokens_per_step - before.tokens_per_step) / static_cast<double>(here.gamma - before.gamma);
}

}  // namespace

core::AcceptanceRate alpha_from_acceptance_length(double tokens_per_step, std::int64_t gamma) {
  require_length("alpha_from_acceptance_length", tokens_per_step, gamma);
  return rate_with_power_sum(static_cast<long double>(tokens_per_step) - 1, gamma);
}

InvertedProfile profile_from_acceptance_lengths(std::span<const AcceptanceLength> lengths) {
  constexpr std::string_view function = "profile_from_acceptance_lengths";
  if (lengths.empty()) throw std::invalid_argument("profile_from_acceptance_lengths: lengths is empty");
  AcceptanceLength before{0, 1.0};
  for (const AcceptanceLength& here : lengths) {
    require_length(function, here.tokens_per_step, here.gamma);
    core::require_in(function, "gamma", here.gamma, 1, longest_profile);
    core::require_in(function, "half unit", here.half_unit, 0, std::numeric_limits<double>::max());
    if (here.gamma <= before.gamma) {
      throw std::invalid_argument(
          fmt::format("{}: gamma {} follows {}, but gammas must increase", function, here.gamma, before.gamma));
    }
    before = here;
  }
  if (lengths.size() == 1) return {alpha_from_acceptance_length(lengths[0].tokens_per_step, lengths[0].gamma)};

  const auto concave = concave_lengths(lengths);
  const std::vector<AcceptanceLength> met =
      concave.value_or(std::vector<AcceptanceLength>(lengths.begin(), lengths.end()));
  std::vector<double> survival;
  double alive = 1;
  before = {0, 1.0};
  for (std::size_t k = 0; k < met.size(); ++k) {
    const AcceptanceLength& here = met[k];
    const auto positions = here.gamma - before.gamma;
    const double mean = std::clamp(mean_survival(before, here), 0.0, alive);
    const core::AcceptanceRate rate =
        alive > 0 ? rate_with_power_sum(static_cast<long double>(mean) * positions / alive, positions)
                  : core::AcceptanceRate(0.0);
    const double next = k + 1 < met.size() ? mean_survival(here, met[k + 1]) : 0;
    const bool ends_too_low = concave && alive * rate.power(positions) < next;
    for (std::int64_t i = 1; i <= positions; ++i) survival.push_back(ends_too_low ? mean : alive * rate.power(i));
    alive = survival.back();
    before = here;
  }
  return {core::AcceptanceProfile::from_survival(std::move(survival)), concave.has_value()};
}

InvertedProfile profile_from_unconditional_rates(std::span<const double> rates) {
  if (rates.empty()) throw std::invalid_argument("profile_from_unconditional_rates: rates is empty");
  std::vector<double> survival;
  bool monotone = true;
  double alive = 1;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    core::require_in("profile_from_unconditional_rates", fmt::format("rate at position {}", i + 1), rates[i], 0, 1);
    if (rates[i] > alive) monotone = false;
    alive = std::min(alive, rates[i]);
    survival.push_back(alive);
  }
  return {core::AcceptanceProfile::from_survival(std::move(survival)), monotone};
}

core::AcceptanceProfile profile_from_conditional_rates(std::span<const double> rates) {
  if (rates.empty()) throw std::invalid_argument("profile_from_conditional_rates: rates is empty");
  std::vector<core::AcceptanceRate> conditional;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    core::require_in("profile_from_conditional_rates", fmt::format("rate at position {}", i + 1), rates[i], 0, 1);
    conditional.emplace_back(rates[i]);
  }
  return core::AcceptanceProfile::from_conditional(conditional);
}

}  // namespace specdec::theory
