#include "analysis/theory/known_acceptance.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "analysis/theory/streaming_replay.hpp"
#include "tests/support/catch.hpp"

namespace specdec::theory {
namespace {

using Gammas = std::vector<std::int64_t>;

/// The expected cost of drafting gammas[t] tokens in a step from t.
double cost_of_policy(const std::vector<double>& acceptance, const Gammas& gammas, const core::StepCost& cost) {
  std::vector<double> from(acceptance.size() + 1, 0.0);
  for (std::size_t t = acceptance.size(); t-- > 0;) {
    double reach = 1;
    from[t] = cost(gammas[t]);
    for (std::size_t k = 0; k < static_cast<std::size_t>(gammas[t]); ++k) {
      from[t] += reach * (1 - acceptance[t + k]) * from[t + k + 1];
      reach *= acceptance[t + k];
    }
    from[t] += reach * from[t + static_cast<std::size_t>(gammas[t]) + 1];
  }
  return from[0];
}

/// The least cost over all policies, tried one by one.
double cheapest_policy(const std::vector<double>& acceptance, std::int64_t max_gamma, const core::StepCost& cost) {
  const auto length = static_cast<std::int64_t>(acceptance.size());
  Gammas gammas(acceptance.size(), 0);
  double best = cost_of_policy(acceptance, gammas, cost);
  for (std::int64_t t = 0; t < length;) {
    const auto place = static_cast<std::size_t>(t);
    if (gammas[place] < std::min(max_gamma, length - t - 1)) {
      ++gammas[place];
      t = 0;
      best = std::min(best, cost_of_policy(acceptance, gammas, cost));
    } else {
      gammas[place] = 0;
      ++t;
    }
  }
  return best;
}

std::vector<double> random_text(std::size_t length, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> text(length);
  for (double& a : text) a = uniform(generator);
  return text;
}

const std::vector<double> example = {0.9, 0.3, 0.95, 0.8, 0.2, 0.7, 0.9, 0.5};

}  // namespace

TEST_CASE("the program over eight known acceptances equals its exact value") {
  // 851/200 by exact rational search over all policies with at most 4 drafts
  const KnownAcceptanceProgram program = known_acceptance_program(example, 4, {.c = 0.1});
  CHECK(program.cost == Approx(4.255).epsilon(1e-15));
  CHECK(program.gammas == Gammas{4, 3, 2, 1, 0, 2, 1, 0});
  CHECK(8 / program.cost == Approx(1.88014101058).epsilon(1e-11));
}

TEST_CASE("no policy is cheaper than the program") {
  const std::vector<core::VerificationCost::Point> points = {{2, 1.3}, {3, 1.3}, {4, 2.0}};
  for (const core::StepCost& cost :
       {core::StepCost{.c = 0.1},
        core::StepCost{.c = 0.3, .overhead = 0.1, .verification = core::VerificationCost::table(points)}}) {
    for (unsigned seed = 0; seed < 20; ++seed) {
      const std::vector<double> text = random_text(1 + seed % 7, seed);
      const KnownAcceptanceProgram program = known_acceptance_program(text, 3, cost);
      CHECK(program.cost == Approx(cheapest_policy(text, 3, cost)).epsilon(1e-13));
      CHECK(program.cost == Approx(cost_of_policy(text, program.gammas, cost)).epsilon(1e-13));
    }
  }
}

TEST_CASE("known acceptances outside their range are refused") {
  const std::vector<double> bad = {0.5, std::numeric_limits<double>::quiet_NaN()};
  CHECK_THROWS_WITH(known_acceptance_program(bad, 2, {}),
                    "known_acceptance_program: acceptance at position 1 is nan, but must be in [0, 1]");
  CHECK_THROWS_AS(known_acceptance_program(example, -1, {}), std::domain_error);
  CHECK(known_acceptance_program({}, 3, {}).cost == 0);
}

}  // namespace specdec::theory
