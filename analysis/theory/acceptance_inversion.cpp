#include "analysis/theory/acceptance_inversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/theory/power_sum_root.hpp"

namespace specdec::theory {
namespace {

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
