#include "analysis/worlds/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "tests/support/catch.hpp"

namespace {

using namespace specdec::worlds;

double cost_of(const std::vector<BatchRegrets>& batches, const std::vector<std::size_t>& taken,
               const SchedulePrices& prices) {
  double weights = 0, sum = 0;
  for (const BatchRegrets& one : batches) weights += one.weight;
  for (std::size_t i = 0; i < taken.size(); ++i) {
    sum += batches[i].weight / weights * batches[i].regrets[taken[i]];
    if (i == 0 || taken[i] == taken[i - 1]) continue;
    sum += prices.per_stretch + (taken[i] > taken[i - 1] ? prices.per_rise : 0);
  }
  return sum;
}

TEST_CASE("a schedule is the cheapest of all, by trying them all") {
  std::mt19937_64 engine(3);
  std::uniform_real_distribution<double> uniform;
  for (int repeat = 0; repeat < 50; ++repeat) {
    std::vector<BatchRegrets> batches;
    for (std::int64_t batch = 1; batch <= 5; ++batch) {
      batches.push_back({batch, 0.2 + uniform(engine), {}});
      for (int option = 0; option < 3; ++option) batches.back().regrets.push_back(0.05 * uniform(engine));
    }
    std::vector<std::size_t> taken(5), best;
    double least = std::numeric_limits<double>::infinity();
    const std::function<void(std::size_t)> choose = [&](std::size_t at) {
      if (at == taken.size()) {
        const double cost = cost_of(batches, taken, {});
        if (cost < least) {
          least = cost;
          best = taken;
        }
        return;
      }
      for (taken[at] = 0; taken[at] < 3; ++taken[at]) choose(at + 1);
    };
    choose(0);
    std::vector<std::size_t> found;
    for (const Stretch& stretch : schedule(batches))
      for (std::int64_t batch = stretch.from; batch <= stretch.to; ++batch) found.push_back(stretch.option);
    CHECK(cost_of(batches, found, {}) == Approx(least).epsilon(1e-12));
  }
}

TEST_CASE("a schedule does not rise with the batch for less than a rise costs") {
  const std::vector<BatchRegrets> batches = {{1, 1, {0.2, 0.001, 0.0}}, {2, 1, {0.2, 0.0, 0.004}},
                                             {3, 1, {0.2, 0.004, 0.0}}, {4, 1, {0.0, 0.3, 0.3}}};
  const std::vector<Stretch> stretches = schedule(batches);
  REQUIRE(stretches.size() == 2);
  CHECK(stretches[0].to == 3);
  CHECK(stretches[1].option == 0u);
}

TEST_CASE("a batch between two that are priced belongs to the nearer by their logarithms") {
  const std::vector<BatchRegrets> batches = {{1, 1, {0.3, 0.0}}, {16, 1, {0.0, 0.3}}};
  const std::vector<Stretch> stretches = schedule(batches);
  REQUIRE(stretches.size() == 2);
  CHECK(stretches[0].from == 1);
  CHECK(stretches[0].to == 4);
  CHECK(stretches[1].from == 5);
  CHECK(stretches[1].to == 16);
}

TEST_CASE("an engine with one option for all batches gets that of least weighted regret") {
  constexpr SchedulePrices one_option = {.several = std::numeric_limits<double>::infinity()};
  const auto option = [&](double weight) {
    const std::vector<Stretch> stretches = schedule({{1, 1, {0.3, 0.1}}, {2, weight, {0.0, 0.1}}}, one_option);
    REQUIRE(stretches.size() == 1);
    return stretches.front().option;
  };
  CHECK(option(1) == 1u);
  CHECK(option(4) == 0u);
}

TEST_CASE("several stretches are taken where they save more than they cost the engine") {
  const std::vector<BatchRegrets> batches = {{1, 1, {0.5, 0.0, 0.2}}, {2, 1, {0.5, 0.2, 0.0}}};
  const auto stretches = [&](const SchedulePrices& prices) { return schedule(batches, prices).size(); };
  CHECK(stretches({.several = 0.05}) == 2);
  CHECK(stretches({.several = 0.14}) == 1);
  CHECK(stretches({.per_rise = std::numeric_limits<double>::infinity()}) == 1);
  CHECK(stretches({.per_pause = std::numeric_limits<double>::infinity()}) == 2);
  // Not to draft at the second batch would be best, and pauses are not possible.
  const std::vector<BatchRegrets> apart = {{1, 1, {0.5, 0.0}}, {2, 1, {0.0, 0.1}}};
  CHECK(schedule(apart).size() == 2);
  CHECK(schedule(apart, {.per_pause = std::numeric_limits<double>::infinity()}).size() == 1);
}

TEST_CASE("a schedule refuses batches that do not rise, and one that lacks an option") {
  CHECK_THROWS_AS(schedule({{1, 1, {0.0, 0.1}}, {2, 1, {0.0}}}), std::invalid_argument);
  CHECK_THROWS_AS(schedule({}), std::invalid_argument);
  CHECK_THROWS_AS(schedule({{2, 1, {0.0}}, {2, 1, {0.0}}}), std::invalid_argument);
}

}  // namespace
