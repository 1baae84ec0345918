#include "sim/serving/capacity_worlds.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <stdexcept>
#include <utility>

#include "analysis/worlds/speeds.hpp"
#include "sim/serving/recorded_workload.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;

namespace {

/// An iteration takes 10 ms and 0.1 ms a position; replicate i of 81 takes (60 + i)/100 of that.
class ScaledCost final : public cost::IterationCost {
 public:
  std::size_t replicates() const override { return 81; }
  double price(std::size_t version, const cost::Iteration& iteration) const override {
    const double seconds =
        0.01 + 1e-4 * (iteration.sequences * static_cast<double>(iteration.gamma + 1) + iteration.prompt_tokens);
    return version == 0 ? seconds : seconds * static_cast<double>(59 + version) / 100;
  }
};

/// The cost of replicate `index` alone.
class OneReplicate final : public cost::IterationCost {
 public:
  explicit OneReplicate(double index) : index_(index) {}
  double price(std::size_t, const cost::Iteration& iteration) const override {
    return ScaledCost().seconds(iteration) * (60 + index_) / 100;
  }

 private:
  double index_;
};

/// The same, but that prompts add (37 i mod 81 + 1)/41 times as much in replicate i.
class OddPrompts final : public cost::IterationCost {
 public:
  std::size_t replicates() const override { return 81; }
  double price(std::size_t version, const cost::Iteration& iteration) const override {
    cost::Iteration rounds = iteration;
    rounds.prompt_tokens = 0;
    const double alone = ScaledCost().price(version, rounds);
    return alone + (ScaledCost().price(version, iteration) - alone) * (version == 0 ? 1 : factor(version - 1));
  }
  static double factor(std::size_t replicate) { return (1 + static_cast<double>(37 * replicate % 81)) / 41; }
};

/// 20 requests/s, plainly and with two drafts of which 80% are accepted, at most 20 ms per token.
sim::CapacityQuestion question_for(std::shared_ptr<const cost::IterationCost> cost) {
  sim::CapacityQuestion question;
  question.workload.requests_per_second = 20;
  question.workload.prompt_tokens.mean = 50;
  question.workload.output_tokens.mean = 40;
  question.workload.requests = 200;
  question.cost = std::move(cost);
  question.acceptance = {{{0.8}}};
  question.scenarios = {{"plain", {}}, {"gamma 2", {}}};
  question.scenarios[1].engine.schedule = {{1, 2}};
  for (sim::CapacityScenario& scenario : question.scenarios) scenario.engine.cache_blocks = 10000;
  question.limits.tpot_seconds = 0.02;
  question.gpus_per_replica = 2;
  question.replications = 2;
  return question;
}

/// One for each replicate of ScaledCost.
std::vector<sim::CapacityWorld> of_replicates() {
  std::vector<sim::CapacityWorld> worlds(81);
  for (std::size_t w = 0; w < worlds.size(); ++w) worlds[w].version = 1 + w;
  return worlds;
}

sim::CapacityInWorlds in_worlds(const sim::CapacityQuestion& question, std::vector<sim::CapacityWorld> worlds) {
  return sim::in_worlds(question, sim::plan_capacity(question), std::move(worlds));
}

}  // namespace

TEST_CASE("worlds at both ends of what prompts take are simulated, whatever load they carry") {
  const sim::CapacityInWorlds found = in_worlds(question_for(std::make_shared<OddPrompts>()), of_replicates());
  for (const sim::ScenarioInWorlds& scenario : found.scenarios) {
    double least = 2, most = 0;
    for (const std::size_t w : scenario.simulated) {
      // A prompt of the middle context, 70 positions, in this world.
      const double seconds = OddPrompts().price(1 + w, {.prompt_tokens = 70, .prompts = 1});
      least = std::min(least, seconds);
      most = std::max(most, seconds);
    }
    std::vector<double> all;
    for (std::size_t w = 0; w < 81; ++w) all.push_back(OddPrompts().price(1 + w, {.prompt_tokens = 70, .prompts = 1}));
    std::sort(all.begin(), all.end());
    CHECK(least <= all[2]);
    CHECK(most >= all[78]);
  }
}

