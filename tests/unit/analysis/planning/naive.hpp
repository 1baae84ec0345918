#pragma once

#include <cmath>
#include <cstdint>
#include <functional>

/// The formulas of planning in their plainest form: sums of powers and scans, nothing shared with the library.
namespace naive {

using Cost = std::function<double(std::int64_t gamma)>;

inline double speedup(double alpha, std::int64_t gamma, const Cost& cost) {
  double tokens = 0;
  for (std::int64_t j = 0; j <= gamma; ++j) tokens += std::pow(alpha, static_cast<double>(j));
  return gamma == 0 ? 1.0 : tokens / cost(gamma);
}

inline std::int64_t best(double alpha, std::int64_t up_to, const Cost& cost) {
  std::int64_t best = 0;
  for (std::int64_t gamma = 1; gamma <= up_to; ++gamma) {
    if (speedup(alpha, gamma, cost) > speedup(alpha, best, cost) * (1 + 1e-14)) best = gamma;
  }
  return best;
}

inline double regret(double alpha, std::int64_t gamma, std::int64_t up_to, const Cost& cost) {
  return 1 - speedup(alpha, gamma, cost) / speedup(alpha, best(alpha, up_to, cost), cost);
}

}  // namespace naive
