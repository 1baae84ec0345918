#include "planner/plan.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "analysis/theory/optimal_gamma.hpp"
#include "planner/question_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"

using namespace specdec;
using planner::Acceptance;
using planner::Cost;
using planner::Plan;
using planner::Recommendation;

TEST_CASE("the plan of a rate and c is the optimum of the closed forms") {
  for (const double alpha : {0.3, 0.6, 0.8, 0.9, 0.99}) {
    for (const double c : {0.01, 0.05, 0.2}) {
      CAPTURE(alpha, c);
      const auto expected = theory::optimal_gamma(core::AcceptanceRate(alpha), c);
      const Plan answer = planner::plan(Acceptance::of_rate(alpha), Cost::of_constants(c));
      const Recommendation best = answer.recommendations().front();
      CHECK(best.gamma == expected.gamma);
      CHECK(best.speedup.value == Approx(expected.speedup).epsilon(1e-12));
    }
  }
}

TEST_CASE("drafts are told apart by what is uncertain of both, and by replicates of their costs in pairs") {
  const auto alike = [](const Acceptance& a, const Cost& of_a, const Acceptance& b, const Cost& of_b) {
    const Plan plan = planner::plan({{"a", a, of_a}, {"b", b, of_b}}, {.batch = {1}});
    const bool warned = std::any_of(plan.warnings.begin(), plan.warnings.end(),
                                    [](const Note& note) { return note.code == "drafts_not_told_apart"; });
    return warned;
  };
  const Cost c = Cost::of_constants(0.05);
  CHECK(
      alike(Acceptance::of_lengths({{{3, 2.90, 0.005}}}, 50), c, Acceptance::of_lengths({{{3, 2.88, 0.005}}}, 50), c));
  CHECK_FALSE(alike(Acceptance::of_rate(0.80), c, Acceptance::of_rate(0.79), c));
  CHECK_FALSE(alike(Acceptance::of_lengths({{{3, 2.9, 0.005}}}, 5000), c,
                    Acceptance::of_lengths({{{3, 2.0, 0.005}}}, 5000), c));
  // The device's losses are wide, but the same for both.
  const Cost device =
      Cost::of_hardware("h100-sxm", "llama-3.1-8b", {.draft = {.model = "llama-3.2-1b"}, .kernel_times = "none"});
  const Plan one = planner::plan(Acceptance::of_rate(0.8), device, {.batch = {1}});
  CHECK(one.recommendations().front().speedup.ci95->hi > 1.1 * one.recommendations().front().speedup.ci95->lo);
  CHECK_FALSE(alike(Acceptance::of_rate(0.80), device, Acceptance::of_rate(0.79), device));
}

TEST_CASE("points and closed forms answer alike, and c answers one batch") {
  const Acceptance acceptance = Acceptance::of_rate(0.75);
  const Cost cost = Cost::of_constants(0.08);
  const Plan closed = planner::plan(acceptance, cost);
  const Plan points = planner::plan(acceptance, cost, {.context = {0, 1000}});
  CHECK(closed.closed_form);
  CHECK_FALSE(points.closed_form);
  REQUIRE(points.recommendations().size() == 2);
  CHECK(points.recommendations()[1].gamma == closed.recommendations().front().gamma);
  CHECK(points.recommendations()[1].speedup.value ==
        Approx(closed.recommendations().front().speedup.value).epsilon(1e-12));
  CHECK(planner::plan(acceptance, cost, {.batch = {1, 64}}).recommendations().size() == 1);
}

TEST_CASE("of several drafts the fastest is taken") {
  const std::vector<planner::Draft> drafts = {{"slow", Acceptance::of_rate(0.8), Cost::of_constants(0.2)},
                                              {"fast", Acceptance::of_rate(0.8), Cost::of_constants(0.05)}};
  const Plan answer = planner::plan(drafts);
  CHECK(answer.shown_plan().name == "fast");
  CHECK_THROWS_AS(planner::plan({drafts[0], drafts[0]}), planner::QuestionError);
  CHECK_THROWS_AS(planner::plan(std::vector<planner::Draft>{}), planner::QuestionError);
}

TEST_CASE("answers are values") {
  const Plan answer = planner::plan(Acceptance::of_rate(0.8), Cost::of_constants(0.05), {.batch = {1, 8}});
  const Plan copy = answer;
  CHECK(copy.recommendations().front().gamma == answer.recommendations().front().gamma);
  CHECK(copy.assumptions == answer.assumptions);
}

TEST_CASE("what goes not together is refused by the member's name") {
  const Acceptance acceptance = Acceptance::of_rate(0.8);
  const Cost cost = Cost::of_constants(0.05);
  const auto refused = [&](const planner::PlanQuestion& question) {
    try {
      planner::plan(acceptance, cost, question);
    } catch (const planner::QuestionError& error) {
      return error.parameter();
    }
    return std::string("nothing");
  };
  CHECK(refused({.gamma = 5, .max_gamma = 4}) == "gamma");
  CHECK(refused({.context = {0, 8}, .tokens = 100}) == "tokens");
  CHECK(refused({.batch = {64}, .schedule = {{1, 8, 3}}}) == "schedule");
  CHECK(refused({.gamma = 5}) == "nothing");
}

TEST_CASE("a member outside its range is refused by its name, whoever plans") {
  const Acceptance acceptance = Acceptance::of_rate(0.8);
  const Cost cost = Cost::of_constants(0.1);
  const auto refused = [&](const planner::PlanQuestion& question) {
    try {
      planner::plan(acceptance, cost, question);
    } catch (const planner::QuestionError& error) {
      return error.parameter();
    }
    return std::string("none");
  };
  CHECK(refused({.batch = {1, 8}, .context = {0, 100}}) == "none");
  CHECK(refused({.batch = {8, 1}}) == "batch");
  CHECK(refused({.batch = {0}}) == "batch");
  CHECK(refused({.batch = {70000}}) == "batch");
  CHECK(refused({.context = {-1}}) == "context");
  CHECK(refused({.context = {std::nan("")}}) == "context");
  CHECK(refused({.schedule = {{2, 8, 3}}}) == "schedule");
  CHECK(refused({.schedule = {{1, 8, 3}, {10, 20, 1}}}) == "schedule");
  CHECK(refused({.max_gamma = 0}) == "max_gamma");
  CHECK(refused({.gamma = -1}) == "gamma");
  CHECK(refused({.min_gain = -0.1}) == "min_gain");
  CHECK(refused({.max_regret = 1.5}) == "max_regret");
}

TEST_CASE("runs of a server plan without another word") {
  const Plan answer = planner::plan_runs({{tests::source_dir() + "/traces/samples/bench/c1-plain.json",
                                           tests::source_dir() + "/traces/samples/bench/c8-plain.json",
                                           tests::source_dir() + "/traces/samples/bench/c1-k3.json",
                                           tests::source_dir() + "/traces/samples/bench/c8-k3.json",
                                           tests::source_dir() + "/traces/samples/bench/c1-k5.json"}});
  REQUIRE(answer.bench);
  CHECK(answer.recommendations().size() == 2);
  CHECK(answer.in_seconds);
}
