#include "analysis/estimate/acceptance_counts.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "tests/support/catch.hpp"

using specdec::estimate::clopper_pearson_interval_of_share;
using specdec::estimate::Interval;
using specdec::estimate::wilson_interval_of_share;

namespace {

// Expected ends: mpmath roots of the binomial tail sums (Clopper-Pearson) and of the score equation (Wilson), 12
// digits.
void check_interval(Interval computed, double lo, double hi) {
  CHECK(computed.lo == Approx(lo).epsilon(0).margin(1e-11));
  CHECK(computed.hi == Approx(hi).epsilon(0).margin(1e-11));
}

// P(X >= k) for X ~ Binomial(n, p), term by term.
double upper_tail(int k, int n, double p) {
  double sum = 0;
  for (int j = k; j <= n; ++j)
    sum += std::exp(std::lgamma(n + 1.0) - std::lgamma(j + 1.0) - std::lgamma(n - j + 1.0) + j * std::log(p) +
                    (n - j) * std::log1p(-p));
  return sum;
}

}  // namespace

TEST_CASE("Clopper and Pearson's ends leave 2.5% in each tail") {
  const Interval interval = clopper_pearson_interval_of_share(75, 100);
  check_interval(interval, .653447504241, .831220261901);
  check_interval(clopper_pearson_interval_of_share(2600, 3290), .775955280437, .804073975002);
  check_interval(clopper_pearson_interval_of_share(0, 10), 0, .308497107819);
  CHECK(clopper_pearson_interval_of_share(10, 10).hi == 1);
  CHECK(upper_tail(75, 100, interval.lo) == Approx(0.025).epsilon(1e-9));
  CHECK(1 - upper_tail(76, 100, interval.hi) == Approx(0.025).epsilon(1e-9));
}

TEST_CASE("Clopper and Pearson's interval goes on where counts are beyond the reach of the beta function") {
  for (const double share : {1e-3, 0.0762, 0.5, 0.9, 0.999}) {
    // 1e9 successes or failures are the last to be exact, and a few more the first that are not.
    const double trials = 1e9 / std::min(share, 1 - share);
    const auto off = [](double n, double p) {
      const Interval interval = clopper_pearson_interval_of_share(p * n, n);
      const double unit = std::sqrt(p * (1 - p) / n);
      return Interval{(p - interval.lo) / unit, (interval.hi - p) / unit};
    };
    const Interval exact = off(0.999 * trials, share);
    const Interval normal = off(1.001 * trials, share);
    CHECK(normal.lo == Approx(exact.lo).epsilon(1e-4));
    CHECK(normal.hi == Approx(exact.hi).epsilon(1e-4));
    for (const double n : {1e12, 1e13, 1e15, 1e17}) {
      CHECK(off(n, share).lo == Approx(1.959964).margin(0.05));
      CHECK(off(n, share).hi == Approx(1.959964).margin(0.05));
    }
  }
}

TEST_CASE("Wilson's interval agrees with many-digit values and stays between 0 and 1") {
  check_interval(wilson_interval_of_share(0.75, 100), .656955364519, .824547886377);
  check_interval(wilson_interval_of_share(0, 10), 0, .277532799863);
  check_interval(wilson_interval_of_share(2600.0 / 3290, 3290), .776027788885, .803842257649);
  CHECK(wilson_interval_of_share(0, 10).lo == 0);
  CHECK(wilson_interval_of_share(1, 10).hi <= 1);
  CHECK_THROWS_AS(wilson_interval_of_share(1.1, 10), std::domain_error);
  CHECK_THROWS_AS(wilson_interval_of_share(0, 0), std::domain_error);
}
