#include "analysis/planning/tabulated_curve.hpp"

#include <cstddef>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"

namespace specdec::planning {

TabulatedCurve::TabulatedCurve(std::vector<estimate::TokensPerStep> by_gamma) : by_gamma_(std::move(by_gamma)) {
  if (by_gamma_.empty()) throw std::invalid_argument("TabulatedCurve: by_gamma is empty, but must have gamma = 0");
  constexpr double rounding = 1e-12;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double most = 1;
  for (const estimate::TokensPerStep& tokens : by_gamma_) {
    core::require_in("TabulatedCurve", "value", tokens.value, 1 - rounding, most * (1 + rounding));
    core::require_in("TabulatedCurve", "full_accepts", tokens.full_accepts, 0.0, 1.0);
    core::require_in("TabulatedCurve", "low end", tokens.ci95.lo, -infinity, tokens.value * (1 + rounding));
    core::require_in("TabulatedCurve", "high end", tokens.ci95.hi, tokens.value * (1 - rounding), infinity);
    ++most;
  }
}

estimate::TokensPerStep TabulatedCurve::tokens_per_step(std::int64_t gamma) const {
  core::require_in("TabulatedCurve::tokens_per_step", "gamma", gamma, std::int64_t{0}, std::ssize(by_gamma_) - 1);
  return by_gamma_[static_cast<std::size_t>(gamma)];
}

}  // namespace specdec::planning
