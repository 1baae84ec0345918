#include "analysis/theory/finite_generation.hpp"

#include <stdexcept>

#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceProfile;
using core::AcceptanceRate;

}  // namespace

TEST_CASE("the expected steps of a finite generation equal exact rational values") {
  CHECK(finite_generation(AcceptanceRate(0.8), 5, 5).expected_steps == Approx(1.8).epsilon(1e-14));
  CHECK(finite_generation(AcceptanceRate(0.8), 5, 10).expected_steps == Approx(3.2194304).epsilon(1e-14));
  CHECK(finite_generation(AcceptanceRate(0.8), 5, 64).expected_steps == Approx(17.85398020349825).epsilon(1e-14));
  CHECK(finite_generation(AcceptanceRate(0.8), 5, 64).steps_variance == Approx(5.070718996).epsilon(1e-9));
  CHECK(finite_generation(AcceptanceRate(0.9), 10, 20).expected_steps == Approx(3.464859072962).epsilon(1e-12));
}

TEST_CASE("the speedup of a finite generation equals exact rational values and never exceeds its tokens") {
  const auto speedup = [](double alpha, std::int64_t drafts, std::int64_t tokens, double c) {
    return finite_generation(AcceptanceRate(alpha), drafts, tokens, {.c = c}).speedup;
  };
  CHECK(speedup(0.8, 5, 1, 0.05) == 1);
  CHECK(speedup(0.8, 5, 2, 0.05) == Approx(1.6).epsilon(1e-14));
  CHECK(speedup(0.8, 5, 5, 0.05) == Approx(2.4271844660194173).epsilon(1e-14));
  CHECK(speedup(0.8, 5, 10, 0.05) == Approx(2.620121898970447).epsilon(1e-14));
  CHECK(speedup(0.8, 5, 64, 0.05) == Approx(2.8940702203366695).epsilon(1e-14));
  CHECK(speedup(0.9, 10, 20, 0.1) == Approx(3.2500378337875344).epsilon(1e-14));
  CHECK(speedup(0.5, 3, 4, 0) == Approx(1.6).epsilon(1e-15));
}

TEST_CASE("without drafts every token takes a step") {
  const auto plain = finite_generation(AcceptanceRate(0.8), 0, 17);
  CHECK(plain.expected_steps == 17);
  CHECK(plain.steps_variance == 0);
  CHECK(plain.speedup == 1);
}

TEST_CASE("certain acceptance takes the fewest steps, and none varies") {
  const auto certain = finite_generation(AcceptanceRate(1), 3, 10);
  CHECK(certain.expected_steps == 3);
  CHECK(certain.steps_variance == 0);
}

TEST_CASE("a profile's positions enter a finite generation") {
  // 2 tokens: one step if the first draft survives, else two
  const auto two = finite_generation(AcceptanceProfile::from_survival({0.75, 0.25}), 2, 2);
  CHECK(two.expected_steps == 1.25);
  CHECK(two.steps_variance == 0.1875);
}

TEST_CASE("a generation of no tokens, or of too many, is refused") {
  CHECK_THROWS_AS(finite_generation(AcceptanceRate(0.5), 1, 0), std::domain_error);
  CHECK_THROWS_WITH(finite_generation(AcceptanceRate(0.5), 1, 0),
                    "finite_generation: tokens is 0, but must be in [1, 10000000]");
  CHECK_THROWS_WITH(finite_generation(AcceptanceRate(0.5), -1, 5),
                    "finite_generation: gamma is -1, but must be in [0, 2^63)");
  CHECK_THROWS_AS(finite_generation(AcceptanceRate(0.5), 1, 5, {.c = -1}), std::domain_error);
}

}  // namespace specdec::theory
