#include "analysis/planning/published.hpp"

#include <algorithm>
#include <cmath>

#include "tests/support/catch.hpp"

// The paper: Leviathan, Kalman, Matias: Fast Inference from Transformers via Speculative Decoding, ICML 2023.
// Expected values: exact rational arithmetic of the paper's formulas at its printed inputs, six to seven digits.
using namespace specdec::planning;

namespace {

/// Rounds half up to the digits that the paper prints.
bool rounds_to(double computed, double printed, double unit) {
  return std::floor(computed / unit + 0.5) == std::floor(printed / unit + 0.5);
}

}  // namespace

TEST_CASE("Table 1: all twelve figures agree at the printed inputs") {
  const double operations[] = {1.530612, 1.579155, 1.229508, 1.626334, 1.107011, 1.603056};
  const double speeds[] = {1.96, 2.533, 2.44, 3.68928, 2.71, 6.861894};
  const auto rows = table_1();
  REQUIRE(rows.size() == 6);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO("Table 1, row " << i + 1);
    CHECK(rows[i].operations.computed == Approx(operations[i]).margin(5e-7));
    CHECK(rows[i].speed.computed == Approx(speeds[i]).margin(5e-7));
    CHECK(rows[i].operations.agreement == Agreement::at_printed_inputs);
    CHECK(rows[i].speed.agreement == Agreement::at_printed_inputs);
    CHECK(rounds_to(rows[i].operations.computed, rows[i].operations.printed, 0.01));
    CHECK(rounds_to(rows[i].speed.computed, rows[i].speed.printed, 0.01));
  }
}

TEST_CASE("Table 4, EXP: nine figures agree at the printed inputs, three within their rounding") {
  const double expected[] = {3.157499, 3.250890, 2.497131, 2.258001, 2.346699, 1.933843,
                             2.401509, 2.619339, 2.024680, 1.891365, 1.802567, 1.540764};
  const std::int64_t best[] = {9, 9, 6, 6, 6, 4, 7, 7, 4, 5, 4, 3};
  const auto rows = table_4();
  REQUIRE(rows.size() == 12);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO("Table 4, row " << i + 1);
    CHECK(rows[i].speedup.computed == Approx(expected[i]).margin(5e-7));
    CHECK(rows[i].best_gamma == best[i]);
    const bool needs_rounding = i == 4 || i == 5 || i == 11;
    CHECK(rows[i].speedup.agreement ==
          (needs_rounding ? Agreement::within_input_rounding : Agreement::at_printed_inputs));
    CHECK(rounds_to(rows[i].speedup.computed, rows[i].speedup.printed, 0.1) == !needs_rounding);
  }
}

TEST_CASE("Table 4, EXP: the extremes over the rounding of the inputs lie at its corners") {
  const auto rows = table_4();
  const double lowest[] = {2.2742, 1.8977, 1.5123};
  const double highest[] = {2.4227, 1.9709, 1.5700};
  const std::size_t indices[] = {4, 5, 11};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(rows[indices[i]].speedup.lowest == Approx(lowest[i]).margin(5e-5));
    CHECK(rows[indices[i]].speedup.highest == Approx(highest[i]).margin(5e-5));
  }
}

TEST_CASE("Section 3.6: the bigram's 1.25X is 1.248 at gamma 3 and 1.25 in the limit") {
  const BigramFigure figure = bigram_figure();
  CHECK(figure.speedup.computed == Approx(1.248).epsilon(1e-13));
  CHECK(figure.speedup.agreement == Agreement::at_printed_inputs);
  CHECK(figure.limit == Approx(1.25).epsilon(1e-13));
}

TEST_CASE("A.5, stochastic lenience: three of four figures follow from no gamma") {
  const double best[] = {2.329521, 2.939230, 3.446161, 4.788559};
  const std::int64_t gamma[] = {7, 9, 10, 15};
  const auto rows = stochastic_lenience();
  REQUIRE(rows.size() == 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    INFO("A.5, lenience " << rows[i].lenience);
    CHECK_FALSE(rows[i].printed_gamma);
    CHECK(rows[i].gamma == gamma[i]);
    CHECK(rows[i].speedup.computed == Approx(best[i]).margin(5e-7));
    CHECK(rows[i].speedup.agreement == (i < 3 ? Agreement::cannot_follow : Agreement::at_printed_inputs));
  }
}

