#include "analysis/theory/operations.hpp"

#include <limits>

#include "analysis/core/checks.hpp"
#include "analysis/theory/extended.hpp"

namespace specdec::theory {
double operations_factor(const core::AcceptanceProfile& acceptance, std::int64_t gamma, double c_hat) {
  core::require_in("operations_factor", "gamma", gamma, 0, core::largest_integer);
  core::require_in("operations_factor", "c_hat", c_hat, 0, std::numeric_limits<double>::max());
  const auto drafts = static_cast<long double>(gamma);
  return static_cast<double>((drafts * c_hat + drafts + 1) / extended::expected_tokens(acceptance, gamma));
}

double memory_access_factor(const core::AcceptanceProfile& acceptance, std::int64_t gamma) {
  core::require_in("memory_access_factor", "gamma", gamma, 0, core::largest_integer);
  return static_cast<double>(1 / extended::expected_tokens(acceptance, gamma));
}

double wasted_fraction(const core::AcceptanceProfile& acceptance, std::int64_t gamma) {
  core::require_in("wasted_fraction", "gamma", gamma, 0, core::largest_integer);
  return static_cast<double>(extended::expected_waste(acceptance, gamma) / (static_cast<long double>(gamma) + 1));
}

}  // namespace specdec::theory
