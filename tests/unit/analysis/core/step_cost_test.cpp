#include "analysis/core/step_cost.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

namespace specdec::core {
namespace {

using Points = std::vector<VerificationCost::Point>;
constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

}  // namespace

TEST_CASE("verification costs 1 whatever the number of tokens unless said otherwise") {
  const VerificationCost v;
  CHECK(v(1) == 1);
  CHECK(v(largest) == 1);
  CHECK_FALSE(v.extrapolates(largest));
}

TEST_CASE("a constant factor holds from 2 tokens on") {
  const auto v = VerificationCost::constant(1.25);
  CHECK(v(1) == 1);
  CHECK(v(2) == 1.25);
  CHECK(v(1000) == 1.25);
  CHECK_FALSE(v.extrapolates(1000));
}

TEST_CASE("a table is linear between its points, starts at (1, 1) and holds its last slope") {
  const auto v = VerificationCost::table(Points{{3, 1.5}, {5, 1.5}, {9, 2.5}});
  CHECK(v(1) == 1);
  CHECK(v(2) == 1.25);
  CHECK(v(4) == 1.5);
  CHECK(v(7) == 2);
  CHECK(v(9) == 2.5);
  CHECK(v(13) == 3.5);
  CHECK_FALSE(v.extrapolates(9));
  CHECK(v.extrapolates(10));
}

TEST_CASE("a table that ends falling is held level, so that no cost becomes negative") {
  const auto v = VerificationCost::table(Points{{2, 2.0}, {3, 1.5}});
  CHECK(v(3) == 1.5);
  CHECK(v(1000000) == 1.5);
}

TEST_CASE("a table of the first point alone is constant") {
  const auto v = VerificationCost::table(Points{{1, 1.0}});
  CHECK(v(7) == 1);
  CHECK(v.extrapolates(2));
}

TEST_CASE("a table that is empty, unordered or out of range is refused with the place") {
  CHECK_THROWS_AS(VerificationCost::table({}), std::invalid_argument);
  CHECK_THROWS_WITH(VerificationCost::table({}), "VerificationCost::table: points is empty");
  CHECK_THROWS_WITH(VerificationCost::table(Points{{2, 1.0}, {2, 1.5}}),
                    "VerificationCost::table: point 1 has 2 tokens after 2, but they must increase");
  CHECK_THROWS_WITH(VerificationCost::table(Points{{2, 5.0}, {3, 1.0}}),
                    "VerificationCost::table: point 1 has factor 1 after 5, but must have at least half of it");
  CHECK_THROWS_AS(VerificationCost::table(Points{{0, 1.0}}), std::domain_error);
  CHECK_THROWS_WITH(VerificationCost::table(Points{{0, 1.0}}),
                    "VerificationCost::table: tokens of point 0 is 0, but must be in [1, 2^63)");
  CHECK_THROWS_AS(VerificationCost::table(Points{{2, 0.0}}), std::domain_error);
  CHECK_THROWS_AS(VerificationCost::table(Points{{2, std::numeric_limits<double>::quiet_NaN()}}), std::domain_error);
  CHECK_THROWS_WITH(VerificationCost::table(Points{{1, 2.0}}),
                    "VerificationCost::table: factor at 1 token is 2, but must be in [1, 1]");
  CHECK_THROWS_AS(VerificationCost::constant(-1), std::domain_error);
  CHECK_THROWS_WITH(VerificationCost()(0), "VerificationCost: n is 0, but must be in [1, 2^63)");
}

TEST_CASE("a step costs its drafts, its verification and its overhead, and plain decoding costs 1") {
  const StepCost cost{.c = 0.5, .overhead = 0.25, .verification = VerificationCost::constant(1.5)};
  CHECK(cost(0) == 1);
  CHECK(cost(1) == 2.25);
  CHECK(cost(4) == 3.75);
}

TEST_CASE("a step's cost neither overflows its gamma nor loses a small c") {
  const StepCost cost{.c = 1e-300};
  CHECK(cost(largest) == 1);
  CHECK(static_cast<double>(cost.extended_excess(1)) == 1e-300);
  CHECK(StepCost{.c = 1e308}(largest) == std::numeric_limits<double>::infinity());
}

TEST_CASE("a verification that costs next to nothing is not lost in 1") {
  const StepCost cost{.verification = VerificationCost::constant(1e-300)};
  CHECK(cost(1) == 1e-300);
  CHECK(cost(largest) == 1e-300);
}

TEST_CASE("a step's cost is extrapolated where its verification is") {
  const StepCost cost{.verification = VerificationCost::table(Points{{5, 1.5}})};
  CHECK_FALSE(cost.extrapolates(0));
  CHECK_FALSE(cost.extrapolates(4));
  CHECK(cost.extrapolates(5));
  CHECK(cost.extrapolates(largest));
}

TEST_CASE("the pieces of a step's cost meet at the points of its table and reproduce it") {
  const StepCost cost{.c = 0.5, .overhead = 0.25, .verification = VerificationCost::table(Points{{3, 1.5}, {9, 2.25}})};
  const auto pieces = cost.pieces();
  REQUIRE(pieces.size() == 3);
  CHECK(pieces.front().first == 1);
  CHECK(pieces.back().last == largest);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    if (i > 0) CHECK(pieces[i].first == pieces[i - 1].last);
    for (std::int64_t drafts = pieces[i].first; drafts <= std::min<std::int64_t>(pieces[i].last, 20); ++drafts) {
      const auto steps = static_cast<long double>(drafts - pieces[i].first);
      CHECK(static_cast<double>(pieces[i].cost_at_first + pieces[i].slope * steps) == cost(drafts));
    }
  }
}

TEST_CASE("negative, NaN or infinite costs are refused") {
  CHECK_THROWS_AS(StepCost{.c = -0.1}(1), std::domain_error);
  CHECK_THROWS_WITH(StepCost{.c = -0.1}(1), "StepCost: c is -0.1, but must be in [0, 1.7976931348623157e+308]");
  CHECK_THROWS_AS(StepCost{.c = std::numeric_limits<double>::infinity()}(1), std::domain_error);
  CHECK_THROWS_AS(StepCost{.overhead = std::numeric_limits<double>::quiet_NaN()}(0), std::domain_error);
  CHECK_THROWS_WITH(StepCost{}(-1), "StepCost: gamma is -1, but must be in [0, 2^63)");
}

}  // namespace specdec::core
