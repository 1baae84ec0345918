#include "analysis/cost/plain_range_cost.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/fakes.hpp"

using namespace specdec;

TEST_CASE("plain steps may take up to so many times as long in replicates, and rounds with drafts do not") {
  const auto base = std::make_shared<fakes::Cost>([](const cost::RoundPoint& at) {
    return cost::RoundTime{0.010, 0.002 * static_cast<double>(at.gamma), 0};
  });
  base->factors = std::vector<double>(400, 1.0);
  const cost::PlainRangeCost cost(base, [](double batch) { return batch > 1 ? 1.5 : 1.0; });
  CHECK(cost.round({0, 8, 0}).total() == 0.010);
  std::vector<double> totals(400);
  cost.totals_of_replicates({0, 8, 0}, totals);
  CHECK(totals[7] == Approx(cost.round_of_replicate(7, {0, 8, 0}).total()));
  std::sort(totals.begin(), totals.end());
  CHECK(totals.front() >= 0.010);
  CHECK(totals.back() < 0.015);
  // Evenly in the logarithm: the quarter, the middle and three quarters.
  CHECK(totals[100] == Approx(0.010 * std::pow(1.5, 0.25)).epsilon(0.005));
  CHECK(totals[200] == Approx(0.010 * std::pow(1.5, 0.50)).epsilon(0.005));
  CHECK(totals[300] == Approx(0.010 * std::pow(1.5, 0.75)).epsilon(0.005));
  cost.totals_of_replicates({0, 1, 0}, totals);
  CHECK(totals.front() == 0.010);
  CHECK(totals.back() == 0.010);
  cost.totals_of_replicates({2, 8, 0}, totals);
  CHECK(totals.back() == Approx(0.014));
  CHECK_THROWS_AS(cost::PlainRangeCost(nullptr, [](double) { return 1.0; }), std::invalid_argument);
}
