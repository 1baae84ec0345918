#include "analysis/planning/gamma_comparison.hpp"

#include <cmath>

#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/fakes.hpp"

using namespace specdec;

TEST_CASE("gammas are compared by seconds per token with the fastest of them, whatever plain decoding takes") {
  // Rounds of 10, 11, 12, ... ms, and 1.6, 2.2, 2.4 tokens: 6.88, 5.45 and 5.42 ms a token.
  const fakes::Cost cost([](const cost::RoundPoint& at) {
    if (at.gamma == 0) throw std::logic_error("plain decoding was asked for");
    return cost::RoundTime{0.010 + 0.001 * static_cast<double>(at.gamma), 0, 0};
  });
  const fakes::Curve curve([](std::int64_t gamma) {
    estimate::TokensPerStep tokens;
    tokens.value = gamma == 1 ? 1.6 : gamma == 2 ? 2.2 : 2.4;
    tokens.readings = tokens.ci95 = {tokens.value, tokens.value};
    return tokens;
  });
  const auto rows = planning::compare_gammas(curve, cost, {8, 100}, 1, 3);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].seconds_per_output_token == Approx(0.011 / 1.6));
  CHECK(rows[0].slower.value == Approx(0.011 / 1.6 / (0.013 / 2.4)));
  CHECK(rows[1].slower.value == Approx(0.012 / 2.2 / (0.013 / 2.4)));
  CHECK_FALSE(rows[1].fastest);
  CHECK(rows[2].fastest);
  CHECK(rows[2].slower.value == 1);
  CHECK_FALSE(rows[2].slower.ci95);
  CHECK(rows[1].slower.ci95->lo == Approx(rows[1].slower.value));
  CHECK(rows[2].batch == 8);
  CHECK(rows[2].context == 100);
  CHECK(planning::compare_gammas(curve, cost, {8, 100}, 3, 2).empty());
}

TEST_CASE(
    "the interval between two gammas adds the errors of both acceptances, and what the cost's replicates share "
    "cancels") {
  fakes::Cost cost([](const cost::RoundPoint& at) {
    return cost::RoundTime{0.010 + 0.001 * static_cast<double>(at.gamma), 0, 0};
  });
  cost.factors = {0.5, 1, 2};  // the same for all drafts
  const fakes::Curve curve([](std::int64_t gamma) {
    estimate::TokensPerStep tokens;
    tokens.value = gamma == 1 ? 1.6 : 2.2;
    tokens.readings = {tokens.value, tokens.value};
    tokens.ci95 = {tokens.value * std::exp(-0.03), tokens.value * std::exp(0.04)};
    return tokens;
  });
  const auto rows = planning::compare_gammas(curve, cost, {8, 0}, 1, 2);
  const auto& slower = rows[0].slower;
  REQUIRE(slower.ci95);
  CHECK(std::log(slower.value / slower.ci95->lo) == Approx(std::hypot(0.04, 0.03)));
  CHECK(std::log(slower.ci95->hi / slower.value) == Approx(std::hypot(0.03, 0.04)));
  // Two runs of 2% each.
  const auto of_runs = planning::compare_gammas(curve, cost, {8, 0}, 1, 2, 0.02)[0].slower;
  CHECK(std::log(of_runs.ci95->hi / of_runs.value) == Approx(std::hypot(0.03, 0.04, 1.959964 * 0.02 * std::sqrt(2))));
}
