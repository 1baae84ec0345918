#include "sim/variates.hpp"

#include <cmath>
#include <numbers>

namespace specdec::sim {

double Variates::normal() {
  const double radius = std::sqrt(-2 * std::log1p(-uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

double Variates::log_gamma(double shape) {
  if (shape < 1) {
    const double boosted = log_gamma(shape + 1);
    return boosted + std::log1p(-uniform()) / shape;
  }
  const double d = shape - 1.0 / 3;
  const double c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = normal();
    const double root = 1 + c * x;
    const double log_u = std::log1p(-uniform());
    if (root <= 0) continue;
    const double log_v = 3 * std::log(root);
    if (log_u < 0.5 * x * x + d * (1 - std::exp(log_v) + log_v)) return std::log(d) + log_v;
  }
}

double Variates::beta(double a, double b) {
  const double first = log_gamma(a);
  return 1 / (1 + std::exp(log_gamma(b) - first));
}

}  // namespace specdec::sim
