#include "analysis/core/standardisation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec::core;
using Row = std::vector<double>;

namespace {

Row standardised(Row row, const Standardisation& how) {
  standardise(row, how);
  return row;
}

Row softmax(Row logits) {
  double sum = 0;
  for (double& x : logits) sum += x = std::exp(x);
  for (double& x : logits) x /= sum;
  return logits;
}

double overlap(const Row& p, const Row& q) {
  double sum = 0;
  for (std::size_t x = 0; x < p.size(); ++x) sum += std::min(p[x], q[x]);
  return sum;
}

void check_close(const Row& actual, const Row& expected) {
  REQUIRE(actual.size() == expected.size());
  for (std::size_t x = 0; x < actual.size(); ++x) CHECK(actual[x] == Approx(expected[x]).epsilon(1e-14));
}

}  // namespace

// Expected: softmax(logits / T) and renormalised top-2 in 30 digits (mpmath).
TEST_CASE("temperature and top-k change the overlap of two models as computed from the logits") {
  const Row p = softmax({2, 1, 0, -1});
  const Row q = softmax({1.5, 1.4, 0.2, -2});
  const auto both = [&](const Standardisation& how) { return overlap(standardised(p, how), standardised(q, how)); };
  CHECK(overlap(p, q) == Approx(0.790693640118).epsilon(1e-11));
  CHECK(both({0.5}) == Approx(0.66138905647).epsilon(1e-11));
  CHECK(both({2}) == Approx(0.886836775322).epsilon(1e-11));
  CHECK(both({1, 2}) == Approx(0.793920608849).epsilon(1e-11));
  CHECK(overlap(standardised(p, {1, 2}), q) == Approx(0.721928888428).epsilon(1e-11));
}

TEST_CASE("the default leaves a row bit for bit, whatever its sum") {
  const Row row = {0.1, 0.2, 0.3, 1.0 / 3};
  CHECK(standardised(row, {}) == row);
}

TEST_CASE("temperature 0 puts everything on the most probable token, the lowest of ties") {
  CHECK(standardised({0.2, 0.4, 0.4}, {0}) == Row{0, 1, 0});
  CHECK(standardised({0.25, 0.25, 0.25, 0.25}, {0}) == Row{1, 0, 0, 0});
  CHECK(standardised({0.2, 0.4, 0.4}, {0, 2, 0.5}) == Row{0, 1, 0});
}

TEST_CASE("argmax is the lowest of ties") {
  CHECK(argmax(Row{0.1, 0.45, 0.45}) == 1);
  CHECK(argmax(Row{1}) == 0);
  // Whatever place the largest has among the lanes and behind the last full one.
  for (std::size_t size = 1; size <= 40; ++size) {
    for (std::size_t place = 0; place < size; ++place) {
      CAPTURE(size, place);
      Row row(size, 0.01);
      row[place] = 0.5;
      CHECK(argmax(row) == static_cast<std::int64_t>(place));
      row.back() = 0.5;
      CHECK(argmax(row) == static_cast<std::int64_t>(place));
    }
  }
  CHECK(argmax(Row(20, std::numeric_limits<double>::quiet_NaN())) == 0);
}

TEST_CASE("temperature keeps zeros and stays finite at its extremes") {
  // Powers of probabilities: sqrt(.64), sqrt(.36) normalised.
  check_close(standardised({0.64, 0, 0.36}, {2}), {0.8 / 1.4, 0, 0.6 / 1.4});
  CHECK(standardised({0.6, 0, 0.4}, {1e-300}) == Row{1, 0, 0});
  check_close(standardised({0.9, 0, 0.1}, {1e300}), {0.5, 0, 0.5});
  check_close(standardised({1e-300, 1, 1e-200}, {100}),
              {1e-3 / (1 + 1e-3 + 1e-2), 1 / (1 + 1e-3 + 1e-2), 1e-2 / (1 + 1e-3 + 1e-2)});
}

TEST_CASE("top-k keeps the k most probable tokens, the lowest of ties") {
  check_close(standardised({0.1, 0.4, 0.3, 0.2}, {1, 2}), {0, 4.0 / 7, 3.0 / 7, 0});
  check_close(standardised({0.25, 0.25, 0.25, 0.25}, {1, 3}), {1.0 / 3, 1.0 / 3, 1.0 / 3, 0});
  check_close(standardised({0.1, 0.4, 0.3, 0.2}, {1, 4}), {0.1, 0.4, 0.3, 0.2});
  check_close(standardised({0.1, 0.4, 0.3, 0.2}, {1, 100}), {0.1, 0.4, 0.3, 0.2});
}

TEST_CASE("top-p keeps the smallest set of most probable tokens that reaches p") {
  check_close(standardised({0.05, 0.5, 0.15, 0.3}, {1, 0, 0.49}), {0, 1, 0, 0});
  check_close(standardised({0.05, 0.5, 0.15, 0.3}, {1, 0, 0.51}), {0, 0.625, 0, 0.375});
  check_close(standardised({0.05, 0.5, 0.15, 0.3}, {1, 0, 0.81}), {0, 10.0 / 19, 3.0 / 19, 6.0 / 19});
  // Reaching p exactly is enough: 1/4 + 1/4 = 1/2, ties by index.
  check_close(standardised({0.25, 0.25, 0.25, 0.25}, {1, 0, 0.5}), {0.5, 0.5, 0, 0});
  check_close(standardised({0.7, 0.3}, {1, 0, 1e-300}), {1, 0});
}