TEST_CASE("what a scenario takes in a world that was not simulated is what its own simulation says") {
  for (const bool has_limit : {true, false}) {
    sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
    question.workload.requests = 1000;
    question.replications = 8;
    if (!has_limit) question.limits = {};
    const sim::CapacityInWorlds found = in_worlds(question, of_replicates());
    double largest_change = 0;
    std::vector<double> errors;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<double>& rates = found.scenarios[i].rates;
      CHECK(found.scenarios[i].simulated.size() == 3);
      for (const std::size_t w : {7, 33, 59, 73}) {
        REQUIRE(std::count(found.scenarios[i].simulated.begin(), found.scenarios[i].simulated.end(), w) == 0);
        sim::CapacityQuestion its = question;
        its.cost = std::make_shared<OneReplicate>(w);
        const double rate = sim::plan_capacity(its).scenarios[i].requests_per_second_per_replica.value;
        INFO(question.scenarios[i].name << " in world " << w << (has_limit ? " with" : " without") << " a limit");
        CHECK(rates[w] == Approx(rate).epsilon(0.35));
        const std::vector<double> load = {found.answer.scenarios[i].at_requests_per_second.value};
        const double tpot = sim::replica_at_loads(its, i, load).front().tpot_seconds->p50.value;
        CHECK(found.scenarios[i].speeds[w] * tpot == Approx(1).epsilon(0.1));
        errors.push_back(std::abs(rates[w] / rate - 1));
        largest_change = std::max(largest_change, std::abs(std::log(rate / rates[40])));
      }
    }
    std::sort(errors.begin(), errors.end());
    CHECK(errors[errors.size() / 2] < 0.15);
    // The twin, the answer's own value in every world, is far off.
    CHECK(largest_change > (has_limit ? 0.8 : 0.25));
  }
}

TEST_CASE("a capacity's intervals hold 95% of its worlds") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  question.replications = 8;
  const sim::CapacityAnswer alone = sim::plan_capacity(question);
  const sim::CapacityInWorlds found = in_worlds(question, of_replicates());
  for (std::size_t i = 0; i < 2; ++i) {
    const sim::SimulatedValue& rate = found.answer.scenarios[i].requests_per_second_per_replica;
    CHECK(rate.value == alone.scenarios[i].requests_per_second_per_replica.value);
    const std::vector<double>& rates = found.scenarios[i].rates;
    const auto held = std::count_if(rates.begin(), rates.end(), [&](double of) { return rate.lo <= of && of <= rate.hi; });
    // Of 81, all but two on either side, and whatever the answer's own interval adds.
    CHECK(held >= 76);
    for (const double index : {2.0, 78.0}) {
      sim::CapacityQuestion its = question;
      its.cost = std::make_shared<OneReplicate>(index);
      const sim::ScenarioCapacity there = sim::plan_capacity(its).scenarios[i];
      CHECK(rate.lo <= 1.15 * there.requests_per_second_per_replica.value);
      CHECK(there.requests_per_second_per_replica.value <= 1.15 * rate.hi);
      REQUIRE(found.scenarios[i].gpu_range);
      CHECK(found.scenarios[i].gpu_range->lo <= *there.gpus);
      CHECK(*there.gpus <= found.scenarios[i].gpu_range->hi);
    }
    CHECK_FALSE(found.scenarios[i].gpu_range->some_never);
  }
  CHECK(found.scenarios[0].gpu_range->lo < found.scenarios[0].gpu_range->hi);
  CHECK_THROWS_AS(sim::in_worlds(question, {}, of_replicates()), std::invalid_argument);
  CHECK_THROWS_AS(sim::in_worlds(question, alone, {}), std::invalid_argument);
}

