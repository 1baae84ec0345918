#include "analysis/theory/extended.hpp"

#include <algorithm>
#include <limits>

namespace specdec::theory::extended {
namespace {

constexpr long double infinity = std::numeric_limits<long double>::infinity();

// exp(-y) - 1 + y for y >= 0.
long double exp_excess(long double y) {
  if (y > 0.5L) return std::expm1(-y) + y;
  long double sum = 0;
  long double term = y * y / 2;
  for (int n = 3; term != 0 && std::abs(term) > std::abs(sum) * std::numeric_limits<long double>::epsilon() / 8; ++n) {
    sum += term;
    term *= -y / n;
  }
  return sum;
}

// exp(-k h) (sinh(k h) - k sinh(h)) for k >= 1, h > 0: the power series has positive terms only,
// sum over odd n of ((k h)^n - k h^n) / n!.
long double sinh_excess(long double k, long double h) {
  const long double x = k * h;
  if (x > 1) return -std::expm1(-2 * x) / 2 - k * std::sinh(h) * std::exp(-x);
  long double sum = 0;
  long double power_of_x = x * x * x / 6;
  long double power_of_k = 1 / (k * k);
  for (int n = 5; power_of_x > sum * std::numeric_limits<long double>::epsilon() / 8; n += 2) {
    sum += power_of_x * (1 - power_of_k);
    power_of_x *= x * x / (n * (n - 1));
    power_of_k /= k * k;
  }
  return std::exp(-x) * sum;
}

struct Measured {
  std::int64_t positions;  // requested positions that were given one by one
  long double beyond;      // those that lie beyond them
};

Measured split(const core::AcceptanceProfile& profile, std::int64_t gamma) {
  const std::int64_t positions = std::min(gamma, profile.measured_positions());
  return {positions, static_cast<long double>(gamma - positions)};
}

}  // namespace

long double power_sum(const Rate& rate, long double count) {
  // Plain decoding makes exactly one token, even if long double has no more precision than double, as in a
  // browser.
  if (rate.rejection == 0 || count == 1) return count;
  return one_minus_power(rate, count) / rate.rejection;
}

long double lost_sum(const Rate& rate, long double count) {
  if (rate.rejection == 0 || count <= 1) return 0;
  if (std::isinf(rate.log_alpha)) return count - 1;
  const long double log_reciprocal = -rate.log_alpha;
  return (exp_excess(count * log_reciprocal) - count * exp_excess(log_reciprocal)) / rate.rejection;
}

long double power_sum_derivative(const Rate& rate, long double gamma) {
  if (rate.rejection == 0) return gamma * (gamma + 1) / 2;
  if (gamma <= 1 || std::isinf(rate.log_alpha)) return std::min(gamma, 1.0L);
  const long double h = -rate.log_alpha / 2;
  const long double m = gamma + 1;
  const long double numerator = sinh_excess(m, h) - m * std::sinh(h) * std::exp(-m * h) * std::expm1(-gamma * h);
  return std::exp(2 * h) * numerator / (2 * std::sinh(h) * std::sinh(h));
}

long double variance(const Rate& rate, long double gamma) {
  if (gamma == 0 || rate.rejection == 0 || std::isinf(rate.log_alpha)) return 0;
  const long double h = -rate.log_alpha / 2;
  return sinh_excess(2 * gamma + 1, h) / (2 * std::sinh(h) * std::sinh(h));
}

long double survival(const core::AcceptanceProfile& profile, std::int64_t j) {
  const auto [positions, beyond] = split(profile, j);
  return profile.survival(positions) * power(profile.tail(), beyond);
}

long double one_minus_survival(const core::AcceptanceProfile& profile, std::int64_t j) {
  const auto [positions, beyond] = split(profile, j);
  long double lost = 0;
  for (std::int64_t i = 1; i <= positions; ++i) lost += profile.first_rejection(i);
  return lost + profile.survival(positions) * one_minus_power(profile.tail(), beyond);
}

long double expected_tokens(const core::AcceptanceProfile& profile, std::int64_t gamma) {
  if (profile.measured_positions() == 0) return power_sum(profile.tail(), static_cast<long double>(gamma) + 1);
  const auto [positions, beyond] = split(profile, gamma);
  long double sum = 1;
  for (std::int64_t j = 1; j <= positions; ++j) sum += profile.survival(j);
  return sum + profile.survival(positions) * power(profile.tail(), 1) * power_sum(profile.tail(), beyond);
}

long double expected_tokens_limit(const core::AcceptanceProfile& profile) {
  const Rate tail = profile.tail();
  const std::int64_t positions = profile.measured_positions();
  const long double alive = profile.survival(positions) * power(tail, 1);
  if (alive > 0 && tail.rejection == 0) return infinity;
  return expected_tokens(profile, positions) + (alive > 0 ? alive / tail.rejection : 0);
}

long double expected_waste(const core::AcceptanceProfile& profile, std::int64_t gamma) {
  const auto [positions, beyond] = split(profile, gamma);
  long double lost = 0;
  long double sum = 0;
  for (std::int64_t j = 1; j <= positions; ++j) {
    lost += profile.first_rejection(j);
    sum += lost;
  }
  return sum + lost * beyond + profile.survival(positions) * lost_sum(profile.tail(), beyond + 1);
}

}  // namespace specdec::theory::extended
