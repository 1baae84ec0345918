#include "analysis/theory/tokens.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/operations.hpp"
#include "analysis/theory/walltime.hpp"
#include "tests/properties/random_cases.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exact_laws.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceProfile;
using core::AcceptanceRate;
using core::StepCost;

const std::vector<std::int64_t> gammas = {0, 1, 2, 3, 7, 20, 1000, 1000000, std::numeric_limits<std::int64_t>::max()};

std::vector<AcceptanceRate> rates() {
  std::vector<AcceptanceRate> all;
  for (const double alpha : {0.0, 5e-324, 1e-300, 1e-12, 0.1, 0.5, 0.8, 0.99}) all.emplace_back(alpha);
  for (const double epsilon : {1e-3, 1e-8, 1e-12, 1e-16, 1e-100, 5e-324, 0.0}) {
    all.push_back(AcceptanceRate::from_rejection(epsilon));
  }
  return all;
}

}  // namespace

TEST_CASE("expected tokens rise with alpha and with gamma, between 1 and gamma + 1") {
  const auto all = rates();
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t g = 0; g < gammas.size(); ++g) {
      const double tokens = expected_tokens(all[i], gammas[g]);
      INFO("alpha " << all[i].alpha() << ", epsilon " << all[i].rejection() << ", gamma " << gammas[g]);
      CHECK(tokens >= 1);
      CHECK(tokens <= static_cast<double>(gammas[g]) + 1);
      if (i > 0) CHECK(tokens >= expected_tokens(all[i - 1], gammas[g]));
      if (g > 0) CHECK(tokens >= expected_tokens(all[i], gammas[g - 1]));
    }
  }
}

TEST_CASE("expected tokens are concave in gamma and convex in alpha") {
  for (int a = 1; a < 100; ++a) {
    const auto at = [&](int percent, std::int64_t drafts) {
      return expected_tokens(AcceptanceRate(percent / 100.0), drafts);
    };
    for (std::int64_t drafts = 1; drafts < 40; ++drafts) {
      CHECK(2 * at(a, drafts) >= (at(a, drafts - 1) + at(a, drafts + 1)) * (1 - 1e-15));
      CHECK(2 * at(a, drafts) <= (at(a - 1, drafts) + at(a + 1, drafts)) * (1 + 1e-15));
    }
  }
}

TEST_CASE("expected tokens approach their limit") {
  for (const double epsilon : {0.9, 0.2, 1e-3, 1e-9}) {
    const auto rate = AcceptanceRate::from_rejection(epsilon);
    CHECK(expected_tokens(rate, static_cast<std::int64_t>(50 / epsilon)) ==
          Approx(expected_tokens_limit(rate)).epsilon(1e-13));
  }
}

TEST_CASE("nothing is NaN, negative or infinite for any legal rate and gamma") {
  for (const AcceptanceRate& rate : rates()) {
    for (const std::int64_t drafts : gammas) {
      INFO("alpha " << rate.alpha() << ", epsilon " << rate.rejection() << ", gamma " << drafts);
      for (const double value :
           {expected_tokens(rate, drafts), tokens_variance(rate, drafts), expected_tokens_derivative(rate, drafts),
            wasted_fraction(rate, drafts), memory_access_factor(rate, drafts), rate.power(drafts),
            rate.one_minus_power(drafts)}) {
        CHECK(std::isfinite(value));
        CHECK(value >= 0);
      }
      for (const double c : {0.0, 5e-324, 0.3, 1.0, std::numeric_limits<double>::max()}) {
        const double speedup = walltime_improvement(rate, drafts, c);
        CHECK(std::isfinite(speedup));
        CHECK(speedup >= 0);
        CHECK(operations_factor(rate, drafts, c) >= 1);
      }
    }
  }
}

