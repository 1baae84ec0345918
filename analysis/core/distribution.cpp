#include "analysis/core/distribution.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::core {

Distribution::Distribution(std::string_view role, std::span<const double> probabilities, double tolerance)
    : probabilities_(probabilities) {
  require_in(role, "tolerance", tolerance, 0, 1);
  if (probabilities.empty()) throw std::invalid_argument(fmt::format("{}: the row is empty", role));
  const double sum = sum_of_terms(probabilities.size(), [&](std::size_t i) { return probabilities[i]; });
  const bool sums_to_one = std::abs(sum - 1) <= tolerance;
  // If no sign is set, no entry is negative, and none exceeds the sum.
  std::uint64_t signs = 0;
  for (const double p : probabilities) signs |= std::bit_cast<std::uint64_t>(p);
  if (sums_to_one && signs >> 63U == 0) return;
  const double highest = 1 + tolerance;
  for (std::size_t i = 0; i < probabilities.size(); ++i)
    if (const double p = probabilities[i]; !(0 <= p && p <= highest))
      require_in(role, fmt::format("probability at position {}", i), p, 0, highest);
  if (sums_to_one) return;
  throw std::domain_error(fmt::format("{}: the {} probabilities sum to {}, but must sum to 1 within {}", role,
                                      probabilities.size(), sum, tolerance));
}

}  // namespace specdec::core
