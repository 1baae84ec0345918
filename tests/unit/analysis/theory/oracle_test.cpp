#include "analysis/theory/oracle.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>

#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceRate;

}  // namespace

TEST_CASE("the oracle's speedup equals exact rational values") {
  CHECK(oracle_speedup(AcceptanceRate(0.8), 0.05) == Approx(25.0 / 6).epsilon(1e-15));
  CHECK(oracle_speedup(AcceptanceRate(0.9), 0.1) == Approx(100.0 / 19).epsilon(1e-15));
  CHECK(oracle_speedup(AcceptanceRate(0.62), 0.02) == Approx(2500.0 / 981).epsilon(1e-15));
  CHECK(oracle_tokens(AcceptanceRate(0.75)) == 4);
}

TEST_CASE("what the oracle leaves over the best fixed gamma equals many-digit values") {
  CHECK(oracle_improvement(AcceptanceRate(0.8), 0.05) == Approx(1.347528939).epsilon(1e-9));
  CHECK(oracle_improvement(AcceptanceRate(0.9), 0.1) == Approx(1.534024823).epsilon(1e-9));
  CHECK(oracle_improvement(AcceptanceRate(0.62), 0.02) == Approx(1.124197445).epsilon(1e-9));
}

TEST_CASE("free drafts leave the oracle 1 / (1 - alpha^(gamma+1)) over a fixed gamma, and nothing over the supremum") {
  CHECK(oracle_improvement(AcceptanceRate(0.5), 1, 0) == Approx(4.0 / 3).epsilon(1e-15));
  CHECK(oracle_improvement(AcceptanceRate(0.5), 0.0) == 1);
  CHECK(oracle_improvement(AcceptanceRate(1), 0.5) == 1);
}

TEST_CASE("an optimum too large to name leaves the oracle almost nothing") {
  CHECK(oracle_improvement(AcceptanceRate::from_rejection(1e-300), 0.5) == Approx(1).epsilon(1e-13));
}

TEST_CASE("certain acceptance and free drafts have no bound") {
  CHECK(std::isinf(oracle_tokens(AcceptanceRate(1))));
  CHECK(std::isinf(oracle_speedup(AcceptanceRate(1), 0)));
}

TEST_CASE("illegal costs and gammas of the oracle are refused by name") {
  CHECK_THROWS_AS(oracle_speedup(AcceptanceRate(0.5), -1), std::domain_error);
  CHECK_THROWS_WITH(oracle_speedup(AcceptanceRate(0.5), -1),
                    "oracle_speedup: c is -1, but must be in [0, 1.7976931348623157e+308]");
  CHECK_THROWS_WITH(oracle_improvement(AcceptanceRate(0.5), -1, 0.5),
                    "oracle_improvement: gamma is -1, but must be in [0, 2^63)");
  CHECK_THROWS_AS(oracle_improvement(AcceptanceRate(0.5), std::numeric_limits<double>::quiet_NaN()), std::domain_error);
}

}  // namespace specdec::theory
