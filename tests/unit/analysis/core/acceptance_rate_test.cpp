#include "analysis/core/acceptance_rate.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

namespace specdec::core {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("a rate keeps the double it was built from and rounds only the other one") {
  CHECK(AcceptanceRate(0.3).alpha() == 0.3);
  CHECK(AcceptanceRate(0.3).rejection() == 1 - 0.3);
  CHECK(AcceptanceRate::from_rejection(1e-12).rejection() == 1e-12);
  CHECK(AcceptanceRate::from_rejection(1e-12).alpha() == 1 - 1e-12);
  CHECK(AcceptanceRate::from_rejection(1e-300).rejection() == 1e-300);
  CHECK(AcceptanceRate::from_rejection(1e-300).alpha() == 1);
}

TEST_CASE("the rejection rate 1e-12 is not the same rate as the double nearest to 1 - 1e-12") {
  CHECK_FALSE(AcceptanceRate::from_rejection(1e-12) == AcceptanceRate(1 - 1e-12));
}

TEST_CASE("the logarithm is taken of what is exact") {
  CHECK(AcceptanceRate::from_rejection(1e-300).log_alpha() == -1e-300);
  CHECK(static_cast<double>(AcceptanceRate(1e-300).log_alpha()) == Approx(-690.77552789821370520).epsilon(1e-15));
  CHECK(AcceptanceRate(1).log_alpha() == 0);
  CHECK(std::isinf(AcceptanceRate(0).log_alpha()));
}

TEST_CASE("a rate outside 0 to 1 is refused with its value and the range") {
  CHECK_THROWS_AS(AcceptanceRate(1.5), std::domain_error);
  CHECK_THROWS_WITH(AcceptanceRate(1.5), "AcceptanceRate: alpha is 1.5, but must be in [0, 1]");
  CHECK_THROWS_WITH(AcceptanceRate(nan), "AcceptanceRate: alpha is nan, but must be in [0, 1]");
  CHECK_THROWS_WITH(AcceptanceRate::from_rejection(-0.25),
                    "AcceptanceRate::from_rejection: epsilon is -0.25, but must be in [0, 1]");
}

TEST_CASE("minus zero is zero") {
  CHECK_FALSE(std::signbit(AcceptanceRate(-0.0).alpha()));
  CHECK_FALSE(std::signbit(AcceptanceRate::from_rejection(-0.0).rejection()));
}

TEST_CASE("of two masses the smaller one makes the rate") {
  CHECK(AcceptanceRate::from_masses(1 + 1e-9, 1e-15).rejection() == 1e-15);
  CHECK(AcceptanceRate::from_masses(1e-15, 1 + 1e-9).alpha() == 1e-15);
  CHECK_THROWS_WITH(AcceptanceRate::from_masses(nan, 0.5),
                    "AcceptanceRate::from_masses: accepted is nan, but must be in [0, 1.7976931348623157e+308]");
  CHECK_THROWS_AS(AcceptanceRate::from_masses(2, 3), std::domain_error);
}

TEST_CASE("any rate to the power 0 is 1, and 0 to any other power is 0") {
  CHECK(AcceptanceRate(0).power(0) == 1);
  CHECK(AcceptanceRate(0).one_minus_power(0) == 0);
  CHECK(AcceptanceRate(0).power(7) == 0);
  CHECK(AcceptanceRate(0).one_minus_power(7) == 1);
  CHECK(AcceptanceRate(1).power(std::numeric_limits<std::int64_t>::max()) == 1);
}

TEST_CASE("a negative power is refused") {
  CHECK_THROWS_WITH(AcceptanceRate(0.5).power(-1), "AcceptanceRate::power: n is -1, but must be in [0, 2^63)");
  CHECK_THROWS_WITH(AcceptanceRate(0.5).one_minus_power(-3),
                    "AcceptanceRate::one_minus_power: n is -3, but must be in [0, 2^63)");
}

TEST_CASE("rates are ordered by alpha, and by epsilon where alpha rounds to the same double") {
  CHECK(AcceptanceRate(0.3) < AcceptanceRate(0.4));
  CHECK(AcceptanceRate::from_rejection(2e-300) < AcceptanceRate::from_rejection(1e-300));
  CHECK_FALSE(AcceptanceRate(0.3) < AcceptanceRate(0.3));
}

}  // namespace specdec::core