TEST_CASE("of alternatives a capacity's intervals hold each, and plain decoding accepts nothing in any") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  question.replications = 8;
  std::vector<sim::CapacityWorld> worlds = of_replicates(), high = of_replicates();
  for (sim::CapacityWorld& world : worlds) world.acceptance = {{{0.5}}};
  for (sim::CapacityWorld& world : high) {
    world.acceptance = {{{0.95}}};
    world.alternative = 1;
  }
  worlds.insert(worlds.end(), high.begin(), high.end());
  const sim::CapacityInWorlds found = in_worlds(question, worlds);
  const sim::SimulatedValue& both = found.answer.scenarios[1].requests_per_second_per_replica;
  for (const double alpha : {0.5, 0.95}) {
    sim::CapacityQuestion alone = question;
    alone.acceptance = {{{alpha}}};
    const sim::SimulatedValue its =
        in_worlds(alone, of_replicates()).answer.scenarios[1].requests_per_second_per_replica;
    CHECK(both.lo <= 1.1 * its.lo);
    CHECK(its.hi <= 1.1 * both.hi);
  }
  const std::vector<double>& plain = found.scenarios[0].rates;
  const auto median_from = [&](std::ptrdiff_t first) {
    std::vector<double> rates(plain.begin() + first, plain.begin() + first + 81);
    std::nth_element(rates.begin(), rates.begin() + 40, rates.end());
    return rates[40];
  };
  CHECK(median_from(0) == Approx(median_from(81)).epsilon(0.1));
}

TEST_CASE("worlds that are alike hold the error of the simulation, so that GPUs of other random numbers lie in the range",
          "[long]") {
  sim::CapacityQuestion question = question_for(std::make_shared<OneReplicate>(40));
  question.limits = {};
  question.limits.ttft_seconds = 0.08;
  question.limits.percentile = 99.9;
  question.replications = 4;
  question.scenarios.resize(1);
  double most = 0;
  for (std::uint64_t seed = 101; seed <= 140; ++seed) {
    question.seed = seed;
    most += sim::plan_capacity(question).scenarios[0].requests_per_second_per_replica.value / 40;
  }
  // Twelve replicas' worth of load, which a run of other numbers meets with one or two more or fewer.
  question.workload.requests_per_second = 11.7 * most;
  int held = 0, held_by_value = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    question.seed = seed;
    const sim::CapacityInWorlds found = in_worlds(question, std::vector<sim::CapacityWorld>(200));
    CHECK(found.scenarios[0].simulated.empty());
    const sim::GpuRange& range = found.scenarios[0].gpu_range.value();
    held += range.lo <= 24 && 24 <= range.hi ? 1 : 0;
    held_by_value += found.answer.scenarios[0].gpus == 24 ? 1 : 0;
  }
  // Fewer than 33 of 40 intervals of 95% hold in one of 5,000 runs; the value alone is the twin.
  CHECK(held >= 33);
  CHECK(held_by_value < 30);
}

TEST_CASE("where the slow end of a cost meets no limit, no number of GPUs is enough there") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  // One sequence alone takes 10.1 ms; 1.38 times that is above the limit, and of two drafts' 10.3 ms 80% help.
  question.limits.tpot_seconds = 0.0125;
  const sim::CapacityInWorlds found = in_worlds(question, of_replicates());
  CHECK(found.scenarios[0].gpu_range->some_never);
  CHECK(found.scenarios[0].rates[80] == 0);
  CHECK(found.scenarios[0].rates[0] > 0);
  CHECK_FALSE(found.scenarios[1].gpu_range->some_never);
}