TEST_CASE("the distribution of the tokens sums to 1 and has the mean and variance given for it") {
  for (const AcceptanceRate& rate : rates()) {
    for (const std::size_t drafts : {std::size_t{0}, std::size_t{1}, std::size_t{5}, std::size_t{200}}) {
      const auto n = static_cast<std::int64_t>(drafts);
      const std::vector<double> law = test_support::tokens_law(rate, n);
      const double mean = expected_tokens(rate, n);
      double mass = 0;
      double first = 0;
      double second = 0;
      for (std::size_t k = 1; k <= law.size(); ++k) {
        mass += law[k - 1];
        first += law[k - 1] * static_cast<double>(k);
        second += law[k - 1] * std::pow(static_cast<double>(k) - mean, 2);
      }
      INFO("alpha " << rate.alpha() << ", gamma " << drafts);
      CHECK(mass == Approx(1).epsilon(1e-13));
      CHECK(first == Approx(mean).epsilon(1e-13));
      CHECK(second == Approx(tokens_variance(rate, n)).epsilon(1e-9).margin(1e-20));
    }
  }
}

TEST_CASE("a profile of equal conditional rates is the rate itself") {
  for (const double epsilon : {0.7, 0.2, 1e-6}) {
    const auto rate = AcceptanceRate::from_rejection(epsilon);
    const auto profile = AcceptanceProfile::from_conditional({rate, rate, rate});
    for (const std::int64_t drafts : {0, 1, 2, 3, 4, 50}) {
      CHECK(expected_tokens(profile, drafts) == Approx(expected_tokens(rate, drafts)).epsilon(1e-13));
      CHECK(wasted_fraction(profile, drafts) == Approx(wasted_fraction(rate, drafts)).epsilon(1e-12));
    }
    CHECK(expected_tokens_limit(profile) == Approx(expected_tokens_limit(rate)).epsilon(1e-13));
  }
}

TEST_CASE("operations rise with gamma") {
  for (const double alpha : {0.0, 0.3, 0.8, 0.99}) {
    for (std::int64_t drafts = 1; drafts < 50; ++drafts) {
      CHECK(operations_factor(AcceptanceRate(alpha), drafts, 0.01) >
            operations_factor(AcceptanceRate(alpha), drafts - 1, 0.01));
    }
  }
}

TEST_CASE("inverting an expected length gives the rate back") {
  for (const std::int64_t drafts : {1, 2, 3, 8, 100, 1000000}) {
    for (const double alpha : {1e-3, 0.1, 0.49, 0.51, 0.8, 0.99, 0.9999999}) {
      const double length = expected_tokens(AcceptanceRate(alpha), drafts);
      const AcceptanceRate found = alpha_from_acceptance_length(length, drafts);
      INFO("gamma " << drafts << ", alpha " << alpha);
      CHECK(expected_tokens(found, drafts) == Approx(length).epsilon(1e-13));
      const double sharpness = expected_tokens_derivative(AcceptanceRate(alpha), drafts) / length;
      CHECK(found.alpha() == Approx(alpha).epsilon(1e-15 + 1e-15 / (alpha * sharpness)));
    }
  }
}

TEST_CASE("if some gamma gains, every smaller one does, and gamma = 1 by (1 + alpha) / (1 + c)") {
  test_support::RandomCases cases(38);
  for (int i = 0; i < 300; ++i) {
    const AcceptanceRate rate(cases.uniform());
    const double c = cases.uniform();
    double before = 1;
    bool gained_before = true;
    for (std::int64_t drafts = 1; drafts < 60; ++drafts) {
      const double speedup = walltime_improvement(rate, drafts, c);
      if (speedup > 1 + 1e-14) CHECK(gained_before);
      gained_before = speedup > 1;
      before = std::max(before, speedup);
    }
    if (some_gamma_helps(rate, c)) CHECK(before >= guaranteed_improvement(rate, c));
    CHECK(some_gamma_helps(rate, c) == (before > 1));
  }
}

}  // namespace specdec::theory
