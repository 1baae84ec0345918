#include "analysis/core/distribution.hpp"

#include <fmt/format.h>

#include <cmath>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::core {

Distribution::Distribution(std::string_view role, std::span<const double> probabilities, double tolerance)
    : probabilities_(probabilities) {
  require_in(role, "tolerance", tolerance, 0, 1);
  if (probabilities.empty()) throw std::invalid_argument(fmt::format("{}: the row is empty", role));
  CompensatedSum sum;
  for (std::size_t i = 0; i < probabilities.size(); ++i) {
    const double value = probabilities[i];
    if (!(0 <= value && value <= 1 + tolerance)) {
      require_in(role, fmt::format("probability at position {}", i), value, 0, 1 + tolerance);
    }
    sum.add(value);
  }
  if (std::abs(sum.value() - 1) <= tolerance) return;
  throw std::domain_error(fmt::format("{}: the {} probabilities sum to {}, but must sum to 1 within {}", role,
                                      probabilities.size(), sum.value(), tolerance));
}

}  // namespace specdec::core
