#include "analysis/core/acceptance_profile.hpp"

#include <fmt/format.h>

#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"

namespace specdec::core {
namespace {

constexpr std::int64_t largest_position = std::numeric_limits<std::int64_t>::max();

}  // namespace

AcceptanceProfile::AcceptanceProfile(std::vector<double> survival, std::vector<double> first_rejection,
                                     AcceptanceRate tail)
    : survival_(std::move(survival)), first_rejection_(std::move(first_rejection)), tail_(tail) {}

AcceptanceProfile AcceptanceProfile::from_survival(std::vector<double> survival) {
  if (survival.empty()) throw std::invalid_argument("AcceptanceProfile::from_survival: survival is empty");
  std::vector<double> first_rejection;
  first_rejection.reserve(survival.size());
  double before = 1;
  AcceptanceRate tail(0.0);
  for (std::size_t i = 0; i < survival.size(); ++i) {
    const double here = survival[i];
    require_in("AcceptanceProfile::from_survival", fmt::format("survival at position {}", i + 1), here, 0, before);
    first_rejection.push_back(before - here);
    tail = before > 0 ? AcceptanceRate::from_masses(here / before, (before - here) / before) : AcceptanceRate(0.0);
    before = here;
  }
  return {std::move(survival), std::move(first_rejection), tail};
}

AcceptanceProfile AcceptanceProfile::from_conditional(const std::vector<AcceptanceRate>& conditional) {
  if (conditional.empty()) throw std::invalid_argument("AcceptanceProfile::from_conditional: conditional is empty");
  std::vector<double> survival;
  std::vector<double> first_rejection;
  double before = 1;
  for (const AcceptanceRate& rate : conditional) {
    first_rejection.push_back(before * rate.rejection());
    survival.push_back(before * rate.alpha());
    before = survival.back();
  }
  return {std::move(survival), std::move(first_rejection), conditional.back()};
}

double AcceptanceProfile::survival(std::int64_t j) const {
  require_in("AcceptanceProfile::survival", "j", j, 0, largest_position);
  const std::int64_t measured = measured_positions();
  if (j == 0) return 1;
  if (j <= measured) return survival_[static_cast<std::size_t>(j - 1)];
  return (measured == 0 ? 1 : survival_.back()) * tail_.power(j - measured);
}

double AcceptanceProfile::first_rejection(std::int64_t j) const {
  require_in("AcceptanceProfile::first_rejection", "j", j, 1, largest_position);
  if (j <= measured_positions()) return first_rejection_[static_cast<std::size_t>(j - 1)];
  return survival(j - 1) * tail_.rejection();
}

}  // namespace specdec::core
