#include "planner/load/capacity.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "planner/question_error.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using planner::Acceptance;
using planner::Capacity;
using planner::CapacityQuestion;
using planner::Cost;

namespace {

CapacityQuestion small_question() {
  CapacityQuestion question;
  question.workload.prompt_tokens.mean = 200;
  question.workload.output_tokens.mean = 50;
  question.workload.requests = 100;
  question.replications = 2;
  question.gamma = {{2}};
  return question;
}

}  // namespace

TEST_CASE("a head that nobody names is the one that was published for its target") {
  const Cost found = Cost::of_hardware("h100", "llama-3.3-70b", {.draft = {.kind = cost::DraftKind::eagle}});
  CHECK(found.draft.model == "eagle3-llama-3.3-70b");
  CHECK_THROWS_AS(Cost::of_hardware("h100", "qwen2.5-7b", {.draft = {.kind = cost::DraftKind::eagle}}),
                  planner::QuestionError);
  CHECK_THROWS_AS(Cost::of_hardware("h100", "llama-3.3-70b", {}), planner::QuestionError);
}

TEST_CASE("capacity on named hardware compares plain decoding with every gamma asked for") {
  const Cost cost = Cost::of_hardware("h100", "llama-3.1-8b", {.draft = {.model = "llama-3.2-1b"}});
  const Capacity answer = planner::capacity(Acceptance::of_rate(0.7), cost, small_question());
  REQUIRE(answer.scenarios().size() == 2);
  CHECK(answer.scenarios()[0].scenario.name == "plain");
  CHECK(planner::gamma_of(answer.scenarios()[1].scenario) == 2);
  CHECK(answer.scenarios()[0].requests_per_second_per_replica.value > 0);
}

TEST_CASE("a budget of verified drafts stands beside each gamma, and its gain beside the best of them") {
  const Cost cost = Cost::of_hardware("h100", "llama-3.1-8b", {.draft = {.model = "llama-3.2-1b"}});
  CapacityQuestion question = small_question();
  question.verification_budget = true;
  question.alpha_spread = 0.2;
  const Capacity answer = planner::capacity(Acceptance::of_rate(0.7), cost, question);
  REQUIRE(answer.scenarios().size() == 3);
  CHECK(answer.scenarios()[2].scenario.name == "gamma 2 budgeted");
  CHECK(answer.scenarios()[2].scenario.engine.verification_budget);
  CHECK_FALSE(sim::steady_at(answer.simulation, 2, {1}));
  CHECK_FALSE(answer.scenarios()[1].scenario.engine.verification_budget);
  const auto gain = answer.budget_gain();
  REQUIRE(gain);
  CHECK(gain->budget == 2);
  const auto rate = [&](std::size_t i) { return answer.scenarios()[i].requests_per_second_per_replica.value; };
  CHECK(rate(gain->fixed) == std::max(rate(0), rate(1)));
  CHECK(gain->relative == Approx(rate(2) / rate(gain->fixed) - 1));
  question.verification_budget = false;
  CHECK_FALSE(planner::capacity(Acceptance::of_rate(0.7), cost, question).budget_gain());
}

TEST_CASE("what capacity lacks is named by the member") {
  const auto refused = [](const std::optional<Acceptance>& acceptance, const Cost& cost, const CapacityQuestion& q) {
    try {
      planner::asked_capacity(acceptance, cost, q);
    } catch (const planner::QuestionError& error) {
      return error.parameter();
    }
    return std::string("nothing");
  };
  const Cost cost = Cost::of_hardware("h100", "llama-3.1-8b", {.drafts = false});
  CHECK(refused({}, cost, small_question()) == "gamma");
  CHECK(refused(Acceptance::of_rate(0.7), Cost::of_constants(0.1), small_question()) == "cost");
  CapacityQuestion large = small_question();
  large.activation_reserve_gb = 1000;
  CHECK(refused(Acceptance::of_rate(0.7), cost, large) == "activation_reserve_gb");
  CapacityQuestion budget = small_question();
  budget.verification_budget = true;
  CHECK(refused(Acceptance::of_rate(0.7),
                Cost::of_hardware("h100", "llama-3.1-8b", {.draft = {.kind = cost::DraftKind::ngram}}),
                budget) == "verification_budget");
}

TEST_CASE("a capacity's members have the ranges of the command line's options") {
  const Cost cost = Cost::of_hardware("h100", "llama-3.1-8b", {.draft = {.model = "llama-3.2-1b"}});
  CapacityQuestion narrow = small_question();
  narrow.alpha_spread = 1e-5;
  CHECK_THROWS_WITH(planner::asked_capacity(Acceptance::of_rate(0.7), cost, narrow),
                    "alpha_spread is 1e-05, but must be a number in [0.0001, 0.5]");
}

TEST_CASE("the worlds of a capacity hold the rates that typed lengths leave open at other gammas, as plans do") {
  const Cost cost = Cost::of_hardware("h100", "llama-3.1-8b", {.draft = {.model = "llama-3.2-1b"}});
  const Acceptance acceptance = Acceptance::of_lengths({{{7, 2.88, 0.005}}});
  CapacityQuestion question = small_question();
  question.gamma = {{3, 7}};
  const Capacity answer = planner::asked_capacity(acceptance, cost, question);
  const auto tokens = [](const std::vector<sim::RequestAcceptance>& laws, std::size_t gamma) {
    REQUIRE(laws.size() == 1);
    double sum = 1, survival = 1;
    for (std::size_t j = 0; j < gamma; ++j) sum += survival *= laws.front().conditional.at(j);
    return sum;
  };
  Acceptance of_draft = acceptance;
  of_draft.take_draft_of(cost);
  const estimate::Interval at_3 = of_draft.curve->tokens_per_step(3).ci95;
  REQUIRE(answer.worlds.size() == 200);
  int within = 0;
  for (const sim::CapacityWorld& world : answer.worlds) {
    CHECK(tokens(world.acceptance, 7) == Approx(2.88).epsilon(0.05));
    const double there = tokens(world.acceptance, 3);
    within += at_3.lo <= there && there <= at_3.hi ? 1 : 0;
  }
  // Of 200 draws of a 95% interval fewer than 176 lie within once in 10,000 times.
  CHECK(within >= 176);
  CHECK(within < 200);
}

TEST_CASE("a capacity that is interrupted before its first scenario is refused, and one behind it is partial") {
  const Cost cost = Cost::of_hardware("h100", "llama-3.1-8b", {.draft = {.model = "llama-3.2-1b"}});
  const auto answered = [&](std::size_t finished) {
    std::size_t done = 0;
    core::RunHooks hooks;
    hooks.progress = [&](double share) { done += share > 0 ? 1 : 0; };
    hooks.interrupt = [&] { return done >= finished; };
    return planner::capacity(Acceptance::of_rate(0.7), cost, small_question(), hooks);
  };
  CHECK_THROWS_WITH(answered(0), "interrupted before a scenario was simulated");
  const Capacity plain = answered(1);
  CHECK(plain.partial);
  CHECK(plain.certainty() == worlds::Certainty::open);
  CHECK(plain.scenarios().size() == 1);
  CHECK_FALSE(answered(1000).partial);
}
