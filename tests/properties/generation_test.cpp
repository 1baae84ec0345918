#include <cmath>
#include <vector>

#include "analysis/theory/finite_generation.hpp"
#include "analysis/theory/replay.hpp"
#include "analysis/theory/streaming_replay.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"
#include "tests/properties/random_cases.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exact_laws.hpp"

namespace specdec::theory {
namespace {

using core::AcceptanceRate;
using test_support::RandomCases;

std::vector<double> random_text(RandomCases& cases, std::size_t length) {
  std::vector<double> acceptance(length);
  for (double& accept : acceptance) {
    const double u = cases.uniform();
    accept = u < 0.3 ? 1 : u < 0.4 ? 0 : cases.uniform();
  }
  return acceptance;
}

}  // namespace

TEST_CASE("the steps of a long generation follow the renewal theorem") {
  // R ~ N / mu + (E[K^2] - mu) / (2 mu^2), Var ~ N Var(K) / mu^3 with mu = E[K]
  for (const double alpha : {0.3, 0.8, 0.95}) {
    for (const std::int64_t drafts : {1, 3, 8}) {
      const AcceptanceRate rate(alpha);
      const double mu = expected_tokens(rate, drafts);
      const double variance = tokens_variance(rate, drafts);
      const std::int64_t tokens = 2000;
      const auto result = finite_generation(rate, drafts, tokens);
      INFO("alpha " << alpha << ", gamma " << drafts);
      CHECK(result.expected_steps ==
            Approx(static_cast<double>(tokens) / mu + (variance + mu * mu - mu) / (2 * mu * mu)).epsilon(1e-12));
      CHECK(result.steps_variance == Approx(static_cast<double>(tokens) * variance / (mu * mu * mu)).epsilon(5e-3));
    }
  }
}

TEST_CASE("the speedup of a finite generation tends to the walltime improvement and is capped by its tokens") {
  for (const double alpha : {0.5, 0.8, 0.95}) {
    for (const double c : {0.0, 0.05, 0.2}) {
      const AcceptanceRate rate(alpha);
      const double limit = walltime_improvement(rate, 5, c);
      CHECK(finite_generation(rate, 5, 20000, {.c = c}).speedup == Approx(limit).epsilon(1e-3));
      for (std::int64_t tokens = 1; tokens <= 40; ++tokens) {
        const auto result = finite_generation(rate, 5, tokens, {.c = c});
        CHECK(result.speedup <= static_cast<double>(tokens));
        CHECK(result.expected_steps >= static_cast<double>(tokens) / 6);
        CHECK(result.expected_steps <= static_cast<double>(tokens));
      }
    }
  }
}

TEST_CASE("a text of equal acceptances is a finite generation") {
  for (const double alpha : {0.0, 0.3, 0.8, 1.0}) {
    for (const std::int64_t drafts : {0, 1, 4, 100}) {
      const std::vector<double> acceptance(50, alpha);
      const auto replayed = replay_steps(acceptance, drafts);
      const auto generated = finite_generation(AcceptanceRate(alpha), drafts, 50);
      CHECK(replayed.expected == Approx(generated.expected_steps).epsilon(1e-13));
      CHECK(replayed.variance == Approx(generated.steps_variance).epsilon(1e-12).margin(1e-15));
    }
  }
}

TEST_CASE("replay counted from the front, from the back and by its whole law agrees") {
  RandomCases cases(2023);
  for (int i = 0; i < 200; ++i) {
    const auto acceptance = random_text(cases, static_cast<std::size_t>(1 + cases.below(40)));
    const std::int64_t drafts = cases.below(10);
    const auto steps = replay_steps(acceptance, drafts);
    const auto law = test_support::steps_law(acceptance, drafts);
    double mass = 0;
    double mean = 0;
    double variance = 0;
    for (std::size_t n = 0; n < law.size(); ++n) {
      mass += law[n];
      mean += law[n] * static_cast<double>(n);
      variance += law[n] * std::pow(static_cast<double>(n) - steps.expected, 2);
    }
    INFO("case " << i);
    CHECK(mass == Approx(1).epsilon(1e-13));
    CHECK(mean == Approx(steps.expected).epsilon(1e-13));
    StreamingReplay forward({.max_gamma = drafts});
    forward.add(acceptance);
    CHECK(forward.finish_sequence().steps(drafts) == Approx(steps.expected).epsilon(1e-13));
    CHECK(variance == Approx(steps.variance).epsilon(1e-11).margin(1e-14));
  }
}

TEST_CASE("with gamma beyond the text, every rejection before its last token costs one step, however they cluster") {
  RandomCases cases(2024);
  for (int i = 0; i < 100; ++i) {
    const auto acceptance = random_text(cases, 30);
    double steps = 1;
    for (std::size_t t = 0; t + 1 < acceptance.size(); ++t) steps += 1 - acceptance[t];
    CHECK(replay_steps(acceptance, 30).expected == Approx(steps).epsilon(1e-13));
    CHECK(replay_steps(acceptance, std::int64_t{1} << 60).expected == Approx(steps).epsilon(1e-13));
  }
}

TEST_CASE("more drafts never take more steps, and higher acceptance takes no more") {
  RandomCases cases(2025);
  for (int i = 0; i < 100; ++i) {
    auto acceptance = random_text(cases, 25);
    double before = 26;
    for (std::int64_t drafts = 0; drafts < 12; ++drafts) {
      const double steps = replay_steps(acceptance, drafts).expected;
      CHECK(steps <= before * (1 + 1e-14));
      before = steps;
    }
    const double low = replay_steps(acceptance, 4).expected;
    for (double& accept : acceptance) accept += (1 - accept) / 2;
    CHECK(replay_steps(acceptance, 4).expected <= low * (1 + 1e-14));
  }
}

}  // namespace specdec::theory
