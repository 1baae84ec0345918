// Are the formulas of an equilibrium and the simulation of a replica of one mind? At half of the rate that the
// simulated replica can serve, over costs that are constant, linear and a roofline's, prompts short and long, with and
// without drafts. The formulas are approximate: the tolerance is 2.5% of the time per output token for what they leave
// out, and four standard errors of the simulated mean, which a sound pair exceeds with probability below 1e-3 per
// comparison (t with 5 degrees of freedom and half as much again) over random seeds; the seeds are fixed.

#include <cmath>
#include <memory>
#include <vector>

#include "sim/serving/capacity.hpp"
#include "sim/serving/simulated_workload.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/priced_iterations.hpp"
#include "tests/support/small_roofline.hpp"

using namespace specdec;
using sim::CapacityQuestion;
using test_support::PricedByFormula;

namespace {

struct AgreementCase {
  const char* name;
  std::shared_ptr<const cost::IterationCost> cost;
  double prompt_tokens;
  std::int64_t gamma;
};

std::vector<AgreementCase> agreement_cases() {
  const auto constant = std::make_shared<PricedByFormula>([](const cost::Iteration&) { return 0.02; });
  const auto linear = std::make_shared<PricedByFormula>([](const cost::Iteration& iteration) {
    return 0.01 + 2e-4 * iteration.sequences * static_cast<double>(1 + iteration.gamma) +
           5e-5 * iteration.prompt_tokens;
  });
  std::vector<AgreementCase> cases;
  for (const std::int64_t gamma : {0, 3}) {
    cases.push_back({"constant", constant, 300, gamma});
    for (const double prompt : {50.0, 3000.0}) {
      cases.push_back({"linear", linear, prompt, gamma});
      cases.push_back({"roofline", test_support::small_roofline(), prompt, gamma});
    }
  }
  return cases;
}

CapacityQuestion question_of(const AgreementCase& agreement) {
  CapacityQuestion question;
  question.workload.prompt_tokens = {agreement.prompt_tokens, 0.5};
  question.workload.output_tokens = {150, 0.5};
  question.workload.requests = 1500;
  question.cost = agreement.cost;
  question.acceptance = {{{0.8, 0.75, 0.7}}, {{0.6, 0.55, 0.5}}};
  sim::CapacityScenario scenario;
  scenario.name = agreement.name;
  scenario.engine.schedule = {{1, agreement.gamma}};
  scenario.engine.max_num_seqs = 48;
  scenario.engine.cache_blocks = 100'000;
  question.scenarios = {scenario};
  question.replicas = 1;
  question.replications = 6;
  question.seed = 11;
  return question;
}

}  // namespace

TEST_CASE("at a moderate load the formulas and the simulation give the same time per token and batch") {
  for (const AgreementCase& agreement : agreement_cases()) {
    CapacityQuestion question = question_of(agreement);
    // Where the queue starts to grow, formulas first.
    const auto requests = sim::requests_at_unit_rate(question.workload, question.seed, 0, 1, 1500);
    planning::OfferedLoad load = sim::offered_load(requests, question.scenarios[0].engine);
    const std::vector<planning::RoundsFrom> rounds = {
        sim::RoundsToCover(requests).rounds(question.acceptance, 1, agreement.gamma)};
    const planning::ReplicaLimits limits = {48, 8192, 1.6e6};
    const auto most = planning::sustainable_load(*agreement.cost, {load, limits, rounds});
    REQUIRE(most);
    question.workload.requests_per_second = 0.5 * most->requests_per_second;
    const sim::ScenarioCapacity capacity = sim::plan_capacity(question).scenarios.at(0);
    INFO(agreement.name << ", prompts of " << agreement.prompt_tokens << ", gamma " << agreement.gamma);
    const auto steady = sim::steady_at(question, 0, {capacity.at_requests_per_second.value});
    REQUIRE(steady);
    CHECK(most->requests_per_second == Approx(capacity.saturated_requests_per_second_per_replica.value).epsilon(0.06));

    const auto agrees = [](double formula, const sim::SimulatedValue& simulated) {
      // The interval's half width is 2.57 standard errors.
      const double tolerance = 0.025 * simulated.value + 4 / 2.57 * (simulated.hi - simulated.value);
      return std::abs(formula - simulated.value) <= tolerance;
    };
    const auto& tpot = capacity.tpot_seconds->mean;
    CAPTURE(steady->tpot_seconds, tpot.value, tpot.hi - tpot.value);
    CHECK(agrees(steady->tpot_seconds, tpot));
    CAPTURE(steady->mean_batch, capacity.mean_batch.value, capacity.mean_batch.hi);
    CHECK(agrees(steady->mean_batch, capacity.mean_batch));

    // An equilibrium that forgets the prompts is told from the simulation where they are long and cost something.
    if (agreement.prompt_tokens < 1000) continue;
    load.requests_per_second = capacity.at_requests_per_second.value;
    load.decode_only = true;
    load.prompt_pairs = 0;
    const auto forgetful = planning::steady_state(*agreement.cost, {load, limits, rounds});
    REQUIRE(forgetful);
    CHECK_FALSE(agrees(forgetful->tpot_seconds, tpot));
  }
}
