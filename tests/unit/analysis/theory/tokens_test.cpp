#include "analysis/theory/tokens.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/support/exact_laws.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceProfile;
using core::AcceptanceRate;

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("expected tokens equal the exact rational sums of the powers") {
  CHECK(expected_tokens(AcceptanceRate(0.2), 3) == Approx(156.0 / 125).epsilon(1e-15));
  CHECK(expected_tokens(AcceptanceRate(0.5), 3) == 15.0 / 8);
  CHECK(expected_tokens(AcceptanceRate(0.75), 7) == 58975.0 / 16384);
  CHECK(expected_tokens(AcceptanceRate(0.8), 5) == Approx(11529.0 / 3125).epsilon(1e-15));
  CHECK(expected_tokens(AcceptanceRate(0.9), 10) == Approx(6.8618940391).epsilon(1e-15));
}

TEST_CASE("at alpha = 0 a step gives 1 token, at alpha = 1 all gamma + 1, without drafts 1") {
  CHECK(expected_tokens(AcceptanceRate(0), 5) == 1);
  CHECK(expected_tokens(AcceptanceRate(1), 4) == 5);
  CHECK(expected_tokens(AcceptanceRate(0.3), 0) == 1);
  CHECK(expected_tokens(AcceptanceRate(1), largest) == std::ldexp(1.0, 63));
  CHECK(expected_tokens(AcceptanceRate::from_rejection(5e-324), 4) == 5);
}

TEST_CASE("near alpha = 1 the rejection rate decides, not alpha as a double") {
  // 60-digit values at epsilon = 1e-9 and at the double nearest to 1 - 1e-9
  CHECK(expected_tokens(AcceptanceRate::from_rejection(1e-9), 1000000000) == Approx(632120559.38037684).epsilon(1e-15));
  CHECK(expected_tokens(AcceptanceRate(1 - 1e-9), 1000000000) == Approx(632120566.85).epsilon(1e-10));
}

TEST_CASE("acceptances that depend on the position give the sum of their products") {
  // .9 + .72 + .504 + .3024 + 1, by hand
  const auto profile = AcceptanceProfile::from_conditional(
      {AcceptanceRate(0.9), AcceptanceRate(0.8), AcceptanceRate(0.7), AcceptanceRate(0.6)});
  CHECK(expected_tokens(profile, 4) == Approx(3.4264).epsilon(1e-15));
  CHECK(expected_tokens(profile, 2) == Approx(2.62).epsilon(1e-15));
  CHECK(expected_tokens(profile, 6) == Approx(3.4264 + 0.3024 * (0.6 + 0.36)).epsilon(1e-15));
  CHECK(expected_tokens_limit(profile) == Approx(3.4264 + 0.3024 * 1.5).epsilon(1e-14));
}

TEST_CASE("the limit of the expected tokens is 1 / epsilon, and infinite at alpha = 1") {
  CHECK(expected_tokens_limit(AcceptanceRate::from_rejection(1e-12)) == 1e12);
  CHECK(std::isinf(expected_tokens_limit(AcceptanceRate(1))));
  CHECK(std::isinf(expected_tokens_limit(AcceptanceRate::from_rejection(5e-324))));
  CHECK(expected_tokens_limit(AcceptanceRate(0)) == 1);
  CHECK(expected_tokens_limit(AcceptanceProfile::from_survival({0.5, 0.0})) == 1.5);
}

TEST_CASE("the distribution of the tokens is the capped geometric one") {
  const std::vector<double> law = {0.5, 0.25, 0.125, 0.125};
  CHECK(test_support::tokens_law(AcceptanceRate(0.5), 3) == law);
  CHECK(tokens_probability(AcceptanceRate(0.5), 3, 4) == 0.125);
  CHECK(tokens_probability(AcceptanceRate(1), largest, largest) == 0);
}

TEST_CASE("the variance of the tokens equals exact rational values") {
  CHECK(tokens_variance(AcceptanceRate(0.7), 2) == Approx(0.7539).epsilon(1e-14));
  CHECK(tokens_variance(AcceptanceRate(0.7), 3) == Approx(1.534911).epsilon(1e-14));
  CHECK(tokens_variance(AcceptanceRate(0.7), 4) == Approx(2.42181639).epsilon(1e-14));
  CHECK(tokens_variance(AcceptanceRate(0.5), 3) == Approx(71.0 / 64).epsilon(1e-15));
  CHECK(tokens_variance(AcceptanceRate(1), 4) == 0);
  CHECK(tokens_variance(AcceptanceRate(0), 4) == 0);
  CHECK(tokens_variance(AcceptanceRate(0.3), 0) == 0);
}

TEST_CASE("the derivative of the expected tokens equals exact rational values and its ends") {
  CHECK(expected_tokens_derivative(AcceptanceRate(0.8), 5) == Approx(8.616).epsilon(1e-14));
  CHECK(expected_tokens_derivative(AcceptanceRate(0.9), 10) == Approx(30.26431198).epsilon(1e-9));
  CHECK(expected_tokens_derivative(AcceptanceRate(0), 5) == 1);
  CHECK(expected_tokens_derivative(AcceptanceRate(1), 5) == 15);
  CHECK(expected_tokens_derivative(AcceptanceRate(0.3), 0) == 0);
}

TEST_CASE("a negative gamma is refused by name") {
  CHECK_THROWS_AS(expected_tokens(AcceptanceRate(0.5), -1), std::domain_error);
  CHECK_THROWS_WITH(expected_tokens(AcceptanceRate(0.5), -1), "expected_tokens: gamma is -1, but must be in [0, 2^63)");
  CHECK_THROWS_WITH(tokens_variance(AcceptanceRate(0.5), -1), "tokens_variance: gamma is -1, but must be in [0, 2^63)");
  CHECK_THROWS_WITH(expected_tokens_derivative(AcceptanceRate(0.5), -1),
                    "expected_tokens_derivative: gamma is -1, but must be in [0, 2^63)");
  CHECK_THROWS_WITH(tokens_probability(AcceptanceRate(0.5), -1, 1),
                    "tokens_probability: gamma is -1, but must be in [0, 2^63)");
  CHECK_THROWS_WITH(tokens_probability(AcceptanceRate(0.5), 3, 5),
                    "tokens_probability: tokens is 5, but must be in [1, 4]");
}

}  // namespace specdec::theory
