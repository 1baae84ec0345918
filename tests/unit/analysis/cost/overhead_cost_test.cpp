#include "analysis/cost/overhead_cost.hpp"

#include <memory>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/fakes.hpp"

using namespace specdec;

TEST_CASE("an overhead is part of speculative rounds alone, in seconds and in plain steps of the same replicate") {
  const auto base = std::make_shared<fakes::Cost>([](const cost::RoundPoint& at) {
    return cost::RoundTime{0.010 + 0.001 * at.batch, 0.002 * static_cast<double>(at.gamma), 0.0005};
  });
  base->factors = {1.1, 0.9};
  const cost::OverheadCost cost(base, 0.003, 0.5);
  CHECK(cost.round({0, 4, 0}).total() == Approx(0.0145));
  CHECK(cost.round({2, 4, 0}).overhead == Approx(0.0005 + 0.003 + 0.5 * 0.0145));
  CHECK(cost.round({2, 4, 0}).total() == Approx(0.0185 + 0.003 + 0.5 * 0.0145));
  CHECK(cost.price(1, {2, 4, 0}).total() == Approx(1.1 * 0.0185 + 0.003 + 0.5 * 0.0145));
  std::vector<double> totals(2);
  cost.totals_of_replicates({2, 4, 0}, totals);
  CHECK(totals[0] == Approx(cost.price(1, {2, 4, 0}).total()));
  CHECK(totals[1] == Approx(cost.price(2, {2, 4, 0}).total()));
  cost.totals_of_replicates({0, 4, 0}, totals);
  CHECK(totals[1] == Approx(0.0145));
  CHECK(cost.name() == "fake");
  CHECK(cost.in_seconds());
}

TEST_CASE("an overhead needs a cost to add to, and seconds a cost that knows them") {
  const auto steps = std::make_shared<fakes::Cost>(
      [](const cost::RoundPoint&) {
        return cost::RoundTime{1, 0, 0};
      },
      false);
  CHECK(cost::OverheadCost(steps, 0, 0.25).round({1, 1, 0}).total() == 1.25);
  CHECK_THROWS_AS(cost::OverheadCost(steps, 0.1, 0), std::invalid_argument);
  CHECK_THROWS_AS(cost::OverheadCost(nullptr, 0, 0), std::invalid_argument);
  CHECK_THROWS_AS(cost::OverheadCost(steps, 0, -1), std::domain_error);
}
