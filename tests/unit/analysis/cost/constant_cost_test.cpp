#include "analysis/cost/constant_cost.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using core::VerificationCost;
using cost::ConstantCost;
using cost::DraftKind;

namespace {

double speedup(const cost::RoundCost& price, double alpha, std::int64_t gamma) {
  const double tokens = theory::expected_tokens(core::AcceptanceRate(alpha), gamma);
  return tokens * price.round({}).total() / price.round({.gamma = gamma}).total();
}

}  // namespace

TEST_CASE("a constant cost with free verification gives the speedup of Theorem 3.8") {
  for (const double c : {0.0, 0.02, 0.1, 0.5, 1.5}) {
    const ConstantCost price({.step = {.c = c}});
    for (const double alpha : {0.0, 0.3, 0.8, 0.99, 1.0}) {
      for (const std::int64_t gamma : {0, 1, 2, 5, 12, 64}) {
        const double expected = theory::walltime_improvement(core::AcceptanceRate(alpha), gamma, c);
        CHECK(speedup(price, alpha, gamma) == Approx(expected).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("a constant cost sums to the generalised step cost whatever batch and context") {
  const std::vector<VerificationCost::Point> points = {{1, 1.0}, {4, 1.3}, {9, 1.4}};
  const core::StepCost step{.c = 0.07, .overhead = 0.02, .verification = VerificationCost::table(points)};
  const ConstantCost price({.step = step});
  for (std::int64_t gamma = 0; gamma <= 8; ++gamma) {
    const cost::RoundTime time = price.round({.gamma = gamma, .batch = 17, .context = 4000});
    CHECK(time.total() == Approx(step(gamma)).epsilon(1e-14));
    CHECK(time.overhead == (gamma == 0 ? 0 : 0.02));
  }
  CHECK_FALSE(price.extrapolates({.gamma = 8}));
  CHECK(price.extrapolates({.gamma = 9}));
}

TEST_CASE("beyond the last point of v replicates go on between its last slope and passes that operations limit") {
  const std::vector<VerificationCost::Point> points = {{3, 1.05}, {5, 1.1}};
  const ConstantCost price({.step = {.verification = VerificationCost::table(points)}});
  REQUIRE(price.replicates() == 64);
  double most = 0, least = 1e9;
  for (std::size_t i = 0; i < price.replicates(); ++i) {
    for (const std::int64_t gamma : {0, 2, 4}) {
      CHECK(price.price(1 + i, {.gamma = gamma}).target == price.round({.gamma = gamma}).target);
    }
    const double target = price.price(1 + i, {.gamma = 24}).target;
    most = std::max(most, target);
    least = std::min(least, target);
  }
  // 1.1 + 20 tokens at .025, and 1.1 times 25 / 5 tokens.
  CHECK(least == Approx(1.6));
  CHECK(most == Approx(5.5).epsilon(0.05));
  CHECK(price.round({.gamma = 24}).target == Approx(1.6));
  CHECK(ConstantCost({.step = {.verification = VerificationCost::constant(1.2)}}).replicates() == 0);
  CHECK(ConstantCost({.step = {.c = 0.1}}).replicates() == 0);
}

TEST_CASE("one parallel pass is charged whatever gamma and n-grams are charged the overhead alone") {
  const core::StepCost step{.c = 0.2, .overhead = 0.05, .verification = VerificationCost::constant(1.1)};
  const ConstantCost parallel({.step = step, .kind = DraftKind::parallel});
  const ConstantCost ngram({.step = step, .kind = DraftKind::ngram});
  for (const std::int64_t gamma : {1, 3, 16}) {
    CHECK(parallel.round({.gamma = gamma}).draft == 0.2);
    CHECK(parallel.round({.gamma = gamma}).total() == Approx(1.1 + 0.2 + 0.05).epsilon(1e-14));
    CHECK(ngram.round({.gamma = gamma, .full_accepts = 0.5}).draft == 0);
    CHECK(ngram.round({.gamma = gamma}).total() == Approx(1.1 + 0.05).epsilon(1e-14));
  }
  const ConstantCost mirrored({.step = step, .kind = DraftKind::mirrored});
  CHECK(mirrored.round({.gamma = 3, .full_accepts = 0.5}).draft == Approx(4 * 0.2).epsilon(1e-14));
  CHECK(mirrored.round({}).total() == 1);
  CHECK(parallel.round({}).total() == 1);
  CHECK(ngram.round({}).total() == 1);
}

TEST_CASE("the second token of a draft's pass after a full accept is free") {
  const ConstantCost price({.step = {.c = 0.1}});
  CHECK(price.round({.gamma = 4, .full_accepts = 0.25}).draft == Approx(0.4));
  CHECK(price.round({.full_accepts = 1}).total() == 1);
}

TEST_CASE("a constant cost refuses what is outside its range") {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(ConstantCost({.step = {.c = -0.1}}), std::domain_error);
  CHECK_THROWS_AS(ConstantCost({.step = {.c = 0.1, .overhead = nan}}), std::domain_error);
  const ConstantCost price({.step = {.c = 0.1}});
  CHECK_THROWS_AS(price.round({.gamma = -1}), std::domain_error);
  CHECK_THROWS_AS(price.round({.gamma = 1, .batch = 0}), std::domain_error);
  CHECK_THROWS_AS(price.round({.gamma = 1, .context = -1}), std::domain_error);
  CHECK_THROWS_AS(price.round({.gamma = 1, .full_accepts = nan}), std::domain_error);
  CHECK(price.replicates() == 0);
  CHECK_FALSE(price.in_seconds());
}
