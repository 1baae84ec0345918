#include "analysis/core/acceptance_profile.hpp"

#include <stdexcept>

#include "tests/support/catch.hpp"

namespace specdec::core {

TEST_CASE("the profile of one rate survives with its powers and extrapolates nowhere") {
  const AcceptanceProfile profile = AcceptanceRate(0.5);
  CHECK(profile.survival(0) == 1);
  CHECK(profile.survival(3) == 0.125);
  CHECK(profile.first_rejection(3) == 0.125);
  CHECK(profile.measured_positions() == 0);
  CHECK_FALSE(profile.extrapolates(1000));
}

TEST_CASE("beyond the measured positions the last conditional rate is held") {
  const auto profile = AcceptanceProfile::from_survival({0.75, 0.5, 0.25});
  CHECK(profile.survival(1) == 0.75);
  CHECK(profile.survival(3) == 0.25);
  CHECK(profile.tail().alpha() == 0.5);
  CHECK(profile.survival(5) == 0.0625);
  CHECK(profile.first_rejection(1) == 0.25);
  CHECK(profile.first_rejection(4) == 0.125);
  CHECK_FALSE(profile.extrapolates(3));
  CHECK(profile.extrapolates(4));
}

TEST_CASE("conditional rates multiply to survival and keep their small rejection rates") {
  const auto profile =
      AcceptanceProfile::from_conditional({AcceptanceRate(0.5), AcceptanceRate::from_rejection(1e-20)});
  CHECK(profile.survival(2) == 0.5);
  CHECK(profile.first_rejection(2) == 0.5e-20);
  CHECK(profile.tail().rejection() == 1e-20);
}

TEST_CASE("a profile in which nothing survives holds a rate of 0") {
  const auto profile = AcceptanceProfile::from_survival({0.5, 0.0, 0.0});
  CHECK(profile.tail().alpha() == 0);
  CHECK(profile.survival(100) == 0);
}

TEST_CASE("a survival that grows, or leaves 0 to 1, is refused with its position") {
  CHECK_THROWS_AS(AcceptanceProfile::from_survival({}), std::invalid_argument);
  CHECK_THROWS_WITH(AcceptanceProfile::from_survival({}), "AcceptanceProfile::from_survival: survival is empty");
  CHECK_THROWS_AS(AcceptanceProfile::from_survival({0.5, 0.75}), std::domain_error);
  CHECK_THROWS_WITH(AcceptanceProfile::from_survival({0.5, 0.75}),
                    "AcceptanceProfile::from_survival: survival at position 2 is 0.75, but must be in [0, 0.5]");
  CHECK_THROWS_WITH(AcceptanceProfile::from_survival({1.5}),
                    "AcceptanceProfile::from_survival: survival at position 1 is 1.5, but must be in [0, 1]");
  CHECK_THROWS_WITH(AcceptanceProfile::from_conditional({}),
                    "AcceptanceProfile::from_conditional: conditional is empty");
}

TEST_CASE("positions before the first are refused") {
  const AcceptanceProfile profile = AcceptanceRate(0.5);
  CHECK_THROWS_WITH(profile.survival(-1), "AcceptanceProfile::survival: j is -1, but must be in [0, 2^63)");
  CHECK_THROWS_WITH(profile.first_rejection(0), "AcceptanceProfile::first_rejection: j is 0, but must be in [1, 2^63)");
}

}  // namespace specdec::core
