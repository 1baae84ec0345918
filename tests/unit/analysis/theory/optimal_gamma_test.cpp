#include "analysis/theory/optimal_gamma.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "analysis/theory/tokens.hpp"
#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceProfile;
using core::AcceptanceRate;
using core::StepCost;
using core::VerificationCost;
using Points = std::vector<VerificationCost::Point>;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

}  // namespace

TEST_CASE("the optimal gamma and its speedup equal exact rational values") {
  const auto check = [](double alpha, double c, std::int64_t drafts, double speedup) {
    const OptimalGamma best = optimal_gamma(AcceptanceRate(alpha), c);
    INFO("alpha " << alpha << ", c " << c);
    CHECK(best.attained());
    CHECK(best.gamma == drafts);
    CHECK(best.speedup == Approx(speedup).epsilon(1e-14));
  };
  check(0.8, 0.05, 8, 1690981.0 / 546875);
  check(0.9, 0.1, 10, 3.43094701955);
  check(0.62, 0.015, 7, 2.3295212894534663);
  check(0.75, 0.02, 9, 24738175.0 / 7733248);
  check(0.2, 0.5, 0, 1);
}

TEST_CASE("alpha = c: no drafts tie with one, and the smaller gamma is returned") {
  const OptimalGamma best = optimal_gamma(AcceptanceRate(0.3), 0.3);
  CHECK(best.gamma == 0);
  CHECK(best.ties == GammaRange{0, 1});
}

TEST_CASE("exact ties in decimals are ties within 4 ulp in doubles, and the smaller gamma is returned") {
  const OptimalGamma fifth = optimal_gamma(AcceptanceRate(0.5), 0.2);  // S(1) = S(2) = 5/4
  CHECK(fifth.gamma == 1);
  CHECK(fifth.ties == GammaRange{1, 2});
  CHECK(fifth.speedup == Approx(1.25).epsilon(1e-15));
  const OptimalGamma other = optimal_gamma(AcceptanceRate(0.8), 64.0 / 177);  // S(2) = S(3) = 177/125
  CHECK(other.gamma == 2);
  CHECK(other.ties == GammaRange{2, 3});
  CHECK(other.speedup == Approx(1.416).epsilon(1e-15));
}

TEST_CASE("drafts that cost nothing have no optimal gamma: the speedup rises towards 1 / epsilon") {
  const OptimalGamma best = optimal_gamma(AcceptanceRate(0.8), 0.0);
  CHECK(best.kind == OptimumKind::unbounded);
  CHECK_FALSE(best.attained());
  CHECK(best.speedup == Approx(5).epsilon(1e-15));
  CHECK_FALSE(optimal_gamma_real(AcceptanceRate(0.8), 0).has_value());
}

TEST_CASE("drafts that cost nothing and are never accepted are not worth making") {
  CHECK(optimal_gamma(AcceptanceRate(0), 0.0).attained());
  CHECK(optimal_gamma(AcceptanceRate(0), 0.0).gamma == 0);
}

TEST_CASE("certain acceptance: unbounded below c = 1, no drafts from there on") {
  CHECK(optimal_gamma(AcceptanceRate(1), 0.25).kind == OptimumKind::unbounded);
  CHECK(optimal_gamma(AcceptanceRate(1), 0.25).speedup == 4);
  CHECK(std::isinf(optimal_gamma(AcceptanceRate(1), 0.0).speedup));
  CHECK(optimal_gamma(AcceptanceRate(1), 1.0).gamma == 0);
  CHECK(optimal_gamma(AcceptanceRate(1), 1.0).speedup == 1);
  CHECK(optimal_gamma(AcceptanceRate(1), 1.5).gamma == 0);
}

TEST_CASE("an optimum beyond 2^53 drafts is called too large") {
  const OptimalGamma best = optimal_gamma(AcceptanceRate::from_rejection(1e-300), 0.5);
  CHECK(best.kind == OptimumKind::too_large);
  CHECK(best.gamma == std::int64_t{1} << 53);
  CHECK(best.speedup == Approx(2).epsilon(1e-15));
}

