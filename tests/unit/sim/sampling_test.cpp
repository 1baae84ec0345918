#include "sim/sampling.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec::sim;
using Row = std::vector<double>;

constexpr double largest_uniform = 1 - 0x1p-53;

namespace {

Token residual(const Row& p, const Row& q, double u) {
  return sample_residual(specdec::core::TargetDistribution(p), specdec::core::DraftDistribution(q), u);
}

}  // namespace

TEST_CASE("a uniform falls into the token whose stretch of the cumulative sum contains it") {
  const Row row = {0.25, 0.25, 0.5};
  CHECK(sample(row, 0) == 0);
  CHECK(sample(row, std::nextafter(0.25, 0)) == 0);
  CHECK(sample(row, 0.25) == 1);
  CHECK(sample(row, std::nextafter(0.5, 0)) == 1);
  CHECK(sample(row, 0.5) == 2);
  CHECK(sample(row, largest_uniform) == 2);
}

TEST_CASE("a token of probability 0 is never sampled, not even at the ends") {
  const Row row = {0, 0.5, 0, 0.5, 0};
  CHECK(sample(row, 0) == 1);
  CHECK(sample(row, 0.5) == 3);
  CHECK(sample(row, largest_uniform) == 3);
}

TEST_CASE("in rows of any length a uniform finds the token at which the cumulative sum exceeds it") {
  // Sums of multiples of 2^-30 are exact in any order. Every fifth token has weight, and none of the last 70.
  for (const std::size_t size : {75U, 128U, 193U, 1000U, 4096U}) {
    Row row(size);
    double total = 0;
    for (std::size_t x = 3; x + 70 < size; x += 5) total += row[x] = static_cast<double>(1 + x * 7919 % 1000) * 0x1p-30;
    double before = 0;
    for (std::size_t x = 0; x < size; ++x) {
      if (row[x] == 0) continue;
      CHECK(sample(row, (before + row[x] / 2) / total) == static_cast<Token>(x));
      before += row[x];
    }
    CHECK(sample(row, 0) == 3);
    const Token last = sample(row, largest_uniform);
    CHECK(row[static_cast<std::size_t>(last)] > 0);
    CHECK(std::count(row.begin() + last + 1, row.end(), 0.0) == static_cast<std::ptrdiff_t>(size) - last - 1);
  }
}

TEST_CASE("a sum slightly off 1 is divided out") {
  // Ten times 0.1 adds up to 1 - 2^-53 in double.
  const Row below(10, 0.1);
  CHECK(sample(below, largest_uniform) == 9);
  // Thirds of 0.9: the first stretch ends at u = 1/3, not at u = 0.3.
  const Row low = {0.3, 0.3, 0.3};
  CHECK(sample(low, 0.32) == 0);
  CHECK(sample(low, 0.34) == 1);
  const Row high = {0.6, 0.6};
  CHECK(sample(high, 0.49) == 0);
  CHECK(sample(high, 0.51) == 1);
}

TEST_CASE("a row without mass is refused") {
  CHECK_THROWS_AS(sample(Row{0, 0}, 0.5), std::domain_error);
  CHECK_THROWS_AS(sample(Row{}, 0.5), std::domain_error);
  CHECK_THROWS_AS(sample(Row{0.5, std::nan("")}, 0.5), std::domain_error);
  CHECK_THROWS_AS(sample(Row{0.5, std::numeric_limits<double>::infinity()}, 0.5), std::domain_error);
}

TEST_CASE("a draft is kept when u q < p") {
  // p/q = 0.4: kept below, rejected from there on.
  CHECK(accepts(0.2, 0.5, 0.39));
  CHECK_FALSE(accepts(0.2, 0.5, 0.41));
}

TEST_CASE("a draft that the target cannot produce is rejected for every uniform") {
  for (const double u : {0.0, 0.5, largest_uniform}) {
    CHECK_FALSE(accepts(0, 0.5, u));
    CHECK_FALSE(accepts(0, 0, u));
  }
}

TEST_CASE("a draft that the target likes at least as much is kept for every uniform") {
  for (const double q : {1.0, 0.7, 1.0 / 3, 1e-300, 0.0})
    for (const double u : {0.0, 0.5, largest_uniform}) CHECK(accepts(q > 0 ? q : 0.1, q, u));
}

TEST_CASE("a correction comes from what the target has more of than the draft") {
  // By hand: p - q = (0.3, 0, -0.3), residual (1, 0, 0).
  for (const double u : {0.0, 0.5, largest_uniform}) CHECK(residual(Row{0.5, 0.3, 0.2}, Row{0.2, 0.3, 0.5}, u) == 0);
  // max(0, p - q) = (0.25, 0, 0.125) : 2/3 and 1/3.
  const Row p = {0.5, 0.125, 0.375};
  const Row q = {0.25, 0.5, 0.25};
  CHECK(residual(p, q, 0.66) == 0);
  CHECK(residual(p, q, 0.67) == 2);
}

TEST_CASE("disjoint supports leave the whole target as residual") {
  CHECK(residual(Row{0, 0.5, 0.5}, Row{1, 0, 0}, 0.49) == 1);
  CHECK(residual(Row{0, 0.5, 0.5}, Row{1, 0, 0}, 0.51) == 2);
}

TEST_CASE("where target and draft agree to rounding, the correction comes from the target") {
  const Row p = {0.25, 0.75};
  CHECK(residual(p, p, 0.2) == 0);
  CHECK(residual(p, p, 0.3) == 1);
  // One ulp between the rows is rounding, not residual: without the rule token 0 would be certain.
  CHECK(residual(p, Row{std::nextafter(0.25, 0), 0.75}, 0.3) == 1);
}

TEST_CASE("rows of different length are refused") {
  CHECK_THROWS_AS(residual(Row{1}, Row{0.5, 0.5}, 0.5), std::invalid_argument);
}
