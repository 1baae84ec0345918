// Are the mean-value analysis of clients in a closed loop and the simulation of their replica of one mind? Over costs
// that are constant, linear and a roofline's, prompts short and long, few clients and more than there are places, with
// and without drafts. The formulas are approximate: the tolerance is 5% of the time per output token and of the rate
// for what they leave out, the beginning together among it, and four standard errors of the simulated mean, which a
// sound pair exceeds with probability below 1e-3 per comparison (t with 5 degrees of freedom and half as much again)
// over random seeds; the seeds are fixed.
//
// The simulation alone is held against the machine repairman's queue, whose law is exact.

#include <cmath>
#include <memory>
#include <vector>

#include "sim/random.hpp"
#include "sim/serving/capacity.hpp"
#include "sim/serving/simulated_workload.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/priced_iterations.hpp"
#include "tests/support/small_roofline.hpp"

using namespace specdec;
using sim::CapacityQuestion;
using sim::SimulatedValue;
using test_support::PricedByFormula;

namespace {

struct ClosedCase {
  const char* name;
  std::shared_ptr<const cost::IterationCost> cost;
  double prompt_tokens;
  std::int64_t gamma;
  std::int64_t clients;
  bool prefill_first = false;
};

std::vector<ClosedCase> closed_cases() {
  const auto constant = std::make_shared<PricedByFormula>([](const cost::Iteration&) { return 0.02; });
  const auto linear = std::make_shared<PricedByFormula>([](const cost::Iteration& iteration) {
    return 0.01 + 2e-4 * iteration.sequences * static_cast<double>(1 + iteration.gamma) +
           5e-5 * iteration.prompt_tokens;
  });
  std::vector<ClosedCase> cases;
  for (const std::int64_t gamma : {0, 3}) {
    for (const std::int64_t clients : {4, 24, 96}) {
      cases.push_back({"constant", constant, 300, gamma, clients});
      cases.push_back({"linear, prompts first", linear, 1000, gamma, clients, true});
      for (const double prompt : {50.0, 3000.0}) {
        cases.push_back({"linear", linear, prompt, gamma, clients});
        cases.push_back({"roofline", test_support::small_roofline(), prompt, gamma, clients});
      }
    }
  }
  return cases;
}

CapacityQuestion closed_question(const ClosedCase& one) {
  CapacityQuestion question;
  question.workload.prompt_tokens = {one.prompt_tokens, 0.5};
  question.workload.output_tokens = {150, 0.5};
  question.workload.requests = 40 * one.clients < 400 ? 400 : 40 * one.clients;
  question.workload.clients = one.clients;
  question.workload.outside_seconds = 0.05;
  question.cost = one.cost;
  question.acceptance = {{{0.8, 0.75, 0.7}}, {{0.6, 0.55, 0.5}}};
  sim::CapacityScenario scenario;
  scenario.name = one.name;
  scenario.engine.schedule = {{1, one.gamma}};
  scenario.engine.max_num_seqs = 48;
  scenario.engine.prefill_first = one.prefill_first;
  scenario.engine.cache_blocks = 100'000;
  question.scenarios = {scenario};
  question.replicas = 1;
  question.replications = 6;
  question.seed = 13;
  return question;
}

bool agrees(double formula, const SimulatedValue& simulated) {
  // The interval's half width is 2.57 standard errors.
  const double tolerance = 0.05 * simulated.value + 4 / 2.57 * (simulated.hi - simulated.value);
  return std::abs(formula - simulated.value) <= tolerance;
}

}  // namespace

TEST_CASE("clients are served as fast, and their tokens come as fast, by mean-value analysis as in the simulation") {
  for (const ClosedCase& one : closed_cases()) {
    const CapacityQuestion question = closed_question(one);
    const sim::ScenarioCapacity capacity = sim::plan_capacity(question).scenarios.at(0);
    INFO(one.name << ", prompts of " << one.prompt_tokens << ", gamma " << one.gamma << ", clients " << one.clients);
    const auto steady = sim::steady_at(question, 0, {.clients = one.clients});
    REQUIRE(steady);
    const SimulatedValue& tpot = capacity.tpot_seconds->mean;
    CAPTURE(steady->tpot_seconds, tpot.value, tpot.hi - tpot.value);
    CHECK(agrees(steady->tpot_seconds, tpot));
    const SimulatedValue& rate = capacity.output_tokens_per_second;
    CAPTURE(steady->output_tokens_per_second, rate.value, rate.hi - rate.value);
    CHECK(agrees(steady->output_tokens_per_second, rate));

    // An analysis that forgets the prompts is told from the simulation where they are long and cost something.
    if (one.prompt_tokens < 3000) continue;
    const auto requests = sim::requests_at_unit_rate(question.workload, question.seed, 0, 1, 1500);
    planning::OfferedLoad load = sim::offered_load(requests, question.scenarios[0].engine);
    load.decode_only = true;
    load.prompt_pairs = 0;
    const std::vector<planning::RoundsFrom> rounds = {
        sim::RoundsToCover(requests).rounds(question.acceptance, 1, one.gamma)};
    const auto forgetful =
        planning::closed_steady_state(*one.cost, {load, {48, 8192, 1.6e6}, rounds}, one.clients, 0.05);
    REQUIRE(forgetful);
    CHECK_FALSE(agrees(forgetful->output_tokens_per_second, rate));
  }
}

TEST_CASE("clients of an engine with one place wait as the machine repairman's queue says") {
  // A request is one iteration over a geometrically long prompt, 1 s in the mean: exponential up to a millionth. The
  // law of the number in the engine is N! / (N - k)! / Z^k, whatever the law of Z. Tolerance: five standard errors of
  // the mean of 16 runs, exceeded by a sound simulation with probability 2e-4 (t with 15 degrees of freedom), and 0.5%
  // for the beginning.
  constexpr double outside = 3;
  for (const std::int64_t clients : {1, 3, 8}) {
    double weight = 1, sum = 0;
    for (std::int64_t k = 0; k <= clients; ++k) {
      sum += weight;
      weight *= static_cast<double>(clients - k) / outside;
    }
    const double expected = 1 - 1 / sum;
    const auto served = [&](double slower) {
      std::vector<double> rates;
      for (std::uint64_t run = 0; run < 16; ++run) {
        sim::ServingQuestion question;
        const sim::RandomStream stream(17, run);
        for (std::int64_t i = 0; i < 20'000; ++i) {
          const double drawn = -std::log1p(-stream.uniform(i, 0, sim::Purpose::test));
          question.requests.push_back({0, 1 + static_cast<std::int64_t>(1e6 * drawn), 1});
        }
        question.clients = clients;
        question.outside_seconds = outside;
        question.engine.max_num_seqs = 1;
        question.engine.max_num_batched_tokens = std::int64_t{1} << 40;
        question.engine.cache_blocks = std::int64_t{1} << 30;
        question.cost = test_support::priced(
            [slower](const cost::Iteration& iteration) { return slower * 1e-6 * iteration.prompt_tokens; });
        question.warm_up_share = 0.1;
        rates.push_back(sim::simulate_serving(question).output_tokens_per_second);
      }
      double mean = 0, variance = 0;
      for (const double rate : rates) mean += rate / 16;
      for (const double rate : rates) variance += (rate - mean) * (rate - mean) / 15;
      return std::abs(mean - expected) <= 0.005 * expected + 5 * std::sqrt(variance / 16);
    };
    CHECK(served(1));
    CHECK_FALSE(served(1.05));
  }
}
