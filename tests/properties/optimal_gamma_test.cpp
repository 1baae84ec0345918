#include "analysis/theory/optimal_gamma.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "analysis/theory/oracle.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"
#include "tests/properties/random_cases.hpp"
#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceProfile;
using core::AcceptanceRate;
using core::StepCost;
using core::VerificationCost;
using test_support::RandomCases;

// A gamma by looking at all of them up to a limit, with expected tokens summed term by term.
struct Scan {
  std::vector<long double> speedups;
  std::int64_t best = 0;

  Scan(const AcceptanceProfile& acceptance, const StepCost& cost, std::int64_t limit) {
    long double tokens = 0;
    long double survival = 1;
    for (std::int64_t drafts = 0; drafts <= limit; ++drafts) {
      survival = drafts <= acceptance.measured_positions()
                     ? acceptance.survival(drafts)
                     : survival * static_cast<long double>(acceptance.tail().alpha());
      tokens += survival;
      speedups.push_back(tokens / cost.extended(drafts));
      if (speedups.back() > speedups[static_cast<std::size_t>(best)]) best = drafts;
    }
  }
  long double at(std::int64_t drafts) const { return speedups[static_cast<std::size_t>(drafts)]; }
  bool ties(std::int64_t a, std::int64_t b) const {
    return std::abs(at(a) - at(b)) <= 4 * static_cast<long double>(std::numeric_limits<double>::epsilon()) * at(best);
  }
};

VerificationCost random_table(RandomCases& cases) {
  std::vector<VerificationCost::Point> points;
  std::int64_t tokens = 1 + cases.below(2);
  double factor = 1;
  for (int i = 0; i < 6; ++i) {
    points.push_back({tokens, factor});
    tokens += 1 + cases.below(6);
    factor *= 0.7 + 0.9 * cases.uniform();
  }
  return VerificationCost::table(points);
}

AcceptanceProfile random_profile(RandomCases& cases) {
  std::vector<AcceptanceRate> conditional;
  for (std::int64_t i = 0; i <= cases.below(6); ++i) conditional.emplace_back(cases.uniform());
  return AcceptanceProfile::from_conditional(conditional);
}

}  // namespace

TEST_CASE("the optimal gamma of 9900 pairs of alpha and c is that of a full scan, to the last tie") {
  int checked = 0;
  for (int a = 1; a < 100; ++a) {
    for (int c = 1; c <= 100; ++c) {
      const AcceptanceRate rate(a / 100.0);
      const StepCost cost{.c = c / 100.0};
      const Scan scan(rate, cost, 400);  // beyond, 1 / epsilon / (1 + c gamma) is below what is found
      const OptimalGamma found = optimal_gamma(rate, cost);
      ++checked;
      if (found.attained() && (found.gamma == scan.best || scan.ties(found.gamma, scan.best))) continue;
      FAIL("alpha " << a << "%, c " << c << "%: found " << found.gamma << ", scanned " << scan.best);
    }
  }
  CHECK(checked == 9900);
}

TEST_CASE("the optimal gamma is one of the two integers beside the real optimum") {
  for (int a = 1; a < 100; ++a) {
    for (int c = 1; c <= 100; ++c) {
      const AcceptanceRate rate(a / 100.0);
      const auto real = optimal_gamma_real(rate, c / 100.0);
      const auto found = optimal_gamma(rate, c / 100.0);
      const auto below = static_cast<std::int64_t>(real->gamma);
      if (found.ties.first <= below + 1 && below <= found.ties.last) continue;
      FAIL("alpha " << a << "%, c " << c << "%: " << found.gamma << " beside " << real->gamma);
    }
  }
  SUCCEED();
}

TEST_CASE("the real optimum is no slower than the integer one, and flat") {
  for (const double alpha : {0.3, 0.62, 0.8, 0.9, 0.99}) {
    for (const double c : {0.001, 0.015, 0.05, 0.2}) {
      const AcceptanceRate rate(alpha);
      const auto real = optimal_gamma_real(rate, c);
      const auto speedup = [&](double drafts) {
        return (1 - std::pow(alpha, drafts + 1)) / ((1 - alpha) * (1 + c * drafts));
      };
      CHECK(real->speedup >= optimal_gamma(rate, c).speedup * (1 - 1e-15));
      CHECK(real->speedup == Approx(speedup(real->gamma)).epsilon(1e-13));
      CHECK(speedup(real->gamma + 1e-3) < real->speedup);
      CHECK(speedup(real->gamma - 1e-3) < real->speedup);
    }
  }
}

TEST_CASE("the optimum of random costs and profiles is that of a full scan") {
  RandomCases cases(351);
  for (int i = 0; i < 500; ++i) {
    const AcceptanceProfile profile = random_profile(cases);
    const StepCost cost{
        .c = 0.01 + cases.uniform() / 4, .overhead = cases.uniform() / 4, .verification = random_table(cases)};
    const Scan scan(profile, cost, 600);
    const OptimalGamma found = optimal_gamma(profile, cost);
    INFO("case " << i << ": found " << found.gamma << ", scanned " << scan.best);
    REQUIRE(found.attained());
    CHECK((found.gamma == scan.best || scan.ties(found.gamma, scan.best)));
    CHECK(found.speedup == Approx(static_cast<double>(scan.at(scan.best))).epsilon(1e-14));
  }
}