TEST_CASE("times at a load have no upper end where a world's queue grows at it") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  question.limits = {};
  const double most = sim::plan_capacity(question).scenarios[0].requests_per_second_per_replica.value;
  question.workload.requests_per_second = 0.9 * most;
  question.replicas = 1;
  const sim::CapacityInWorlds found = in_worlds(question, of_replicates());
  const sim::ScenarioCapacity& plain = found.answer.scenarios[0];
  REQUIRE(plain.meets_load);
  CHECK(found.scenarios[0].overloaded >= 1);
  const std::vector<std::optional<std::int64_t>>& gpus = found.scenarios[0].gpus;
  CHECK(gpus[0] == 2);
  CHECK_FALSE(gpus[80]);
  for (const sim::SimulatedValue& value :
       {plain.tpot_seconds->p50, plain.ttft_seconds->p99, plain.gap_seconds->mean, plain.mean_batch}) {
    CHECK(std::isinf(value.hi));
    CHECK(value.lo < value.value);
  }
  // It puts out what it takes of the load.
  CHECK(plain.output_tokens_per_second.lo < plain.output_tokens_per_second.value);
}

TEST_CASE("what a replica takes in worlds does not depend on the load asked for or the number of replicas") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  const sim::CapacityInWorlds at_load = in_worlds(question, of_replicates());
  const auto check_same = [&](const sim::CapacityInWorlds& other) {
    for (std::size_t i = 0; i < 2; ++i) CHECK(other.scenarios[i].rates == at_load.scenarios[i].rates);
  };
  question.replicas = 1;
  check_same(in_worlds(question, of_replicates()));
  question.workload.requests_per_second = 1e4;
  REQUIRE_FALSE(sim::plan_capacity(question).recommended);
  check_same(in_worlds(question, of_replicates()));
  question.workload.requests_per_second.reset();
  question.replicas.reset();
  check_same(in_worlds(question, of_replicates()));
  question.threads = 2;
  check_same(in_worlds(question, of_replicates()));
}

TEST_CASE("clients are served in worlds as their own simulation says") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  question.workload.requests_per_second.reset();
  question.workload.clients = 40;
  const sim::CapacityInWorlds found = in_worlds(question, of_replicates());
  for (std::size_t i = 0; i < 2; ++i) {
    for (const std::size_t w : {7, 73}) {
      sim::CapacityQuestion its = question;
      its.cost = std::make_shared<OneReplicate>(w);
      its.replicas = found.answer.scenarios[i].replicas;
      INFO(question.scenarios[i].name << " in world " << w);
      CHECK(found.scenarios[i].rates[w] ==
            Approx(sim::plan_capacity(its).scenarios[i].at_requests_per_second.value).epsilon(0.05));
      its.replicas.reset();
      const auto gpus = sim::plan_capacity(its).scenarios[i].gpus;
      REQUIRE(found.scenarios[i].gpus[w].has_value() == gpus.has_value());
      if (gpus) CHECK(std::abs(*found.scenarios[i].gpus[w] - *gpus) <= 2);
    }
  }
}

TEST_CASE("worlds that price iterations at nothing are left out") {
  class PartlyNothing final : public cost::IterationCost {
   public:
    std::size_t replicates() const override { return 3; }
    double price(std::size_t version, const cost::Iteration& iteration) const override {
      return (version == 0 ? 1 : static_cast<double>(version - 1)) * ScaledCost().seconds(iteration);
    }
  };
  std::vector<sim::CapacityWorld> worlds(3);
  for (std::size_t w = 0; w < 3; ++w) worlds[w].version = 1 + w;
  CHECK(in_worlds(question_for(std::make_shared<PartlyNothing>()), worlds).worlds.size() == 2);
}

