#include "render/figures/load_charts.hpp"

#include <string>

#include "planner/load/capacity.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using Catch::Matchers::Contains;

namespace {

planner::CapacityQuestion service() {
  planner::CapacityQuestion question;
  question.workload.prompt_tokens = {2000, 0.5};
  question.workload.output_tokens = {500, 0.5};
  question.workload.requests = 300;
  question.replications = 2;
  question.gamma = {{3}};
  question.price = 3;
  question.tpot_ms = 30;
  question.arrival_rate = 5;
  return question;
}

}  // namespace

TEST_CASE("figures over loads show plain decoding in the layout that it is compared in, by its name") {
  planner::CapacityQuestion question = service();
  question.gpus = 8;
  const planner::Cost cost =
      planner::Cost::of_hardware("h200-sxm", "llama-3.3-70b", {.draft = {.model = "eagle3-llama-3.3-70b"}});
  const planner::Capacity capacity = planner::capacity(planner::Acceptance::of_rate(0.65), cost, question);
  REQUIRE(capacity.plain_elsewhere);
  const std::int64_t of_plain = capacity.of_plain().simulation.gpus_per_replica;
  REQUIRE(of_plain != capacity.simulation.gpus_per_replica);
  const auto scenarios = render::scenarios_over_loads(capacity, 3);
  REQUIRE(scenarios.size() == 2);
  const render::ScenarioOverLoads &plain = scenarios[0], &drafts = scenarios[1];
  const std::string name = "plain decoding, tp " + std::to_string(of_plain);
  CHECK(plain.name == name);
  CHECK(drafts.name == "γ = 3, tp " + std::to_string(capacity.simulation.gpus_per_replica));
  CHECK(plain.points.size() == 3);

  CHECK_THAT(render::cost_and_time_chart(capacity, "", 3).caption, Contains(name));
}

TEST_CASE("figures over loads of one layout name none") {
  planner::CapacityQuestion question = service();
  question.workload.requests = 100;
  const planner::Cost cost = planner::Cost::of_hardware(
      "h200-sxm", "llama-3.3-70b", {.draft = {.model = "eagle3-llama-3.3-70b"}, .tensor_parallel = 4});
  const auto scenarios =
      render::scenarios_over_loads(planner::asked_capacity(planner::Acceptance::of_rate(0.65), cost, question), 0);
  CHECK(scenarios[0].name == "plain decoding");
  CHECK(scenarios[1].name == "γ = 3");
}
