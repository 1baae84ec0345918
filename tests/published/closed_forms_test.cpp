#include <algorithm>
#include <array>

#include "analysis/theory/optimal_gamma.hpp"
#include "analysis/theory/oracle.hpp"
#include "tests/support/catch.hpp"

// Statements about the closed forms in the paper's text; its tables and figures are in reproduction_test.cpp.
namespace specdec::theory {
namespace {

using core::AcceptanceRate;

// The largest oracle improvement over the best whole gamma, for alpha and c on a grid of hundredths and thousandths.
double largest_improvement(int highest_alpha_percent, int highest_c_permille) {
  double largest = 0;
  for (int a = 1; a <= highest_alpha_percent; ++a) {
    for (int c = 1; c <= highest_c_permille; ++c) {
      largest = std::max(largest, oracle_improvement(AcceptanceRate(a / 100.0), c / 1000.0));
    }
  }
  return largest;
}

}  // namespace

TEST_CASE("Section 3.5, an oracle for gamma gains up to ~60%: that is the supremum, and typical values leave less") {
  CHECK(std::exp(1.0) / std::expm1(1.0) == Approx(1.58198).margin(5e-6));
  // 53.534% for alpha <= .9 by analysis over all c; the grid comes close from below
  CHECK(largest_improvement(90, 999) == Approx(1.53534).margin(5e-4));
  CHECK(largest_improvement(90, 999) <= 1.53535);
  CHECK(largest_improvement(90, 50) == Approx(1.47547).margin(5e-4));
}

TEST_CASE("Table 4, gamma: ten of the twelve are not the optimum at the printed alpha and c") {
  struct Row {
    double alpha;
    double c;
    std::int64_t printed;
    std::int64_t best;  // by exact rational arithmetic
  };
  constexpr std::array<Row, 12> rows = {{{0.75, 0.02, 7, 9},
                                         {0.8, 0.04, 7, 9},
                                         {0.82, 0.11, 7, 6},
                                         {0.62, 0.02, 7, 6},
                                         {0.68, 0.04, 5, 6},
                                         {0.71, 0.11, 3, 4},
                                         {0.65, 0.02, 5, 7},
                                         {0.73, 0.04, 5, 7},
                                         {0.74, 0.11, 3, 4},
                                         {0.53, 0.02, 5, 5},
                                         {0.55, 0.04, 3, 4},
                                         {0.56, 0.11, 3, 3}}};
  int different = 0;
  for (const Row& row : rows) {
    CHECK(optimal_gamma(AcceptanceRate(row.alpha), row.c).gamma == row.best);
    different += row.best != row.printed ? 1 : 0;
  }
  CHECK(different == 10);
}

}  // namespace specdec::theory