TEST_CASE("the optimal gamma does not fall with alpha nor rise with c") {
  for (int a = 1; a < 99; ++a) {
    for (int c = 1; c < 100; ++c) {
      const auto at = [](int alpha, int cost) {
        return optimal_gamma(AcceptanceRate(alpha / 100.0), cost / 100.0).ties;
      };
      if (at(a, c).first <= at(a + 1, c).last && at(a, c + 1).first <= at(a, c).last) continue;
      FAIL("alpha " << a << "%, c " << c << "%");
    }
  }
  SUCCEED();
}

TEST_CASE("at a tie cost both neighbours are tied and optimal, and just beside it one of them alone") {
  for (const double alpha : {0.2, 0.5, 0.8, 0.95}) {
    for (std::int64_t drafts = 1; drafts <= 12; ++drafts) {
      const AcceptanceRate rate(alpha);
      const double c = tie_cost(rate, drafts);
      INFO("alpha " << alpha << ", gamma " << drafts);
      CHECK(optimal_gamma(rate, c).ties == GammaRange{drafts - 1, drafts});
      CHECK(optimal_gamma(rate, c * (1 - 1e-6)).gamma == drafts);
      CHECK(optimal_gamma(rate, c * (1 + 1e-6)).gamma == drafts - 1);
    }
  }
}

TEST_CASE("a constant factor and an overhead move the optimum as a cheaper draft would") {
  // v + overhead + c gamma is (v + overhead)(1 + c' gamma)
  for (const double alpha : {0.5, 0.8, 0.95}) {
    for (const double c : {0.02, 0.1}) {
      const StepCost cost{.c = c, .overhead = 0.25, .verification = VerificationCost::constant(1.25)};
      const auto general = optimal_gamma(AcceptanceRate(alpha), cost);
      const auto scaled = optimal_gamma(AcceptanceRate(alpha), c / 1.5);
      if (scaled.speedup / 1.5 <= 1) {
        CHECK(general.gamma == 0);
      } else {
        CHECK(general.gamma == scaled.gamma);
        CHECK(general.speedup == Approx(scaled.speedup / 1.5).epsilon(1e-14));
      }
    }
  }
}

TEST_CASE("break-even separates rates that gain from rates that do not, for random costs") {
  RandomCases cases(353);
  for (int i = 0; i < 200; ++i) {
    const StepCost cost{.c = cases.uniform() / 4, .overhead = cases.uniform() / 4, .verification = random_table(cases)};
    const auto rate = break_even_alpha(cost);
    if (!rate) continue;
    INFO("case " << i << ", break-even " << rate->alpha());
    if (rate->alpha() < 0.999) CHECK(optimal_gamma(AcceptanceRate(rate->alpha() + 1e-3), cost).gamma > 0);
    if (rate->alpha() > 1e-3) CHECK(optimal_gamma(AcceptanceRate(rate->alpha() - 1e-3), cost).gamma == 0);
  }
}

TEST_CASE("the oracle is never slower than the best fixed gamma, and never gains more than e / (e - 1)") {
  const double limit = std::exp(1.0) / std::expm1(1.0);
  for (int a = 1; a < 100; ++a) {
    for (int c = 1; c <= 100; ++c) {
      const double gain = oracle_improvement(AcceptanceRate(a / 100.0), c / 100.0);
      if (1 <= gain * (1 + 1e-15) && gain < limit) continue;
      FAIL("alpha " << a << "%, c " << c << "%: " << gain);
    }
  }
  SUCCEED();
}

TEST_CASE("the largest oracle improvement is attained where the best gamma is alpha / (1 - alpha)") {
  for (const std::int64_t drafts : {1, 3, 4, 9, 99}) {
    const AcceptanceRate rate = AcceptanceRate::from_rejection(1.0 / static_cast<double>(drafts + 1));
    const auto log_reciprocal = static_cast<double>(-rate.log_alpha());
    const double tail = rate.power(drafts + 1);
    // the cost at which the speedup is stationary there
    const double c = log_reciprocal * tail / (1 - tail - static_cast<double>(drafts) * log_reciprocal * tail);
    INFO("gamma " << drafts << ", c " << c);
    CHECK(optimal_gamma_real(rate, c)->gamma == Approx(static_cast<double>(drafts)).epsilon(1e-10));
    const double largest = 1 / (1 - tail);
    CHECK(oracle_improvement(rate, drafts, c) == Approx(largest).epsilon(1e-12));
    for (double other = 1e-6; other < 1; other *= 1.5) {
      CHECK(oracle_speedup(rate, other) / optimal_gamma_real(rate, other)->speedup <= largest * (1 + 1e-13));
    }
  }
}

TEST_CASE("an extreme rate or cost never leaves the search without an answer") {
  for (const double epsilon : {0.0, 5e-324, 1e-300, 1e-100, 1e-20, 1e-17, 1e-12, 0.5, 1 - 1e-16, 1.0}) {
    for (const double c :
         {0.0, 5e-324, 1e-300, 1e-17, 0.5, 1 - 1e-16, 1.0, 1e300, std::numeric_limits<double>::max()}) {
      const auto rate = AcceptanceRate::from_rejection(epsilon);
      const OptimalGamma found = optimal_gamma(rate, c);
      INFO("epsilon " << epsilon << ", c " << c);
      CHECK(found.speedup >= 1);
      CHECK(found.gamma >= 0);
      if (found.attained()) CHECK(found.gamma <= std::int64_t{1} << 53);
      if (const auto real = optimal_gamma_real(rate, c)) {
        CHECK(real->gamma >= 0);  // infinite where it exceeds the range of double
        CHECK(real->speedup >= 1);
      }
    }
  }
}

}  // namespace specdec::theory
