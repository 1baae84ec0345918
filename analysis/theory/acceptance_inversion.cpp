#include "analysis/theory/acceptance_inversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/theory/power_sum_root.hpp"

namespace specdec::theory {
namespace {

// Differences of two lengths are rounded; an excess below this is no lack of monotonicity.
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
    if (here.gamma <= before.gamma) {
      throw std::invalid_argument(
          fmt::format("{}: gamma {} follows {}, but gammas must increase", function, here.gamma, before.gamma));
    }
    before = here;
  }
  if (lengths.size() == 1) return {alpha_from_acceptance_length(lengths[0].tokens_per_step, lengths[0].gamma)};

  std::vector<double> survival;
  bool monotone = true;
  double alive = 1;
  before = {0, 1.0};
  for (const AcceptanceLength& here : lengths) {
    const auto positions = here.gamma - before.gamma;
    const double gained = here.tokens_per_step - before.tokens_per_step;
    const double most = alive * static_cast<double>(positions);
    const double legal = std::clamp(gained, 0.0, most);
    if (std::abs(gained - legal) > rounding_of(here.tokens_per_step)) monotone = false;
    const core::AcceptanceRate rate =
        alive > 0 ? rate_with_power_sum(static_cast<long double>(legal) / alive, positions) : core::AcceptanceRate(0.0);
    for (std::int64_t i = 1; i <= positions; ++i) survival.push_back(alive * rate.power(i));
    alive = survival.back();
    before = here;
  }
  return {core::AcceptanceProfile::from_survival(std::move(survival)), monotone};
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
