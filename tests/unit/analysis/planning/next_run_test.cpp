#include "analysis/planning/next_run.hpp"

#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/fakes.hpp"

using namespace specdec;
using planning::NextRunQuestion;

namespace {

/// E[max_i (a_i + b_i X + c_i Y)] by the trapezoidal rule.
double integrated(const std::vector<double>& a, const std::vector<double>& b, const std::vector<double>& c) {
  constexpr double step = 0.02, reach = 7;
  double sum = 0, weights = 0;
  for (double x = -reach; x <= reach; x += step) {
    for (double y = -reach; y <= reach; y += step) {
      const double weight = std::exp(-(x * x + y * y) / 2);
      double best = a[0] + b[0] * x + c[0] * y;
      for (std::size_t i = 1; i < a.size(); ++i) best = std::max(best, a[i] + b[i] * x + c[i] * y);
      sum += weight * best;
      weights += weight;
    }
  }
  return sum / weights;
}

const fakes::Cost cost([](const cost::RoundPoint& at) {
  return cost::RoundTime{0.010 * (1 + 0.6 * static_cast<double>(at.gamma)), 0, 0};
});

/// As many tokens as make a gamma of 1 as fast as plain decoding; more drafts are none.
const fakes::Curve even([](std::int64_t gamma) {
  estimate::TokensPerStep tokens;
  tokens.value = gamma == 0 ? 1 : 1.6;
  tokens.ci95 = tokens.readings = {tokens.value, tokens.value};
  return tokens;
});

NextRunQuestion question_of(const estimate::AcceptanceCurve& acceptance) {
  NextRunQuestion question;
  question.acceptance = &acceptance;
  question.cost = &cost;
  question.points = {{1, 0}, {8, 0}};
  question.max_gamma = 2;
  question.min_gain = 0;
  question.output_tokens = 100;
  return question;
}

}  // namespace

TEST_CASE("the expected maximum of lines in two normal variables is their integral") {
  const std::vector<double> a = {0, 0.02, -0.05}, b = {0, 0.1, -0.2}, c = {0, 0.05, 0.3}, zero = {0, 0, 0};
  CHECK(planning::expected_maximum(a, b, c) == Approx(integrated(a, b, c)).margin(2e-3 * 0.5));
  CHECK(planning::expected_maximum(a, b, zero) == Approx(integrated(a, b, zero)).margin(2e-3 * 0.2));
  CHECK(planning::expected_maximum(a, zero, zero) == 0.02);
  // max(0, s Z) has the mean s / sqrt(2 pi).
  CHECK(planning::expected_maximum(std::vector<double>{0, 0}, std::vector<double>{0, 1}, std::vector<double>{0, 0}) ==
        Approx(1 / std::sqrt(2 * std::acos(-1.0))).epsilon(0.003));
  CHECK_THROWS_AS(planning::expected_maximum({}, {}, {}), std::invalid_argument);
  CHECK_THROWS_AS(planning::expected_maximum(a, std::vector<double>{1}, c), std::invalid_argument);
}

TEST_CASE("the run to buy tells of what two choices hang on, for what it takes") {
  // Only rounds with one draft at batch 8 are uncertain, by 20%.
  NextRunQuestion question = question_of(even);
  question.covariance = [](const cost::RoundPoint& a, const cost::RoundPoint& b) {
    return a.gamma == 1 && b.gamma == 1 && a.batch == 8 && b.batch == 8 ? 0.04 : 0.0;
  };
  const auto run = planning::next_run(question);
  REQUIRE(run);
  CHECK(run->gamma == 1);
  CHECK(run->batch == 8);
  CHECK(run->candidates == 6);
  // Eight answers of 100 tokens one after the other at 10 ms a token, and the start.
  CHECK(run->minutes == Approx(planning::server_start_minutes + 8 * 100 * 0.010 / 60));
  // At one of two points max(0, .2 Z) is lost now; a run that errs by 2% leaves little of it.
  const double root = 0.04 / std::sqrt(0.04 + 0.02 * 0.02);
  CHECK(run->regret_now - run->regret_after == Approx(root / std::sqrt(2 * std::acos(-1.0)) / 2).epsilon(0.01));
  CHECK(run->regret_now == Approx(0.2 / std::sqrt(2 * std::acos(-1.0)) / 2).epsilon(0.15));
  // Plain rounds are known, so that among runs of those none is worth its minutes.
  question.lacks_plain_run = true;
  CHECK_FALSE(planning::next_run(question));
}

TEST_CASE("an acceptance is told by a run at its gamma, unless the traffic is another") {
  const fakes::Curve unsure([](std::int64_t gamma) {
    estimate::TokensPerStep tokens;
    tokens.value = gamma == 0 ? 1 : 1.6;
    tokens.readings = {tokens.value, tokens.value};
    const double factor = std::exp(gamma == 1 ? 0.2 : 0);
    tokens.ci95 = {tokens.value / factor, tokens.value * factor};
    return tokens;
  });
  NextRunQuestion question = question_of(unsure);
  question.covariance = [](const cost::RoundPoint&, const cost::RoundPoint&) { return 0.0; };
  const auto run = planning::next_run(question);
  REQUIRE(run);
  CHECK(run->gamma == 1);
  CHECK(run->batch == 1);
  question.tells_acceptance = false;
  CHECK_FALSE(planning::next_run(question));
}

TEST_CASE("no run is worth its minutes where it cannot change the choice") {
  NextRunQuestion question = question_of(even);
  // An error that all rounds share moves no choice.
  question.covariance = [](const cost::RoundPoint&, const cost::RoundPoint&) { return 0.04; };
  CHECK_FALSE(planning::next_run(question));
  question.points.clear();
  CHECK_THROWS_AS(planning::next_run(question), std::invalid_argument);
  question.points = {{1, 0}};
  question.run_error = 0;
  CHECK_THROWS_AS(planning::next_run(question), std::domain_error);
}
