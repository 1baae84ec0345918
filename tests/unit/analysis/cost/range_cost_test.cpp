#include "analysis/cost/range_cost.hpp"

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
  const cost::RangeCost cost(base, [](const cost::RoundPoint& at) {
    return cost::Range{1, at.gamma == 0 && at.batch > 1 ? 1.5 : 1};
  });
  CHECK(cost.round({0, 8, 0}).total() == 0.010);
  std::vector<double> totals(400);
  cost.totals_of_replicates({0, 8, 0}, totals);
  CHECK(totals[7] == Approx(cost.price(8, {0, 8, 0}).total()));
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
  CHECK_THROWS_AS(cost::RangeCost(nullptr, [](const auto&) { return cost::Range{1, 1}; }), std::invalid_argument);
  CHECK_THROWS_AS(cost::RangeCost(base, {}), std::invalid_argument);
}

TEST_CASE("the factors of plain rounds and of those with drafts are independent, so that their ratio spreads") {
  const auto base = std::make_shared<fakes::Cost>([](const cost::RoundPoint&) { return cost::RoundTime{0.010, 0, 0}; });
  base->factors = std::vector<double>(400, 1.0);
  const cost::RangeCost cost(base, [](const cost::RoundPoint&) { return cost::Range{1 / 1.2, 1.2}; });
  std::vector<double> plain(400), drafting(400);
  cost.totals_of_replicates({0, 8, 0}, plain);
  cost.totals_of_replicates({3, 8, 0}, drafting);
  double products = 0, squares = 0;
  for (std::size_t i = 0; i < plain.size(); ++i) {
    products += std::log(plain[i] / 0.010) * std::log(drafting[i] / 0.010);
    squares += std::pow(std::log(plain[i] / 0.010), 2);
  }
  CHECK(std::abs(products / squares) < 0.05);
  // Variance of a uniform logarithm.
  CHECK(squares / 400 == Approx(std::pow(2 * std::log(1.2), 2) / 12).epsilon(0.02));
}

TEST_CASE("a share of the replicates has the high end of the range") {
  const auto base = std::make_shared<fakes::Cost>([](const cost::RoundPoint&) { return cost::RoundTime{0.010, 0, 0}; });
  base->factors = std::vector<double>(400, 1.0);
  const auto range = [](const cost::RoundPoint&) { return cost::Range{1, 1.5}; };
  const cost::RangeCost cost(base, range, 0.5);
  std::vector<double> totals(400);
  cost.totals_of_replicates({0, 8, 0}, totals);
  CHECK(std::count(totals.begin(), totals.end(), 0.010 * 1.5) == Approx(200).margin(2));
  CHECK(*std::min_element(totals.begin(), totals.end()) == Approx(0.010).epsilon(0.01));
  CHECK_THROWS_AS(cost::RangeCost(base, range, 1.0), std::domain_error);
}
