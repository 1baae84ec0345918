#include "analysis/planning/batch_curves.hpp"

#include <cmath>
#include <memory>
#include <stdexcept>

#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/fakes.hpp"

using namespace specdec;

namespace {

/// At 70% acceptance, with rounds of 1 + gamma batch / 16 seconds: gamma pays below a batch that is known exactly.
planning::DeploymentPlan plan_over_batches(std::vector<double> batches) {
  planning::DeploymentQuestion question;
  const auto acceptance = std::make_shared<fakes::Curve>([](std::int64_t gamma) {
    return fakes::constant_rate(0.7, gamma, {0.9, 1.1});
  });
  const auto cost = std::make_shared<fakes::Cost>([](const cost::RoundPoint& at) {
    return cost::RoundTime{1 + static_cast<double>(at.gamma) * at.batch / 16, 0, 0};
  });
  question.drafts = {{"draft", acceptance, cost}};
  question.batches = std::move(batches);
  question.contexts = {0, 10};
  question.max_gamma = 4;
  return planning::plan_deployment(question);
}

}  // namespace

TEST_CASE(
    "a gamma over batches has the speedup and the tokens per second of its rounds, and ends where it stops paying") {
  std::vector<double> batches;
  for (double batch = 1; batch < 40; batch *= 1.02) batches.push_back(batch);
  const planning::DeploymentPlan plan = plan_over_batches(batches);
  const auto& points = plan.drafts.front().points;
  for (const std::int64_t gamma : {1, 3}) {
    const planning::BatchCurve curve = planning::gamma_over_batches(points, 10, gamma, true);
    REQUIRE(curve.batch == batches);
    double tokens = 0;
    for (std::int64_t n = 0; n <= gamma; ++n) tokens += std::pow(0.7, static_cast<double>(n));
    for (std::size_t i = 0; i < batches.size(); i += 40) {
      const double round = 1 + static_cast<double>(gamma) * batches[i] / 16;
      // Medians and quantiles of 1,000 worlds.
      CHECK(curve.speedup[i] == Approx(tokens / round).epsilon(0.01));
      CHECK(curve.output_tokens_per_second[i] == Approx(batches[i] * tokens / round).epsilon(0.01));
      CHECK(curve.speedup_low[i] == Approx(0.9 * tokens / round).epsilon(0.02));
      CHECK(curve.gamma[i] == gamma);
    }
    const double exact = 16 * (tokens - 1) / static_cast<double>(gamma);
    CHECK(planning::last_gain(curve, 1).value() == Approx(exact).epsilon(5e-3));
  }
  const planning::BatchCurve best = planning::best_over_batches(points, 0, false);
  CHECK(best.output_tokens_per_second.empty());
  CHECK(best.gamma.front() == 4);
  CHECK(best.gamma.back() == 0);
  CHECK(planning::last_gain(best, 1.5).value() < planning::last_gain(best, 1.2).value());
  CHECK_FALSE(planning::last_gain(best, 1));
  CHECK_FALSE(planning::last_gain(best, 9));
  CHECK(planning::gamma_over_batches(points, 5, 1, true).batch.empty());
  CHECK_THROWS_AS(planning::last_gain(best, 0), std::domain_error);
}
