#pragma once

#include <boost/math/distributions/chi_squared.hpp>
#include <cstdint>
#include <span>

namespace specdec::test_support {

/// Pearson's test of counts against a law: the probability of a fit at least as bad.
/// Cells expected fewer than 10 times are taken together. A count in a cell of probability 0 gives 0.
inline double chi_square_p_value(std::span<const std::int64_t> counts, std::span<const double> probabilities) {
  double total = 0;
  for (const std::int64_t count : counts) total += static_cast<double>(count);
  double statistic = 0;
  int cells = 0;
  double rare_count = 0;
  double rare_expected = 0;
  const auto add = [&](double count, double expected) {
    statistic += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = total * probabilities[i];
    if (probabilities[i] <= 0) {
      if (counts[i] > 0) return 0;
    } else if (expected < 10) {
      rare_count += static_cast<double>(counts[i]);
      rare_expected += expected;
    } else {
      add(static_cast<double>(counts[i]), expected);
    }
  }
  if (rare_expected > 0) add(rare_count, rare_expected);
  if (cells < 2) return 1;
  return boost::math::cdf(boost::math::complement(boost::math::chi_squared(cells - 1), statistic));
}

}  // namespace specdec::test_support