TEST_CASE("shares of worlds with fewer and with more GPUs, of which no number is more than any") {
  sim::ScenarioInWorlds ours, theirs;
  ours.gpus = {2, 4, 4, std::nullopt, 8, std::nullopt};
  theirs.gpus = {4, 4, 2, 8, std::nullopt, std::nullopt};
  const std::vector<int> one(6, 0), two = {0, 0, 0, 1, 1, 1};
  CHECK(sim::compare_gpus(ours, theirs, one).fewer == Approx(2.0 / 6));
  CHECK(sim::compare_gpus(ours, theirs, one).more == Approx(2.0 / 6));
  CHECK(sim::compare_gpus(ours, theirs, two).fewer == Approx(1.0 / 3));
  // Of the first alternative none, of the second a third: nothing is sure not to be that one of them has.
  theirs.gpus[0] = 2;
  CHECK(sim::compare_gpus(ours, theirs, two).fewer == Approx(1.0 / 3));
  CHECK(sim::compare_gpus(ours, theirs, two).more == Approx(1.0 / 3));
  CHECK(sim::compare_gpus(ours, ours, two).more == 0);
  CHECK_THROWS_AS(sim::compare_gpus(ours, {}, one), std::invalid_argument);
}

TEST_CASE("the scenario of least expected regret is recommended, even where the estimate has another") {
  sim::CapacityQuestion question = question_for(std::make_shared<OneReplicate>(40));
  question.workload.requests_per_second.reset();
  question.limits = {};
  question.acceptance = {{{0.9}}};
  REQUIRE(sim::plan_capacity(question).recommended == 1);
  std::vector<sim::CapacityWorld> worlds(40);
  CHECK(in_worlds(question, worlds).answer.recommended == 1);
  // Drafts lose in three worlds of four.
  for (std::size_t w = 0; w < worlds.size(); ++w) worlds[w].acceptance = {{{w % 4 == 0 ? 0.9 : 0.01}}};
  const sim::CapacityInWorlds found = in_worlds(question, worlds);
  CHECK(found.answer.recommended == 0);
  CHECK(found.regret > 0);
}

TEST_CASE("the next measurement is of what most of a capacity's uncertainty comes from") {
  const sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  const auto doubt_with = [&](double alpha, bool of_cost, std::size_t scenario) {
    std::vector<sim::CapacityWorld> worlds = of_replicates();
    for (std::size_t w = 0; w < worlds.size(); ++w) {
      if (!of_cost) worlds[w].version = 0;
      worlds[w].acceptance = {{{w % 2 == 0 ? 0.8 : alpha}}};
    }
    return sim::capacity_doubt(question, in_worlds(question, worlds), scenario);
  };
  const auto of_cost = doubt_with(0.79, true, 1);
  REQUIRE(of_cost);
  CHECK(of_cost->source == sim::UncertaintySource::cost);
  CHECK(of_cost->next.gamma == 2);
  CHECK(of_cost->next.with_baseline);
  CHECK(of_cost->next.context == Approx(50 + 40 / 2));
  CHECK(of_cost->next.batch >= 1);
  const auto of_plain = doubt_with(0.05, true, 0);
  REQUIRE(of_plain);
  CHECK(of_plain->next.gamma == 0);
  CHECK_FALSE(of_plain->next.with_baseline);
  const auto of_acceptance = doubt_with(0.05, false, 1);
  REQUIRE(of_acceptance);
  CHECK(of_acceptance->source == sim::UncertaintySource::acceptance);
  CHECK_FALSE(of_acceptance->next.with_baseline);
  CHECK_FALSE(doubt_with(0.8, false, 1));
}

