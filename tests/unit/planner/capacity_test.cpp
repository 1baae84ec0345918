#include "planner/load/capacity.hpp"

#include <string>

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

TEST_CASE("capacity on named hardware compares plain decoding with every gamma asked for") {
  const Cost cost = Cost::of_hardware("h100", "llama-3.1-8b", {.draft = {.model = "llama-3.2-1b"}});
  const Capacity answer = planner::capacity(Acceptance::of_rate(0.7), cost, small_question());
  REQUIRE(answer.scenarios().size() == 2);
  CHECK(answer.scenarios()[0].scenario.name == "plain");
  CHECK(planner::gamma_of(answer.scenarios()[1].scenario) == 2);
  CHECK(answer.scenarios()[0].requests_per_second_per_replica.value > 0);
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
}
