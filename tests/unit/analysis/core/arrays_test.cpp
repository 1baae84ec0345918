#include "analysis/core/arrays.hpp"

#include <stdexcept>
#include <vector>

#include "analysis/core/compensated_sum.hpp"
#include "tests/support/catch.hpp"

namespace specdec::core {

TEST_CASE("a scalar function is evaluated over arrays of its parameters") {
  const std::vector<double> a = {1, 2, 3};
  const std::vector<int> b = {10, 20, 30};
  std::vector<double> out(3);
  evaluate(
      "sums", std::span(out), [](double x, int y) { return x + y; }, std::span(a), std::span(b));
  CHECK(out == std::vector<double>{11, 22, 33});
}

TEST_CASE("arrays of different lengths are refused") {
  const std::vector<double> a = {1, 2, 3};
  std::vector<double> out(2);
  const auto call = [&] {
    evaluate(
        "copies", std::span(out), [](double x) { return x; }, std::span(a));
  };
  CHECK_THROWS_AS(call(), std::invalid_argument);
  CHECK_THROWS_WITH(call(), "copies: parameter array has 3 entries, but output has 2");
}

TEST_CASE("a compensated sum keeps what a plain sum loses") {
  CompensatedSum sum;
  double plain = 0;
  for (const double term : {1.0, 1e100, 1.0, -1e100}) {
    sum.add(term);
    plain += term;
  }
  CHECK(sum.value() == 2);
  CHECK(plain == 0);
}

// 0.1 is 3602879701896397 / 2^55, so that a million of them are 3602879701896397e6 / 2^55, rounded once here.
TEST_CASE("a compensated sum of a million terms is the exact sum, rounded") {
  CompensatedSum sum;
  for (int i = 0; i < 1'000'000; ++i) sum.add(0.1);
  const long double exact = 3602879701896397.0L * 1e6L / 0x1p55L;
  CHECK(std::abs(static_cast<long double>(sum.value()) / exact - 1) <= 3e-16L);
}

}  // namespace specdec::core
