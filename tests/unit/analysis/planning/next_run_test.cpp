#include "analysis/planning/next_run.hpp"

#include <cmath>
#include <memory>

#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/fakes.hpp"

using namespace specdec;
using planning::NextRun;
using planning::NextRunQuestion;

namespace {

/// Rounds of gamma drafts whose replicates err by a factor.
std::shared_ptr<fakes::Cost> cost_with(double spread) {
  auto cost = std::make_shared<fakes::Cost>([](const cost::RoundPoint& at) {
    return cost::RoundTime{0.010 * (1 + 0.25 * static_cast<double>(at.gamma)), 0, 0};
  });
  for (int i = 0; i < 1000; ++i) cost->factors.push_back(std::exp(spread * std::sin(12.9898 * i) * 1.4));
  return cost;
}

NextRunQuestion question_of(double spread, estimate::Interval tokens = {1, 1}) {
  NextRunQuestion question;
  question.draft = {"draft",
                    std::make_shared<fakes::Curve>(
                        [=](std::int64_t gamma) { return fakes::constant_rate(0.45, gamma, tokens); }),
                    cost_with(spread)};
  question.plan.drafts = {question.draft};
  question.plan.max_gamma = 3;
  question.points = {{1, 0}};
  return question;
}

}  // namespace

TEST_CASE("no run is worth its time where nothing is uncertain") { CHECK_FALSE(planning::run_values(question_of(0)).next()); }

TEST_CASE("the next run measures what the choice hangs on, and lowers the regret by its value") {
  const planning::RunValues values = planning::run_values(question_of(0.3));
  const auto run = values.next();
  REQUIRE(run);
  CHECK(run->gamma > 0);
  CHECK(run->batch == 1);
  CHECK(values.regret > run->regret_after);
  // Replicates move all drafts alike, so that one run tells nearly all.
  CHECK(run->regret_after < 0.3 * values.regret);
  CHECK(run->minutes > planning::server_start_minutes);
}

TEST_CASE("a run of other traffic tells what rounds cost and not what is accepted") {
  NextRunQuestion question = question_of(0.02, {0.75, 1.35});
  const auto own = planning::run_values(question).next();
  question.tells_acceptance = false;
  const auto others = planning::run_values(question).next();
  REQUIRE(own);
  if (others) CHECK(others->regret_after > own->regret_after);
}

TEST_CASE("where no run was plain, the next one is") {
  NextRunQuestion question = question_of(0.3);
  question.lacks_plain_run = true;
  const auto run = planning::run_values(question).next();
  if (run) CHECK(run->gamma == 0);
}

TEST_CASE("a question without points or with an impossible error is refused") {
  NextRunQuestion question = question_of(0.3);
  question.points.clear();
  CHECK_THROWS_AS(planning::run_values(question), std::invalid_argument);
  question = question_of(0.3);
  question.run_error = 0;
  CHECK_THROWS_AS(planning::run_values(question), std::domain_error);
}
