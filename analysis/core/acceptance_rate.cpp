#include "analysis/core/acceptance_rate.hpp"

#include <cmath>
#include <limits>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::core {
namespace {

// exp(n * log_alpha) keeps 1e-15 only if the product, up to 745, has an absolute error far below that.
static_assert(std::numeric_limits<long double>::digits >= 64, "log_alpha needs more digits than a double has");

constexpr std::int64_t largest_exponent = std::numeric_limits<std::int64_t>::max();

}  // namespace

AcceptanceRate::AcceptanceRate(double alpha, double rejection)
    : alpha_(alpha),
      rejection_(rejection),
      log_alpha_(alpha < rejection ? std::log(static_cast<long double>(alpha))
                                   : std::log1p(-static_cast<long double>(rejection))) {}

AcceptanceRate::AcceptanceRate(double alpha) : AcceptanceRate(std::abs(alpha), 1 - alpha) {
  require_in("AcceptanceRate", "alpha", alpha, 0, 1);
}

AcceptanceRate AcceptanceRate::from_rejection(double epsilon) {
  require_in("AcceptanceRate::from_rejection", "epsilon", epsilon, 0, 1);
  return AcceptanceRate(1 - epsilon, std::abs(epsilon));
}

AcceptanceRate AcceptanceRate::from_masses(double accepted, double rejected) {
  require_in("AcceptanceRate::from_masses", "accepted", accepted, 0, largest_double);
  require_in("AcceptanceRate::from_masses", "rejected", rejected, 0, largest_double);
  return accepted < rejected ? AcceptanceRate(accepted) : from_rejection(rejected);
}

double AcceptanceRate::power(std::int64_t n) const {
  require_in("AcceptanceRate::power", "n", n, 0, largest_exponent);
  return n == 0 ? 1 : static_cast<double>(std::exp(static_cast<long double>(n) * log_alpha_));
}

double AcceptanceRate::one_minus_power(std::int64_t n) const {
  require_in("AcceptanceRate::one_minus_power", "n", n, 0, largest_exponent);
  return n == 0 ? 0 : static_cast<double>(-std::expm1(static_cast<long double>(n) * log_alpha_));
}

}  // namespace specdec::core