TEST_CASE("a replica at a load has the figures that a capacity at that load has") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  question.price_per_gpu_hour = 3;
  question.replicas = 2;
  question.limits = {};
  const sim::CapacityInWorlds found = in_worlds(question, of_replicates());
  const std::vector<double> loads = {10, 1};
  for (std::size_t i = 0; i < 2; ++i) {
    const sim::ScenarioCapacity& whole = found.answer.scenarios[i];
    REQUIRE(whole.at_requests_per_second.value == 10);
    const std::vector<sim::ReplicaAtLoad> ranged = sim::replica_in_worlds(question, i, loads, found);
    REQUIRE(ranged.size() == 2);
    CHECK(ranged[0].tpot_seconds->p99.value == whole.tpot_seconds->p99.value);
    CHECK(ranged[0].tpot_seconds->p99.lo == whole.tpot_seconds->p99.lo);
    CHECK(ranged[0].ttft_seconds->p50.hi == whole.ttft_seconds->p50.hi);
    CHECK(ranged[0].mean_batch.lo == whole.mean_batch.lo);
    CHECK(ranged[0].output_tokens_per_second.hi == whole.output_tokens_per_second.hi);
    CHECK(ranged[0].cost_per_million_tokens == whole.cost_per_million_tokens);
    // 2 GPUs at 1 request/s of 40 tokens, for 3 an hour each.
    CHECK(*ranged[1].cost_per_million_tokens == Approx(2.0 / 40 * 3 / 3600 * 1e6).epsilon(1e-12));
    CHECK(ranged[1].tpot_seconds->p50.value < ranged[0].tpot_seconds->p50.value);
    const std::vector<sim::ReplicaAtLoad> alone = sim::replica_at_loads(question, i, loads);
    CHECK(alone[0].tpot_seconds->p99.value == ranged[0].tpot_seconds->p99.value);
    CHECK((i > 0 || alone[0].tpot_seconds->p99.hi < ranged[0].tpot_seconds->p99.hi));
  }
  CHECK_THROWS_AS(sim::replica_at_loads(question, 2, loads), std::out_of_range);
  CHECK_THROWS_AS(sim::replica_at_loads(question, 0, std::vector<double>{0}), std::domain_error);
}

TEST_CASE("a recorded workload has the lengths of its requests and their rate") {
  traces::RequestTrace trace;
  trace.path = "requests.csv";
  trace.requests = {{1, 10, 5}, {2, 20, 1}, {2, 30, 7}, {5, 40, 9}};
  const sim::Workload workload = sim::recorded_workload(trace);
  REQUIRE(workload.recorded.size() == 4);
  CHECK(workload.recorded[2].arrival_seconds == 2);
  CHECK(workload.recorded[2].prompt_tokens == 30);
  CHECK(workload.recorded[2].output_tokens == 7);
  CHECK(workload.requests_per_second == Approx(3.0 / 4));
  trace.requests = {{1, 10, 5}, {1, 20, 1}};
  CHECK_THROWS_AS(sim::recorded_workload(trace), std::invalid_argument);
}

TEST_CASE("an interrupted capacity gives the scenarios that were finished, and no interval of those without worlds") {
  const sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  std::int64_t asked = 0;
  const auto interrupted_after = [&](std::int64_t calls) {
    asked = 0;
    return core::RunHooks{{}, [&asked, calls] { return ++asked > calls; }};
  };
  CHECK(sim::plan_capacity(question, interrupted_after(0)).scenarios.empty());
  const sim::CapacityAnswer whole = sim::plan_capacity(question, interrupted_after(1'000'000));
  CHECK_FALSE(whole.interrupted);
  const sim::CapacityAnswer first = sim::plan_capacity(question, interrupted_after(asked - 1));
  CHECK(first.interrupted);
  REQUIRE(first.scenarios.size() == 1);
  CHECK(first.scenarios[0].requests_per_second_per_replica.value ==
        whole.scenarios[0].requests_per_second_per_replica.value);

  sim::in_worlds(question, whole, of_replicates(), interrupted_after(1'000'000));
  for (const std::int64_t calls : {std::int64_t{0}, asked - 1}) {
    const sim::CapacityInWorlds found = sim::in_worlds(question, whole, of_replicates(), interrupted_after(calls));
    CHECK(found.interrupted);
    for (std::size_t i = 0; i < 2; ++i) {
      CHECK_FALSE(found.scenarios[i].gpu_range);
      const sim::SimulatedValue& rate = found.answer.scenarios[i].requests_per_second_per_replica;
      CHECK(rate.lo == 0);
      CHECK(std::isinf(rate.hi));
    }
    CHECK_FALSE(sim::capacity_doubt(question, found, 0));
  }
}
