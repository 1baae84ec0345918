#include "analysis/theory/operations.hpp"

#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceProfile;
using core::AcceptanceRate;

}  // namespace

TEST_CASE("the operations factor equals exact rational values") {
  CHECK(operations_factor(AcceptanceRate(0.8), 5, 0.05) == Approx(78125.0 / 46116).epsilon(1e-15));
  CHECK(operations_factor(AcceptanceRate(0.62), 7, 0.007) == Approx(3.126892606178566).epsilon(1e-15));
}

TEST_CASE("without drafts the operations stay, with certain acceptance only the draft's are added") {
  CHECK(operations_factor(AcceptanceRate(0.3), 0, 5) == 1);
  CHECK(operations_factor(AcceptanceRate(1), 3, 0.1) == Approx(43.0 / 40).epsilon(1e-15));
}

TEST_CASE("the memory access factor is the inverse of the expected tokens") {
  CHECK(memory_access_factor(AcceptanceRate(0.5), 3) == Approx(8.0 / 15).epsilon(1e-15));
  CHECK(memory_access_factor(AcceptanceRate(0), 9) == 1);
}

TEST_CASE("the wasted fraction counts positions scored in vain") {
  CHECK(wasted_fraction(AcceptanceRate(0.5), 3) == Approx(1 - 1.875 / 4).epsilon(1e-15));
  CHECK(wasted_fraction(AcceptanceRate(1), 3) == 0);
  CHECK(wasted_fraction(AcceptanceRate(0), 3) == 0.75);
  CHECK(wasted_fraction(AcceptanceRate::from_rejection(1e-300), 3) == Approx(1.5e-300).epsilon(1e-14));
  CHECK(wasted_fraction(AcceptanceProfile::from_survival({0.75, 0.5}), 3) ==
        Approx((0.25 + 0.5 + 2.0 / 3) / 4).epsilon(1e-15));
}

TEST_CASE("a negative gamma or operations ratio is refused by name") {
  CHECK_THROWS_AS(operations_factor(AcceptanceRate(0.5), 1, -1), std::domain_error);
  CHECK_THROWS_WITH(operations_factor(AcceptanceRate(0.5), 1, -1),
                    "operations_factor: c_hat is -1, but must be in [0, 1.7976931348623157e+308]");
  CHECK_THROWS_WITH(operations_factor(AcceptanceRate(0.5), -1, 0),
                    "operations_factor: gamma is -1, but must be in [0, 2^63)");
  CHECK_THROWS_WITH(memory_access_factor(AcceptanceRate(0.5), -1),
                    "memory_access_factor: gamma is -1, but must be in [0, 2^63)");
  CHECK_THROWS_WITH(wasted_fraction(AcceptanceRate(0.5), -1), "wasted_fraction: gamma is -1, but must be in [0, 2^63)");
}

}  // namespace specdec::theory