TEST_CASE("top-p of a large row keeps what sorting all tokens keeps") {
  Row row(5000);
  for (std::size_t x = 0; x < row.size(); ++x)
    row[x] = x % 3 == 0 ? 0 : std::exp(-static_cast<double>(x * 7919 % 997) / 40);
  double total = 0;
  for (const double p : row) total += p;
  Row sorted = row;
  std::sort(sorted.rbegin(), sorted.rend());
  for (const double top_p : {1e-6, 0.3, 0.9, 0.999}) {
    double sum = 0;
    std::ptrdiff_t kept = 0;
    while (kept == 0 || sum < top_p * total) sum += sorted[static_cast<std::size_t>(kept++)];
    const Row left = standardised(row, {1, 0, top_p});
    CHECK(std::count_if(left.begin(), left.end(), [](double p) { return p > 0; }) == kept);
    const double least = sorted[static_cast<std::size_t>(kept) - 1];
    for (std::size_t x = 0; x < row.size(); ++x) {
      if (row[x] > least) CHECK(left[x] == Approx(row[x] / sum).epsilon(1e-12));
      if (row[x] < least) CHECK(left[x] == 0);
    }
  }
}

TEST_CASE("top-p counts what top-k left, and both come after the temperature") {
  // The first of (4, 3)/7 alone reaches 0.57; in the untouched row it would take two.
  check_close(standardised({0.4, 0.3, 0.2, 0.1}, {1, 2, 0.57}), {1, 0, 0, 0});
  check_close(standardised({0.4, 0.3, 0.2, 0.1}, {1, 0, 0.57}), {4.0 / 7, 3.0 / 7, 0, 0});
  // docs/theory.md#standardisation: .75 of the .9 that top-k 3 leaves takes two tokens, .75 of the whole row three.
  check_close(standardised({0.4, 0.3, 0.2, 0.1}, {1, 3, 0.75}), {4.0 / 7, 3.0 / 7, 0, 0});
  check_close(standardised({0.4, 0.3, 0.2, 0.1}, {1, 0, 0.75}), {4.0 / 9, 3.0 / 9, 2.0 / 9, 0});
  // T = 1/2 squares (4, 3, 2, 1) to (16, 9, 4, 1)/30: 25/30 reaches 0.8, at T = 1 it takes three tokens.
  check_close(standardised({0.4, 0.3, 0.2, 0.1}, {0.5, 0, 0.8}), {16.0 / 25, 9.0 / 25, 0, 0});
  check_close(standardised({0.4, 0.3, 0.2, 0.1}, {1, 0, 0.8}), {4.0 / 9, 3.0 / 9, 2.0 / 9, 0});
}

TEST_CASE("min-p keeps what has at least its share of the largest probability") {
  const Row row = {0.4, 0.3, 0.2, 0.1};
  check_close(standardised(row, {.min_p = 0.25}), {0.4, 0.3, 0.2, 0.1});
  check_close(standardised(row, {.min_p = 0.3}), {4.0 / 9, 3.0 / 9, 2.0 / 9, 0});
  check_close(standardised(row, {.min_p = 0.7}), {4.0 / 7, 3.0 / 7, 0, 0});
  check_close(standardised(row, {.min_p = 1}), {1, 0, 0, 0});
  // Behind top-k and top-p, which keep the first three, those at or above 0.6 of 0.4.
  check_close(standardised(row, {.top_k = 3, .top_p = 0.8, .min_p = 0.6}), {4.0 / 7, 3.0 / 7, 0, 0});
}

TEST_CASE("where cuts and heat meet, their order decides what is left") {
  // Heated by 2 the roots of (16, 9, 4, 1) are (4, 3, 2, 1); min-p of 0.2 cuts the last of the unheated row alone.
  const Row row = {16.0 / 30, 9.0 / 30, 4.0 / 30, 1.0 / 30};
  check_close(standardised(row, {.temperature = 2, .min_p = 0.2}), {0.4, 0.3, 0.2, 0.1});
  check_close(standardised(row, {.temperature = 2, .min_p = 0.2, .temperature_last = true}),
              {4.0 / 9, 3.0 / 9, 2.0 / 9, 0});
  // 25/30 reaches 0.8 before the heat, 7/10 does not after it.
  check_close(standardised(row, {.temperature = 2, .top_p = 0.8, .temperature_last = true}), {4.0 / 7, 3.0 / 7, 0, 0});
  check_close(standardised(row, {.temperature = 2, .top_p = 0.8}), {4.0 / 9, 3.0 / 9, 2.0 / 9, 0});
  check_close(standardised(row, {.temperature = 2, .top_k = 2, .temperature_last = true}), {4.0 / 7, 3.0 / 7, 0, 0});
  CHECK(standardised(row, {.temperature_last = true}) == row);
  check_close(standardised(row, {.temperature = 0, .top_k = 2, .temperature_last = true}), {1, 0, 0, 0});
}

TEST_CASE("a standardisation out of range is refused with the field's name") {
  const double nan = std::nan("");
  CHECK_THROWS_WITH(require_valid({-1}), "standardise: temperature is -1, but must be in [0, 1.7976931348623157e+308]");
  CHECK_THROWS_AS(require_valid({nan}), std::domain_error);
  CHECK_THROWS_AS(require_valid({std::numeric_limits<double>::infinity()}), std::domain_error);
  CHECK_THROWS_WITH(require_valid({1, -1}), Catch::Contains("top_k is -1"));
  CHECK_THROWS_WITH(require_valid({1, 0, 0}), Catch::Contains("top_p is 0"));
  CHECK_THROWS_WITH(require_valid({1, 0, 1.5}), Catch::Contains("top_p is 1.5"));
  CHECK_THROWS_AS(require_valid({1, 0, nan}), std::domain_error);
  CHECK_THROWS_WITH(require_valid({.min_p = 1.5}), Catch::Contains("min_p is 1.5"));
}
