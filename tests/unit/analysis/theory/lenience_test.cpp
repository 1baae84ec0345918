#include "analysis/theory/lenience.hpp"

#include <stdexcept>
#include <vector>

#include "analysis/theory/rejection_sampling.hpp"
#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceRate;
using core::DraftDistribution;
using core::TargetDistribution;

const std::vector<double> p1 = {0.5, 0.3, 0.2};
const std::vector<double> q1 = {0.2, 0.3, 0.5};

void check_output(double lenience, LenientResidual residual, const std::vector<double>& expected, double distance) {
  const TargetDistribution p(p1);
  const DraftDistribution q(q1);
  const auto output = lenient_output(p, q, lenience, residual);
  REQUIRE(output.size() == expected.size());
  for (std::size_t x = 0; x < output.size(); ++x) CHECK(output[x] == Approx(expected[x]).epsilon(1e-14));
  CHECK(lenient_distance(p, q, lenience, residual) == Approx(distance).epsilon(1e-13).margin(1e-15));
}

}  // namespace

TEST_CASE("lenient acceptance equals exact rational values") {
  CHECK(lenient_acceptance(TargetDistribution(p1), DraftDistribution(q1), 1).alpha() == Approx(0.7).epsilon(1e-15));
  CHECK(lenient_acceptance(TargetDistribution(p1), DraftDistribution(q1), 0.75).alpha() ==
        Approx(23.0 / 30).epsilon(1e-15));
  CHECK(lenient_acceptance(TargetDistribution(p1), DraftDistribution(q1), 0.5).alpha() == Approx(0.9).epsilon(1e-15));
}

TEST_CASE("the lenient output equals exact rational values for both readings of the residual") {
  check_output(0.75, LenientResidual::strict, {13.0 / 30, 0.3, 4.0 / 15}, 1.0 / 15);
  check_output(0.75, LenientResidual::lenient, {20.0 / 51, 29.0 / 85, 4.0 / 15}, 11.0 / 102);
  check_output(0.5, LenientResidual::strict, {0.3, 0.3, 0.4}, 0.2);
  check_output(0.5, LenientResidual::lenient, {3.0 / 11, 18.0 / 55, 0.4}, 5.0 / 22);
}

TEST_CASE("lenience 1 changes nothing under either reading") {
  check_output(1, LenientResidual::strict, p1, 0);
  check_output(1, LenientResidual::lenient, p1, 0);
}

TEST_CASE("equal rows stay what they are under any lenience") {
  for (const auto residual : {LenientResidual::strict, LenientResidual::lenient}) {
    CHECK(lenient_output(TargetDistribution(p1), DraftDistribution(p1), 0.5, residual) == p1);
  }
}

TEST_CASE("vanishing lenience accepts the draft's mass on the target's support, and no more") {
  const std::vector<double> p = {0.5, 0.5, 0};
  const std::vector<double> q = {0.25, 0.25, 0.5};
  CHECK(lenient_acceptance(TargetDistribution(p), DraftDistribution(q), 5e-324).alpha() == 0.5);
}

TEST_CASE("the bonus token makes the law of a sequence depend on gamma") {
  // p = (.7, .3), q = (.2, .8), l = 1/2: alpha_l = 4/5; after gamma = 1 the exact tokens are 4/5 of 9/5
  CHECK(exact_token_fraction(AcceptanceRate(0.8), 1) == Approx(4.0 / 9).epsilon(1e-15));
  CHECK(exact_token_fraction(AcceptanceRate(0.8), 0) == 1);
  CHECK(exact_token_fraction(AcceptanceRate(1), 3) == 0.25);
  CHECK(exact_token_fraction(AcceptanceRate(0), 3) == 0);
}

TEST_CASE("argmax lenience accepts what reaches its share of the maximum, and l = 1 only a maximum") {
  const std::vector<double> row = {0.4, 0.35, 0.25};
  const TargetDistribution p(row);
  CHECK(argmax_lenient_accepts(p, 1, 0.87));
  CHECK_FALSE(argmax_lenient_accepts(p, 1, 0.88));
  CHECK_FALSE(argmax_lenient_accepts(p, 1, 1));
  const std::vector<double> tied = {0.25, 0.375, 0.375};
  CHECK(argmax_lenient_accepts(TargetDistribution(tied), 2, 1));
}

TEST_CASE("one-shot rejection sampling and naive matching accept less than speculative sampling") {
  const TargetDistribution p(p1);
  const DraftDistribution q(q1);
  CHECK(rejection_sampling_acceptance(p, q) == Approx(0.4).epsilon(1e-15));
  CHECK(matching_acceptance(p, q) == Approx(0.29).epsilon(1e-15));
  const std::vector<double> uniform(100, 0.01);
  CHECK(matching_acceptance(TargetDistribution(uniform), DraftDistribution(uniform)) == Approx(0.01).epsilon(1e-14));
  CHECK(rejection_sampling_acceptance(TargetDistribution(uniform), DraftDistribution(uniform)) == 1);
}

TEST_CASE("one-shot rejection sampling accepts nothing where the draft lacks a token of the target") {
  const std::vector<double> row = {0.5, 0.5, 0};
  const std::vector<double> draft = {0, 0.5, 0.5};
  CHECK(rejection_sampling_acceptance(TargetDistribution(row), DraftDistribution(draft)) == 0);
}

TEST_CASE("lenience out of range, unequal rows and unknown tokens are refused by name") {
  const TargetDistribution p(p1);
  const DraftDistribution q(q1);
  CHECK_THROWS_AS(lenient_acceptance(p, q, 0), std::domain_error);
  CHECK_THROWS_WITH(lenient_acceptance(p, q, 1.5), "lenient_acceptance: lenience is 1.5, but must be in (0, 1]");
  CHECK_THROWS_WITH(lenient_output(p, q, 0, LenientResidual::strict),
                    "lenient_output: lenience is 0, but must be in (0, 1]");
  CHECK_THROWS_AS(lenient_distance(p, q, -1, LenientResidual::strict), std::domain_error);
  CHECK_THROWS_AS(argmax_lenient_accepts(p, 0, 0), std::domain_error);
  CHECK_THROWS_WITH(argmax_lenient_accepts(p, 3, 1), "argmax_lenient_accepts: draft_token is 3, but must be in [0, 2]");
  const std::vector<double> two = {0.5, 0.5};
  CHECK_THROWS_AS(lenient_acceptance(p, DraftDistribution(two), 1), std::invalid_argument);
  CHECK_THROWS_AS(rejection_sampling_acceptance(p, DraftDistribution(two)), std::invalid_argument);
  CHECK_THROWS_WITH(matching_acceptance(p, DraftDistribution(two)),
                    "matching_acceptance: target distribution has 3 entries, but draft distribution has 2");
  CHECK_THROWS_WITH(exact_token_fraction(AcceptanceRate(0.5), -1),
                    "exact_token_fraction: gamma is -1, but must be in [0, 2^63)");
}

}  // namespace specdec::theory
