#include "analysis/core/exact_sum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

using specdec::core::ExactSum;

TEST_CASE("an exact sum is the same to the last bit whatever the order and the parts, where a plain sum is not") {
  std::mt19937_64 generator(1);
  std::vector<double> terms(20'000);
  for (double& term : terms) {
    term = std::ldexp(static_cast<double>(generator() >> 11U), -static_cast<int>(generator() % 90));
    if (generator() % 2 == 0) term = -term;
  }
  ExactSum whole;
  double plain = 0;
  for (const double term : terms) whole.add(term), plain += term;
  std::shuffle(terms.begin(), terms.end(), generator);
  std::vector<ExactSum> parts(7);
  double shuffled = 0;
  for (const double term : terms) parts[generator() % 7].add(term), shuffled += term;
  ExactSum sum;
  for (const ExactSum& part : parts) sum.add(part);
  CHECK(sum == whole);
  CHECK(sum.value() == whole.value());
  CHECK(plain != shuffled);
  CHECK(whole.value() == Approx(plain).epsilon(1e-9));
}

TEST_CASE("an exact sum loses nothing that lies above a step") {
  ExactSum sum;
  sum.add(0x1p61);
  sum.add(0x1p-60);
  sum.add(-0x1p61);
  CHECK(sum.value() == 0x1p-60);
  sum.add(0x1p-70);
  sum.add(-std::numeric_limits<double>::denorm_min());
  CHECK(sum.value() == 0x1p-60);
  ExactSum tenths;
  for (int i = 0; i < 1'000'000; ++i) tenths.add(0.1);
  CHECK(tenths.value() == 100'000.00000000000555);
}

TEST_CASE("an exact sum refuses what it cannot hold") {
  ExactSum sum;
  CHECK_THROWS_AS(sum.add(0x1p62), std::domain_error);
  CHECK_THROWS_AS(sum.add(std::numeric_limits<double>::quiet_NaN()), std::domain_error);
  CHECK_THROWS_AS(sum.add(-std::numeric_limits<double>::infinity()), std::domain_error);
  CHECK(sum.value() == 0);
}