TEST_CASE("A.5, stochastic lenience: some c from 0.0075 to 0.0090 gives all four figures, the printed one gives one") {
  const auto speedup = [](double alpha, std::int64_t gamma, double c) {
    const auto g = static_cast<double>(gamma);
    return (1 - std::pow(alpha, g + 1)) / ((1 - alpha) * (1 + c * g));
  };
  const auto best = [&](double alpha, double c) {
    double most = 1;
    for (std::int64_t gamma = 1; gamma <= 200; ++gamma) most = std::max(most, speedup(alpha, gamma, c));
    return most;
  };
  const double alphas[] = {0.62, 0.71, 0.76, 0.84};
  const Printed figures[] = {{2.5, 0.05}, {3.1, 0.05}, {3.6, 0.05}, {5.0, 0.5}};
  // The number of the four that follow at c from alphas within `rounding` of the printed ones.
  const auto given = [&](double c, double rounding) {
    int agreeing = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const Comparison comparison =
          compare(figures[i], best(alphas[i], c), best(alphas[i] - rounding, c), best(alphas[i] + rounding, c));
      agreeing += comparison.agrees() ? 1 : 0;
    }
    return agreeing;
  };
  for (const double c : {0.0075, 0.0080, 0.0085, 0.0090}) CHECK(given(c, 0.005) == 4);
  for (const double c : {0.0070, 0.0074, 0.0091, 0.0100, 0.0145, 0.0150, 0.0155}) CHECK(given(c, 0.005) < 4);
  for (double c = 0.0005; c < 0.03; c += 0.0001) CHECK(given(c, 0) < 4);
  CHECK(given(0.015, 0.005) == 1);
  for (std::int64_t gamma = 1; gamma <= 200; ++gamma) {
    const double figure = speedup(0.84, gamma, 0.015);
    CHECK((4.5 <= figure && figure <= 5.5) == (9 <= gamma && gamma <= 24));
    // The formula rises with alpha and falls with c.
    const bool in_range = speedup(0.835, gamma, 0.0155) <= 5.5 && speedup(0.845, gamma, 0.0145) >= 4.5;
    CHECK(in_range == (8 <= gamma && gamma <= 29));
  }
  const auto some_gamma_gives = [&](std::size_t i, double c) {
    for (std::int64_t gamma = 1; gamma <= 200; ++gamma) {
      if (std::abs(speedup(alphas[i], gamma, c) - figures[i].value) <= figures[i].half_unit) return true;
    }
    return false;
  };
  const auto all_at_gammas_of_their_own = [&](double c) {
    return some_gamma_gives(0, c) && some_gamma_gives(1, c) && some_gamma_gives(2, c) && some_gamma_gives(3, c);
  };
  for (const double c : {0.0, 0.002, 0.005, 0.0074}) CHECK(all_at_gammas_of_their_own(c));
  for (const double c : {0.0076, 0.01, 0.015}) CHECK_FALSE(all_at_gammas_of_their_own(c));
}

TEST_CASE("A.5, argmax lenience: all four figures agree at the printed inputs") {
  const double expected[] = {3.303269, 3.303269, 3.865099, 4.906977};
  const auto rows = argmax_lenience();
  REQUIRE(rows.size() == 4);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(rows[i].printed_gamma == 8);
    CHECK(rows[i].speedup.computed == Approx(expected[i]).margin(5e-7));
    CHECK(rows[i].speedup.agreement == Agreement::at_printed_inputs);
  }
}

TEST_CASE("a comparison agrees up to half a unit of the last printed digit and not beyond") {
  CHECK(compare({2.5, 0.05}, 2.55, 2.55, 2.55).agreement == Agreement::at_printed_inputs);
  CHECK(compare({2.5, 0.05}, 2.56, 2.54, 2.58).agreement == Agreement::within_input_rounding);
  CHECK(compare({2.5, 0.05}, 2.57, 2.56, 2.58).agreement == Agreement::cannot_follow);
  CHECK(compare({2.5, 0.05}, 2.40, 2.30, 2.44).agreement == Agreement::cannot_follow);
  CHECK_THROWS_AS(compare({2.5, 0.05}, 2.5, 2.6, 2.7), std::domain_error);
}