TEST_CASE("free drafts under costly verification are refused when the limit does not pay") {
  const StepCost costly{.verification = VerificationCost::constant(6)};
  CHECK(optimal_gamma(AcceptanceRate(0.8), costly).gamma == 0);
  const StepCost bearable{.verification = VerificationCost::constant(4)};
  CHECK(optimal_gamma(AcceptanceRate(0.8), bearable).kind == OptimumKind::unbounded);
  CHECK(optimal_gamma(AcceptanceRate(0.8), bearable).speedup == Approx(1.25).epsilon(1e-15));
}

TEST_CASE("padded verification has several local maxima, and the greatest one is found") {
  const StepCost padded{.verification = VerificationCost::table(
                            Points{{2, 1.1}, {3, 1.3}, {4, 1.3}, {5, 1.7}, {8, 1.7}, {9, 2.5}, {16, 2.5}, {17, 4.1}})};
  CHECK(optimal_gamma(AcceptanceRate(0.3), padded).gamma == 1);
  CHECK(optimal_gamma(AcceptanceRate(0.8), padded).gamma == 7);
}

TEST_CASE("a profile whose acceptance ends has an optimum there, even with free drafts") {
  const auto profile = AcceptanceProfile::from_survival({0.9, 0.5, 0.0});
  CHECK(optimal_gamma(profile, 0.0).attained());
  CHECK(optimal_gamma(profile, 0.0).gamma == 2);
  CHECK(optimal_gamma(profile, 0.5).gamma == 1);
}

TEST_CASE("the real optimum is 0 where c >= 1, and may lie between 0 and 1 where alpha = c") {
  CHECK(optimal_gamma_real(AcceptanceRate(0.9), 1)->gamma == 0);
  CHECK(optimal_gamma_real(AcceptanceRate(0), 0.1)->gamma == 0);
  CHECK(optimal_gamma_real(AcceptanceRate(1), 1)->gamma == 0);
  CHECK_FALSE(optimal_gamma_real(AcceptanceRate(1), 0.5).has_value());
  const auto between = optimal_gamma_real(AcceptanceRate(0.3), 0.3);
  CHECK(between->gamma > 0);
  CHECK(between->gamma < 1);
  CHECK(between->speedup > 1);
}

TEST_CASE("a share of the limit is reached by the smallest gamma that does, also when it is met exactly") {
  CHECK(gamma_reaching_share(AcceptanceRate(0.8), 0.99) == 20);
  CHECK(gamma_reaching_share(AcceptanceRate(0.5), 0.5) == 0);
  CHECK(gamma_reaching_share(AcceptanceRate(0.5), 0.75) == 1);
  CHECK(gamma_reaching_share(AcceptanceRate(0.5), std::nextafter(0.75, 1.0)) == 2);
  CHECK(gamma_reaching_share(AcceptanceRate(0.5), 0) == 0);
  CHECK(gamma_reaching_share(AcceptanceRate(0), 0.999) == 0);
  CHECK_FALSE(gamma_reaching_share(AcceptanceRate(1), 0.5).has_value());
  CHECK_FALSE(gamma_reaching_share(AcceptanceRate::from_rejection(1e-300), 0.5).has_value());
}

TEST_CASE("tie costs equal exact rational values, and c_1 is alpha") {
  const std::vector<double> expected = {0.8,           0.551724137931, 0.361581920904, 0.237697307335, 0.159775315962,
                                        0.110211220234};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(tie_cost(AcceptanceRate(0.8), static_cast<std::int64_t>(i) + 1) == Approx(expected[i]).epsilon(1e-11));
  }
  CHECK(tie_cost(AcceptanceRate(0.8), 3) == Approx(64.0 / 177).epsilon(1e-15));
}

TEST_CASE("illegal costs and shares are refused by name") {
  CHECK_THROWS_AS(optimal_gamma(AcceptanceRate(0.5), nan), std::domain_error);
  CHECK_THROWS_AS(optimal_gamma(AcceptanceRate(0.5), -0.1), std::domain_error);
  CHECK_THROWS_WITH(optimal_gamma_real(AcceptanceRate(0.5), -0.1),
                    "optimal_gamma_real: c is -0.1, but must be in [0, 1.7976931348623157e+308]");
  CHECK_THROWS_WITH(gamma_reaching_share(AcceptanceRate(0.5), 1),
                    "gamma_reaching_share: share is 1, but must be in [0, 0.9999999999999999]");
  CHECK_THROWS_WITH(tie_cost(AcceptanceRate(0.5), 0), "tie_cost: gamma is 0, but must be in [1, 2^63)");
}

}  // namespace specdec::theory
