#include "analysis/theory/acceptance_inversion.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "analysis/theory/tokens.hpp"
#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceRate;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("an acceptance length is inverted to the many-digit root") {
  CHECK(alpha_from_acceptance_length(2.5, 3).alpha() == Approx(0.691413979781737).epsilon(1e-14));
  CHECK(alpha_from_acceptance_length(3.6, 5).alpha() == Approx(0.789480563891604).epsilon(1e-14));
  CHECK(alpha_from_acceptance_length(3.68928, 5).alpha() == Approx(0.8).epsilon(1e-14));
}

TEST_CASE("gamma 1 and 2 are inverted as by hand") {
  CHECK(alpha_from_acceptance_length(1.25, 1).alpha() == 0.25);
  CHECK(alpha_from_acceptance_length(1.75, 2).alpha() == Approx(0.5).epsilon(1e-15));
}

TEST_CASE("the ends of the range are the ends of alpha") {
  CHECK(alpha_from_acceptance_length(1, 5).alpha() == 0);
  CHECK(alpha_from_acceptance_length(6, 5).rejection() == 0);
  CHECK(alpha_from_acceptance_length(1e15 + 1, 1000000000000000).rejection() == 0);
}

TEST_CASE("a length out of range is refused with both conventions named") {
  const std::string conventions =
      "but must be in [1, 4] with the bonus token counted; a length without the bonus token is in [0, 3]: add 1 to it";
  CHECK_THROWS_AS(alpha_from_acceptance_length(4.5, 3), std::domain_error);
  CHECK_THROWS_WITH(alpha_from_acceptance_length(4.5, 3),
                    "alpha_from_acceptance_length: acceptance length is 4.5 at gamma 3, " + conventions);
  CHECK_THROWS_WITH(alpha_from_acceptance_length(0.7, 3),
                    "alpha_from_acceptance_length: acceptance length is 0.7 at gamma 3, " + conventions);
  CHECK_THROWS_AS(alpha_from_acceptance_length(nan, 3), std::domain_error);
  CHECK_THROWS_WITH(alpha_from_acceptance_length(1, 0),
                    "alpha_from_acceptance_length: gamma is 0, but must be in [1, 2^63)");
}

TEST_CASE("unconditional and conditional rates of the same positions give the same profile") {
  const auto unconditional = profile_from_unconditional_rates(std::vector{0.8, 0.6, 0.3});
  const auto conditional = profile_from_conditional_rates(std::vector{0.8, 0.75, 0.5});
  CHECK(unconditional.monotone);
  for (std::int64_t j = 0; j <= 6; ++j) {
    CHECK(unconditional.profile.survival(j) == Approx(conditional.survival(j)).epsilon(1e-14));
  }
}

TEST_CASE("unconditional rates that grow are flagged") {
  const auto inverted = profile_from_unconditional_rates(std::vector{0.8, 0.9, 0.3});
  CHECK_FALSE(inverted.monotone);
  CHECK(inverted.profile.survival(2) == 0.8);
}

TEST_CASE("rates outside 0 to 1 are refused with their position") {
  CHECK_THROWS_AS(profile_from_unconditional_rates({}), std::invalid_argument);
  CHECK_THROWS_AS(profile_from_conditional_rates({}), std::invalid_argument);
  CHECK_THROWS_AS(profile_from_unconditional_rates(std::vector{0.5, nan}), std::domain_error);
  CHECK_THROWS_WITH(profile_from_unconditional_rates(std::vector{0.5, 1.5}),
                    "profile_from_unconditional_rates: rate at position 2 is 1.5, but must be in [0, 1]");
  CHECK_THROWS_WITH(profile_from_conditional_rates(std::vector{-0.5}),
                    "profile_from_conditional_rates: rate at position 1 is -0.5, but must be in [0, 1]");
}

}  // namespace specdec::theory
