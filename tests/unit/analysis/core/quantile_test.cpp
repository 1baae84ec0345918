#include <stdexcept>
#include <vector>

#include "analysis/core/compensated_sum.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/core/unit_bins.hpp"
#include "tests/support/catch.hpp"

namespace specdec::core {

TEST_CASE("a quantile lies on the line between the two values around it") {
  const std::vector<double> values = {30, 10, 20, 60};
  CHECK(quantile(values, 0) == 10);
  CHECK(quantile(values, 0.5) == 25);
  CHECK(quantile(values, 0.9) == Approx(51).epsilon(1e-14));
  CHECK(quantile(values, 1) == 60);
  CHECK(sorted_quantile(std::vector<double>{7}, 0.975) == 7);
  CHECK_THROWS_WITH(quantile(values, 1.5), "quantile: share is 1.5, but must be in [0, 1]");
  CHECK_THROWS_AS(quantile({}, 0.5), std::invalid_argument);
}

TEST_CASE(
    "each number of the unit interval has its bin, 1 the last one, and rounding beyond the ends is brought back") {
  CHECK(unit_bin(0, 4) == 0);
  CHECK(unit_bin(0.25, 4) == 1);
  CHECK(unit_bin(0.999, 4) == 3);
  CHECK(unit_bin(1, 4) == 3);
  CHECK(unit_bin(1 + 1e-9, 4) == 3);
  CHECK(unit_bin(-1e-9, 4) == 0);
}

TEST_CASE("a compensated sum keeps what a plain sum loses") {
  CompensatedSum sum;
  double plain = 0;
  for (const double term : {1.0, 1e100, 1.0, -1e100}) {
    sum.add(term);
    plain += term;
  }
  CHECK(sum.value() == 2);
  CHECK(plain == 0);
}

// 0.1 is 3602879701896397 / 2^55, so that a million of them are 3602879701896397e6 / 2^55, rounded once here.
TEST_CASE("a compensated sum of a million terms is the exact sum, rounded") {
  CompensatedSum sum;
  for (int i = 0; i < 1'000'000; ++i) sum.add(0.1);
  const long double exact = 3602879701896397.0L * 1e6L / 0x1p55L;
  CHECK(std::abs(static_cast<long double>(sum.value()) / exact - 1) <= 3e-16L);
}

}  // namespace specdec::core
