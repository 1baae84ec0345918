#include "analysis/worlds/speeds.hpp"

#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/fakes.hpp"

namespace {

using namespace specdec;
using namespace specdec::worlds;

TEST_CASE("a spread is the median and the central 95% of the worlds, and the hull over alternatives") {
  std::vector<double> values;
  for (int i = 0; i <= 1000; ++i) values.push_back(1 + 0.001 * i);
  const Spread one = spread_of(values, std::vector<int>(values.size(), 0));
  CHECK(one.middle == Approx(1.5).epsilon(1e-12));
  CHECK(one.ci95.lo == Approx(1.025).epsilon(1e-12));
  CHECK(one.ci95.hi == Approx(1.975).epsilon(1e-12));
  const Spread two = spread_of(std::vector<double>{1, 3}, std::vector<int>{0, 1});
  CHECK(two.middle == 2);
  CHECK(two.middles.lo == 1);
  CHECK(two.ci95.hi == 3);
  CHECK_THROWS_AS(spread_of({}, {}), std::invalid_argument);
}

TEST_CASE("exact acceptance and cost are one world with the speedup of the formula") {
  const fakes::Cost cost([](const cost::RoundPoint& at) {
    return cost::RoundTime{1.0, 0.05 * static_cast<double>(at.gamma), 0};
  });
  const fakes::Curve curve([](std::int64_t gamma) { return fakes::constant_rate(0.8, gamma); });
  const PricedWorlds priced = price(curve.draw(4, {}), cost, {{0, 1, 2, 3, 4}, {0, 0, 0, 0, 0}}, 1, 0);
  CHECK(priced.speedups.worlds() == 1);
  CHECK(priced.speedups.options[4][0] ==
        Approx((1 - std::pow(0.8, 5)) / 0.2 / 1.2).epsilon(1e-14));
}

TEST_CASE("world i has replicate i, so that errors which rounds share cancel") {
  fakes::Cost cost([](const cost::RoundPoint& at) {
    return cost::RoundTime{1.0, 0.1 * static_cast<double>(at.gamma), 0};
  });
  for (int i = 0; i < 200; ++i) cost.factors.push_back(0.9 + 0.001 * i);
  const fakes::Curve curve([](std::int64_t gamma) { return fakes::constant_rate(0.7, gamma, {0.9, 1.1}); });
  const estimate::TokenWorlds tokens = curve.draw(2, {});
  const PricedWorlds priced = price(tokens, cost, {{0, 1, 2}, {0, 0, 0}}, 1, 0);
  REQUIRE(priced.speedups.worlds() == 1000);
  for (std::size_t world : {0u, 7u, 207u}) {
    const double round = 1.2 * cost.factors[world % 200];
    CHECK(priced.speedups.options[2][world] == Approx(tokens.tokens[2][world] / round).epsilon(1e-12));
  }
}

TEST_CASE("a round whose time is not positive and finite is refused") {
  const fakes::Curve curve([](std::int64_t gamma) { return fakes::constant_rate(0.7, gamma); });
  for (const double draft : {0.0, std::numeric_limits<double>::infinity()}) {
    const fakes::Cost cost([&](const cost::RoundPoint& at) {
      return at.gamma == 2 ? cost::RoundTime{0, draft, 0} : cost::RoundTime{1, 0, 0};
    });
    CHECK_THROWS_WITH(price(curve.draw(3, {}), cost, {{0, 1, 2, 3}, {0, 0, 0, 0}}, 1, 0),
                      Catch::Contains("at gamma 2, batch 1, context 0 is"));
  }
}

TEST_CASE("drawn tokens per step have the interval that the curve states, and never fall with gamma") {
  const fakes::Curve curve([](std::int64_t gamma) { return fakes::constant_rate(0.7, gamma, {0.95, 1.04}); });
  const estimate::TokenWorlds tokens = curve.draw(6, {});
  const Spread spread = spread_of(tokens.tokens[3], tokens.alternative);
  const double value = fakes::constant_rate(0.7, 3).value;
  // 1,000 worlds: the quantiles err by some .05 of a half-width, four times that is allowed.
  CHECK(spread.ci95.lo == Approx(0.95 * value).epsilon(0.01));
  CHECK(spread.ci95.hi == Approx(1.04 * value).epsilon(0.01));
  for (std::size_t world = 0; world < tokens.worlds(); ++world)
    for (std::size_t gamma = 1; gamma < tokens.tokens.size(); ++gamma)
      REQUIRE(tokens.tokens[gamma - 1][world] <= tokens.tokens[gamma][world]);
  CHECK(curve.draw(2, {}).tokens[2] == tokens.tokens[2]);
}

}  // namespace
