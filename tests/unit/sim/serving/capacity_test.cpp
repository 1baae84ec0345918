#include "sim/serving/capacity.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "sim/serving/load_search.hpp"
#include "sim/serving/request_percentiles.hpp"
#include "sim/serving/simulated_workload.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/priced_iterations.hpp"

using namespace specdec;
using namespace specdec::sim;
using planning::CapacityLimit;
using test_support::PricedByFormula;

namespace {

std::shared_ptr<const cost::IterationCost> priced_by(PricedByFormula::Price price) {
  return std::make_shared<PricedByFormula>(std::move(price));
}

/// 10 ms, 0.5 ms more per position of a round and 20 us per position of a prompt.
std::shared_ptr<const cost::IterationCost> linear(double factor = 1) {
  return priced_by([factor](const cost::Iteration& iteration) {
    return factor * (0.01 + 5e-4 * iteration.sequences * static_cast<double>(iteration.gamma + 1) +
                     2e-5 * iteration.prompt_tokens);
  });
}

CapacityScenario scenario(const char* name, std::int64_t gamma) {
  CapacityScenario result;
  result.name = name;
  result.engine.schedule = {{1, gamma}};
  result.engine.max_num_seqs = 16;
  result.engine.cache_blocks = 100'000;
  return result;
}

CapacityQuestion question_of(std::vector<CapacityScenario> scenarios) {
  CapacityQuestion question;
  question.workload.prompt_tokens = {100, 0.5};
  question.workload.output_tokens = {40, 0.5};
  question.workload.requests = 300;
  question.cost = linear();
  question.acceptance = {{{0.8}}, {{0.6}}};
  question.scenarios = std::move(scenarios);
  question.replications = 3;
  return question;
}

const ScenarioCapacity only(const CapacityQuestion& question) { return plan_capacity(question).scenarios.at(0); }

/// Times to first token in a replication of the first scenario at a load, of 300 requests without the tenths at the
/// ends.
std::vector<double> counted_ttft(const CapacityQuestion& question, std::int64_t replication, double load) {
  ServingQuestion serving;
  serving.requests = requests_at_unit_rate(question.workload, question.seed, replication, question.replications,
                                           *question.workload.requests);
  for (SimulatedRequest& request : serving.requests) request.arrival_seconds /= load;
  serving.engine = question.scenarios[0].engine;
  serving.cost = question.cost;
  serving.acceptance = question.acceptance;
  serving.seed = seed_of_replication(question.seed, replication);
  const ServingResult run = simulate_serving(serving);
  std::vector<double> values;
  for (std::size_t i = 30; i < 270; ++i) values.push_back(run.requests[i].first_token_seconds);
  return values;
}

void check_same(const SimulatedValue& a, const SimulatedValue& b) {
  CHECK(a.value == b.value);
  CHECK(a.lo == b.lo);
  CHECK(a.hi == b.hi);
}

}  // namespace

TEST_CASE("requests come at the rate and with the lengths that the workload says") {
  Workload workload;
  workload.prompt_tokens = {200, 0.5};
  workload.output_tokens = {30, 0};
  const std::vector<SimulatedRequest> requests = requests_at_unit_rate(workload, 7, 0, 4, 20'000);
  double sum = 0;
  double squares = 0;
  for (const SimulatedRequest& request : requests) {
    const auto tokens = static_cast<double>(request.prompt_tokens);
    sum += tokens / 20'000;
    squares += tokens * tokens / 20'000;
    REQUIRE(request.output_tokens == 30);
  }
  // Six standard errors: a sound generator fails with probability 2e-9 over seeds; the seed is fixed.
  const double root = std::sqrt(20'000);
  CHECK(std::abs(requests.back().arrival_seconds - 20'000) < 6 * root);
  CHECK(std::abs(sum - 200) < 6 * 100 / root);
  CHECK(std::sqrt(squares - sum * sum) / sum == Approx(0.5).epsilon(0.05));

  const std::vector<SimulatedRequest> fewer = requests_at_unit_rate(workload, 7, 0, 4, 100);
  CHECK(fewer[99].arrival_seconds == requests[99].arrival_seconds);
  CHECK(fewer[99].prompt_tokens == requests[99].prompt_tokens);
  CHECK(requests_at_unit_rate(workload, 7, 1, 4, 100)[0].arrival_seconds != requests[0].arrival_seconds);
  workload.prompt_tokens.at_most = 150;
  const auto cut = requests_at_unit_rate(workload, 7, 0, 4, 100);
  for (std::size_t i = 0; i < cut.size(); ++i)
    CHECK(cut[i].prompt_tokens == std::min<std::int64_t>(150, fewer[i].prompt_tokens));
}

TEST_CASE("recorded requests keep their lengths, their order and the shape of their gaps") {
  Workload workload;
  workload.recorded = {{100, 1, 10}, {101, 2, 20}, {105, 3, 30}, {106, 4, 40}};
  // Gaps 1, 4, 1 of mean 2; between the last and the first stands the mean.
  const auto first = requests_at_unit_rate(workload, 0, 0, 2, 6);
  const double times[] = {0, 0.5, 2.5, 3, 4, 4.5};
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(first[i].arrival_seconds == Approx(times[i]));
    CHECK(first[i].prompt_tokens == static_cast<std::int64_t>(i % 4 + 1));
    CHECK(first[i].output_tokens == 10 * first[i].prompt_tokens);
  }
  const auto second = requests_at_unit_rate(workload, 0, 1, 2, 3);
  CHECK(second[0].prompt_tokens == 3);
  CHECK(second[0].arrival_seconds == 0);
  CHECK(second[1].arrival_seconds == Approx(0.5));
  CHECK(second[2].arrival_seconds == Approx(1.5));
}

TEST_CASE("the formulas are told the rounds that requests take, the cut last one included") {
  // Rounds of m tokens from the law of sums: P(more than j rounds) = P(j rounds give fewer than m tokens).
  const std::vector<double> conditional = {0.9, 0.5};
  const double of_a_round[] = {0, 0.1, 0.45, 0.225, 0.225};
  const auto rounds_of = [&](std::size_t m) {
    std::vector<double> sums(m, 0);
    sums[0] = 1;
    double rounds = 0;
    for (std::size_t j = 0; j < m; ++j) {
      for (const double probability : sums) rounds += probability;
      std::vector<double> next(m, 0);
      for (std::size_t s = 0; s < m; ++s) {
        for (std::size_t k = 1; k <= 4 && s + k < m; ++k) next[s + k] += sums[s] * of_a_round[k];
      }
      sums = next;
    }
    return rounds;
  };
  for (const std::int64_t m : {1, 2, 7, 300}) {
    const RoundsToCover cover({{0, 1, m + 1}});
    const planning::RoundsFrom rounds = cover.rounds({{conditional}}, 1, 3);
    CHECK(static_cast<double>(m) / rounds.tokens_per_step ==
          Approx(rounds_of(static_cast<std::size_t>(m))).epsilon(1e-10));
    CHECK(rounds.full_accepts == Approx(0.225));
  }
  // Two laws: the one that accepts nothing takes more rounds, and counts for more.
  const planning::RoundsFrom mixed = RoundsToCover({{0, 1, 100'001}}).rounds({{{1.0}}, {}}, 1, 1);
  CHECK(mixed.tokens_per_step == Approx(2 / 1.5).epsilon(1e-4));
  CHECK(mixed.full_accepts == Approx(1.0 / 3).epsilon(1e-4));
}

TEST_CASE("a search finds where a growing excess passes nothing, or says that it does not") {
  LoadSearch search;
  search.lowest = 1e-3;
  search.tolerance = 0.01;
  for (const double crossing : {0.002, 0.1, 0.7, 0.999}) {
    for (const double guess : {0.001, 0.05, 1.0}) {
      search.guess = {guess, 3};
      int runs = 0;
      const std::function<double(double)> shapes[] = {
          [&](double load) { return 0.5 * std::log(load / crossing); },
          [&](double load) { return 20 * std::log(load / crossing); },
          [&](double load) { return std::log((1.01 - crossing) / (1.01 - load)); },
          [&](double load) { return load > crossing ? 20.0 : -20.0; }};
      for (const auto& shape : shapes) {
        runs = 0;
        const auto found = find_crossing(search, [&](double load) {
          ++runs;
          CHECK(load >= 1e-3);
          CHECK(load <= 1);
          return shape(load);
        });
        REQUIRE(found);
        CHECK(found->load == Approx(crossing).epsilon(0.011));
        CHECK(runs < 30);
      }
    }
  }
  CHECK_FALSE(find_crossing(search, [](double) { return 1.0; }));
  CHECK(find_crossing(search, [](double) { return -1.0; })->load == 1);
}

TEST_CASE("the least number that holds is found from any guess, and each number is asked once") {
  for (const std::int64_t most : {1, 2, 17, 100}) {
    for (std::int64_t least = 1; least <= most + 1; ++least) {
      for (std::int64_t guess = 1; guess <= most; ++guess) {
        std::vector<std::int64_t> asked;
        const auto holds = [&](std::int64_t number) {
          asked.push_back(number);
          return number >= least;
        };
        REQUIRE(least_that(most, guess, holds) == least);
        std::sort(asked.begin(), asked.end());
        REQUIRE((asked.front() >= 1 && asked.back() <= most));
        REQUIRE(std::adjacent_find(asked.begin(), asked.end()) == asked.end());
      }
    }
  }
}

TEST_CASE("without limits a replica sustains what it serves when it never runs out of requests") {
  CapacityQuestion question = question_of({scenario("plain", 0)});
  question.workload.prompt_tokens = {10, 0};
  question.workload.output_tokens = {40, 0};
  question.cost = priced_by([](const cost::Iteration&) { return 0.01; });
  // 16 places, each taken for 40 iterations: of 400 seeds the furthest is 0.4% off.
  const ScenarioCapacity capacity = only(question);
  CHECK(capacity.requests_per_second_per_replica.value == Approx(16 / 0.4).epsilon(0.02));
  CHECK(capacity.limited_by == CapacityLimit::max_num_seqs);
  CHECK(capacity.at_requests_per_second.value == Approx(0.9 * capacity.requests_per_second_per_replica.value));
  CHECK(capacity.tpot_seconds->p99.value == Approx(0.01));
  CHECK(capacity.meets_load);

  // Just below the bound the queue stays, above it grows: requests in the system halfway and at the end. Of 400 seeds
  // none refuses the first and 3 the second.
  const auto backlog = [&](double share) {
    ServingQuestion serving;
    serving.requests = requests_at_unit_rate(question.workload, 3, 0, 1, 2000);
    for (SimulatedRequest& request : serving.requests)
      request.arrival_seconds /= share * capacity.requests_per_second_per_replica.value;
    serving.engine = question.scenarios[0].engine;
    serving.cost = question.cost;
    const std::vector<ServedRequest> served = simulate_serving(serving).requests;
    const auto before = [&](std::size_t request) {
      return std::count_if(served.begin(), served.begin() + static_cast<std::ptrdiff_t>(request), [&](const auto& one) {
        return one.arrival_seconds + one.last_token_seconds > served[request].arrival_seconds;
      });
    };
    return std::pair(before(1000), before(1999));
  };
  const auto [middle_below, end_below] = backlog(0.9);
  CHECK(middle_below < 100);
  CHECK(end_below < 100);
  const auto [middle_above, end_above] = backlog(1.2);
  CHECK(end_above > middle_above + 100);
}

TEST_CASE("a batch has filled before requests count, however many fill it") {
  // Iterations of one length and room for all: by Little's law 50 requests a second, 10 ms a token, are 199.5 sequences
  // that decode. Runs of a thousand that count from the hundredth request on hold fewer.
  for (const std::optional<std::int64_t> requests :
       {std::optional<std::int64_t>(), std::optional<std::int64_t>(1000)}) {
    CapacityQuestion question = question_of({scenario("plain", 0)});
    question.cost = priced_by([](const cost::Iteration&) { return 0.01; });
    question.scenarios.front().engine.max_num_seqs = 1000;
    question.scenarios.front().engine.cache_blocks = 1 << 20;
    question.scenarios.front().engine.max_num_batched_tokens = 1 << 20;
    question.workload.prompt_tokens = {10, 0};
    question.workload.output_tokens = {400, 0.5};
    question.workload.requests = requests;
    question.limits = {};
    const std::vector<double> loads = {50};
    const ReplicaAtLoad there = replica_at_loads(question, 0, loads).front();
    CHECK(there.mean_batch.value == Approx(199.5).epsilon(requests ? 0.04 : 0.02));
  }
  CHECK(least_requests(100) == Approx(375));
}

TEST_CASE("requests of one token are served too") {
  CapacityQuestion question = question_of({scenario("gamma 2", 2)});
  question.workload.output_tokens = {1, 0};
  const ScenarioCapacity capacity = only(question);
  // 16 prompts of 100 tokens in an iteration of 10 + 32 ms. Over seeds the standard deviation is 1.3%: beyond 10% in
  // fewer than one of 10^13.
  CHECK(capacity.saturated_requests_per_second_per_replica.value == Approx(16 / 0.042).epsilon(0.1));
  CHECK_FALSE(capacity.tpot_seconds);
  CHECK_FALSE(sim::steady_at(question, 0, {1}));
}

TEST_CASE("at the sustainable load the percentile that limits it stands at its limit") {
  // Over 400 seeds the first percentile is off by 0.2% (standard deviation), of which 3% are fifteen, and the last by
  // 2.9%, of which 10% are three and a half: 5e-4.
  CapacityQuestion question = question_of({scenario("plain", 0), scenario("gamma 2", 2)});
  question.limits.tpot_seconds = 0.0165;
  question.limits.percentile = 90;
  question.limits.ttft_seconds = 10;
  for (const ScenarioCapacity& capacity : plan_capacity(question).scenarios) {
    INFO(capacity.scenario.name);
    const SimulatedValue& found = capacity.requests_per_second_per_replica;
    CHECK(capacity.limited_by == CapacityLimit::tpot);
    CHECK(capacity.tpot_seconds->p90.value == Approx(0.0165).epsilon(0.03));
    CHECK(found.value < capacity.saturated_requests_per_second_per_replica.value);
    CHECK(found.lo < found.value);
    CHECK(found.value < found.hi);
    CHECK(capacity.at_requests_per_second.value == found.value);
  }
  question.limits = {0.15, {}, 99};
  question.scenarios.resize(1);
  const ScenarioCapacity capacity = only(question);
  CHECK(capacity.limited_by == CapacityLimit::ttft);
  CHECK(capacity.ttft_seconds->p99.value == Approx(0.15).epsilon(0.1));
  // So long a wait is met until the queue grows.
  question.limits.ttft_seconds = 1e4;
  const ScenarioCapacity patient = only(question);
  CHECK(patient.requests_per_second_per_replica.value == patient.saturated_requests_per_second_per_replica.value);
  CHECK(patient.limited_by == CapacityLimit::max_num_seqs);
}

TEST_CASE("a percentile is that of the requests of all replications together") {
  CapacityQuestion question = question_of({scenario("gamma 2", 2)});
  question.workload.requests_per_second = 20;
  question.seed = 9;
  const ScenarioCapacity capacity = only(question);
  std::vector<double> first;
  for (std::int64_t r = 0; r < 3; ++r) {
    const std::vector<double> of_run = counted_ttft(question, r, 20);
    first.insert(first.end(), of_run.begin(), of_run.end());
  }
  std::sort(first.begin(), first.end());
  CHECK(capacity.ttft_seconds->p99.value == first[712]);  // 713 of 720 are 99%
  CHECK(capacity.ttft_seconds->p50.value == first[359]);
  CHECK(capacity.ttft_seconds->p99.lo <= first[712]);
  CHECK(capacity.ttft_seconds->p99.hi >= first[712]);
}

TEST_CASE("short runs find the load that long ones find, which each by itself would not", "[long]") {
  CapacityQuestion question = question_of({scenario("plain", 0)});
  question.limits.ttft_seconds = 0.15;
  question.replications = 8;
  question.workload.requests = 20'000;
  const double truth = only(question).requests_per_second_per_replica.value;
  question.workload.requests = 300;
  constexpr int seeds = 40;
  double together = 0;
  double alone = 0;
  int inside = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    question.seed = static_cast<std::uint64_t>(seed);
    const SimulatedValue found = only(question).requests_per_second_per_replica;
    together += std::log(found.value / truth) / seeds;
    if (found.lo < truth && truth < found.hi) ++inside;
    LoadSearch search;
    search.lowest = 1;
    search.highest = 200;
    search.guess = {truth, 4};
    for (std::int64_t r = 0; r < 2; ++r) {
      const auto crossing = find_crossing(search, [&](double load) {
        std::vector<double> first = counted_ttft(question, r, load);
        std::sort(first.begin(), first.end());
        return std::log(first[237] / 0.15);
      });
      alone += std::log(crossing->load / truth) / (2 * seeds);
    }
  }
  // Questions differ by 7% of one standard deviation, so that the mean of 40 and the long runs differ by 1.4%: a sound
  // planner is refused with probability 4e-4 over seeds; these are fixed. The percentiles of single runs are refused.
  CHECK(std::abs(together) < 0.05);
  CHECK(alone > 0.05);
  // Intervals hold the load in 87% of questions: fewer than 26 of 40 with probability 1e-4.
  CHECK(inside >= 26);
}

TEST_CASE("limits that no load meets give no load, no replicas and no recommendation") {
  CapacityQuestion question = question_of({scenario("plain", 0)});
  question.workload.requests_per_second = 5;
  question.price_per_gpu_hour = 2;
  // One sequence alone takes 10.5 ms per token.
  question.limits.tpot_seconds = 0.01;
  const CapacityAnswer answer = plan_capacity(question);
  const ScenarioCapacity& capacity = answer.scenarios[0];
  CHECK(capacity.requests_per_second_per_replica.value == 0);
  CHECK(capacity.requests_per_second_per_replica.hi == 0);
  CHECK(capacity.limited_by == CapacityLimit::tpot);
  CHECK_FALSE(capacity.meets_load);
  CHECK_FALSE(capacity.gpus);
  CHECK_FALSE(capacity.cost_per_million_tokens);
  CHECK_THAT(capacity.tpot_seconds->p50.value, Catch::Matchers::WithinRel(0.0105, 0.01));
  CHECK(capacity.at_requests_per_second.value == 0);
  CHECK_FALSE(answer.recommended);
  CHECK(answer.frontier.empty());
}

TEST_CASE("replicas and money follow from the load") {
  CapacityQuestion question = question_of({scenario("plain", 0)});
  question.workload.output_tokens = {40, 0};
  question.limits.tpot_seconds = 0.0165;
  question.gpus_per_replica = 4;
  question.price_per_gpu_hour = 3;
  const double most = only(question).requests_per_second_per_replica.value;

  question.workload.requests_per_second = 2.5 * most;
  const ScenarioCapacity three = only(question);
  CHECK(three.meets_load);
  CHECK(three.replicas == 3);
  CHECK(three.gpus == 12);
  CHECK(three.at_requests_per_second.value == Approx(2.5 * most / 3));
  const double tokens_per_second = 2.5 * most * 40;
  CHECK(*three.cost_per_million_tokens == Approx(12 * 3.0 / 3600 / tokens_per_second * 1e6));
  CHECK(three.output_tokens_per_second.value == Approx(tokens_per_second / 3));

  question.replicas = 2;
  const ScenarioCapacity two = only(question);
  CHECK_FALSE(two.meets_load);
  CHECK(two.gpus == 8);
  CHECK(two.at_requests_per_second.value == two.requests_per_second_per_replica.value);
  CHECK_FALSE(plan_capacity(question).recommended);
  question.replicas = 5;
  CHECK(only(question).at_requests_per_second.value == Approx(most / 2));
}

TEST_CASE("the fewest replicas are those of the largest load, whatever limits it") {
  using Limit = std::optional<double>;
  const std::vector<std::pair<Limit, Limit>> limits = {{}, {0.5, {}}, {30, {}}, {{}, 0.016}, {0.2, 0.014}};
  for (const std::int64_t gamma : {0, 3}) {
    for (const auto& [ttft, tpot] : limits) {
      for (const double load : {1.0, 60.0, 700.0}) {
        CAPTURE(gamma, load, ttft.value_or(0), tpot.value_or(0));
        CapacityQuestion question = question_of({scenario("", gamma)});
        question.limits.ttft_seconds = ttft;
        question.limits.tpot_seconds = tpot;
        question.workload.requests_per_second = load;
        const std::int64_t expected = *only(question).replicas;
        const auto found = fewest_replicas(question, 1'000'000);
        REQUIRE(found);
        // The search for the largest load ends within 1% of it.
        CHECK(std::abs(found->replicas - expected) <= (expected + 49) / 50);
        CHECK(found->median_tpot_seconds > 0);
        CHECK_FALSE(fewest_replicas(question, found->replicas - 1));
      }
    }
  }
}

TEST_CASE("the cheapest scenario is recommended, the faster of two that cost the same") {
  // Speculation pays at small batches only.
  CapacityQuestion question = question_of({scenario("plain", 0), scenario("gamma 1", 1), scenario("gamma 4", 4)});
  question.limits.tpot_seconds = 0.02;
  question.workload.requests_per_second = 1;
  const CapacityAnswer light = plan_capacity(question);
  for (const ScenarioCapacity& capacity : light.scenarios) CHECK(capacity.gpus == 1);
  const auto median = [&](std::size_t i) { return light.scenarios[i].tpot_seconds->p50.value; };
  REQUIRE(light.recommended);
  CHECK(light.frontier == std::vector<std::size_t>{*light.recommended});
  for (std::size_t i = 0; i < 3; ++i) CHECK(median(*light.recommended) <= median(i));
  CHECK(*light.recommended > 0);

  question.workload.requests_per_second = std::nullopt;
  const CapacityAnswer heavy = plan_capacity(question);
  REQUIRE(heavy.recommended);
  for (const ScenarioCapacity& capacity : heavy.scenarios) {
    CHECK(capacity.requests_per_second_per_replica.value <=
          heavy.scenarios[*heavy.recommended].requests_per_second_per_replica.value);
  }
  for (std::size_t i = 1; i < heavy.frontier.size(); ++i) {
    CHECK(heavy.scenarios[heavy.frontier[i]].requests_per_second_per_replica.value <=
          heavy.scenarios[heavy.frontier[i - 1]].requests_per_second_per_replica.value);
    CHECK(heavy.scenarios[heavy.frontier[i]].tpot_seconds->p50.value <
          heavy.scenarios[heavy.frontier[i - 1]].tpot_seconds->p50.value);
  }
}

TEST_CASE("more load never needs fewer replicas, and faster iterations never serve less") {
  CapacityQuestion question = question_of({scenario("gamma 2", 2)});
  question.workload.requests = 150;
  question.limits.tpot_seconds = 0.012;
  std::int64_t before = 0;
  for (const double load : {1.0, 20.0, 60.0, 61.0, 200.0}) {
    question.workload.requests_per_second = load;
    const std::int64_t replicas = *only(question).replicas;
    CHECK(replicas >= before);
    before = replicas;
  }
  CHECK(before > 1);
  question.workload.requests_per_second = std::nullopt;
  double most = 0;
  for (const double factor : {1.2, 1.0, 0.98, 0.8}) {
    question.cost = linear(factor);
    const double found = only(question).requests_per_second_per_replica.value;
    CHECK(found > most);
    most = found;
  }
}

TEST_CASE("a capacity does not depend on the number of threads, and its requests not on the scenarios beside it") {
  CapacityQuestion question = question_of({scenario("plain", 0), scenario("gamma 3", 3)});
  question.limits.tpot_seconds = 0.015;
  const CapacityAnswer one = plan_capacity(question);
  question.threads = 4;
  const CapacityAnswer four = plan_capacity(question);
  question.scenarios.erase(question.scenarios.begin());
  const CapacityAnswer alone = plan_capacity(question);
  for (std::size_t i = 0; i < 2; ++i) {
    check_same(one.scenarios[i].requests_per_second_per_replica, four.scenarios[i].requests_per_second_per_replica);
    check_same(one.scenarios[i].tpot_seconds->p99, four.scenarios[i].tpot_seconds->p99);
  }
  check_same(one.scenarios[1].requests_per_second_per_replica, alone.scenarios[0].requests_per_second_per_replica);
}

TEST_CASE("a schedule drafts at small batches and not at large ones") {
  CapacityScenario schedule = scenario("schedule", 3);
  schedule.engine.schedule = {{1, 3}, {5, 0}};
  CapacityQuestion question = question_of({scenario("plain", 0), scenario("gamma 3", 3), schedule});
  question.workload.requests_per_second = 1;
  question.replicas = 1;
  const CapacityAnswer light = plan_capacity(question);
  const auto at = [&](std::size_t i) { return light.scenarios[i].tpot_seconds->p50.value; };
  CHECK(at(2) == Approx(at(1)).epsilon(0.05));
  CHECK(at(2) < 0.8 * at(0));
  const auto saturated = [&](std::size_t i) {
    return light.scenarios[i].saturated_requests_per_second_per_replica.value;
  };
  CHECK(saturated(2) == Approx(saturated(0)).epsilon(0.03));
}

TEST_CASE("clients are served as they ask, and none is missing") {
  CapacityQuestion question = question_of({scenario("plain", 0), scenario("gamma 3", 3)});
  question.workload.requests.reset();
  question.workload.clients = 8;
  question.workload.outside_seconds = 0.02;
  const CapacityAnswer answer = plan_capacity(question);
  for (const ScenarioCapacity& served : answer.scenarios) {
    INFO(served.scenario.name);
    CHECK(served.meets_load);
    CHECK(served.at_clients == 8);
    CHECK(served.replicas == 1);
    CHECK(served.requests_per_second_per_replica.value == served.saturated_requests_per_second_per_replica.value);
    // Little's law over 64 requests; the mean time to the first token has the burst of the beginning, too: 7%.
    const double seconds = served.ttft_seconds->mean.value + 39 * served.tpot_seconds->mean.value;
    CHECK(served.at_requests_per_second.value * seconds == Approx(8).epsilon(0.07));
    // Rates of a few runs, averaged in two ways.
    CHECK(served.output_tokens_per_second.value == Approx(40 * served.at_requests_per_second.value).epsilon(0.005));
    const auto steady =
        sim::steady_at(question, static_cast<std::size_t>(&served - answer.scenarios.data()), {.clients = 8});
    REQUIRE(steady);
    CHECK(steady->tpot_seconds == Approx(served.tpot_seconds->mean.value).epsilon(0.05));
    REQUIRE(served.gap_seconds);
    CHECK(served.gap_seconds->p50.value > 0.01);
  }
  // The pauses of plain decoding are its times per token, those of drafts longer than theirs.
  CHECK(answer.scenarios[0].gap_seconds->mean.value ==
        Approx(answer.scenarios[0].tpot_seconds->mean.value).epsilon(0.05));
  CHECK(answer.scenarios[1].gap_seconds->mean.value > 1.5 * answer.scenarios[1].tpot_seconds->mean.value);
  CHECK(answer.scenarios[1].at_requests_per_second.value > answer.scenarios[0].at_requests_per_second.value);
  CHECK(answer.recommended == 1);
}

TEST_CASE("as many clients share a replica as its limits allow, and as many replicas serve them") {
  CapacityQuestion question = question_of({scenario("plain", 0)});
  question.workload.requests.reset();
  question.workload.clients = 24;
  const auto tpot_of = [&](std::int64_t clients) {
    CapacityQuestion fewer = question;
    fewer.workload.clients = clients;
    return only(fewer).tpot_seconds->p90.value;
  };
  question.limits.percentile = 90;
  question.limits.tpot_seconds = 0.5 * (tpot_of(5) + tpot_of(6));
  const ScenarioCapacity found = only(question);
  CHECK(found.clients_within_limits == 5);
  CHECK(found.replicas == 5);
  CHECK(found.at_clients == 5);
  CHECK(found.meets_load);
  CHECK(found.limited_by == CapacityLimit::tpot);
  CHECK(found.tpot_seconds->p90.value <= *question.limits.tpot_seconds);

  question.replicas = 4;
  const ScenarioCapacity short_of = only(question);
  CHECK_FALSE(short_of.meets_load);
  CHECK(short_of.at_clients == 6);
  CHECK(short_of.tpot_seconds->p90.value > *question.limits.tpot_seconds);
  question.replicas = 12;
  const ScenarioCapacity ample = only(question);
  CHECK(ample.meets_load);
  CHECK(ample.at_clients == 2);
  CHECK(ample.requests_per_second_per_replica.value > ample.at_requests_per_second.value);

  question.limits.tpot_seconds = 1e-3;
  const ScenarioCapacity too_slow = only(question);
  CHECK(too_slow.clients_within_limits == 0);
  CHECK_FALSE(too_slow.meets_load);
  CHECK(too_slow.requests_per_second_per_replica.value == 0);
  CHECK(too_slow.at_clients == 2);
  CHECK(too_slow.tpot_seconds->p90.value == ample.tpot_seconds->p90.value);
  question.replicas.reset();
  const ScenarioCapacity none = only(question);
  CHECK(none.clients_within_limits == 0);
  CHECK_FALSE(none.replicas);
  CHECK_FALSE(none.meets_load);
}

TEST_CASE("how long clients stay does not decide how many a replica serves to the first token") {
  CapacityQuestion question = question_of({scenario("plain", 0)});
  question.workload.prompt_tokens = {2000, 0.5};
  question.workload.output_tokens = {60, 0.5};
  question.workload.clients = 16;
  const auto p99_of = [&](std::optional<std::int64_t> requests) {
    question.workload.requests = requests;
    return only(question).ttft_seconds->p99.value;
  };
  const double longest = p99_of(1600);
  CHECK(p99_of(std::nullopt) == Approx(longest).epsilon(0.15));

  // Counted from the beginning, the first requests, a tenth of all, would be all of the percentile.
  ServingQuestion whole;
  const auto requests = requests_at_unit_rate(question.workload, 0, 0, 1, 160);
  whole.requests = requests;
  whole.engine = question.scenarios.front().engine;
  whole.cost = question.cost;
  whole.clients = 16;
  whole.warm_up_share = 0;
  std::vector<double> ttft = first_token_seconds(simulate_serving(whole));
  CHECK(percentile_of(ttft, 99) > 1.5 * longest);
}

TEST_CASE("replicas without clients, or with fewer than the fullest, are paid for") {
  CapacityQuestion question = question_of({scenario("plain", 0)});
  question.workload.requests.reset();
  question.price_per_gpu_hour = 3600;
  const auto served_by = [&](std::int64_t replicas, std::int64_t clients) {
    question.replicas = replicas;
    question.workload.clients = clients;
    return only(question);
  };
  const ScenarioCapacity alone = served_by(1, 1), idle = served_by(8, 4), uneven = served_by(2, 3),
                         even = served_by(1, 2);
  CHECK(*idle.cost_per_million_tokens == Approx(2 * *alone.cost_per_million_tokens));
  CHECK(*uneven.cost_per_million_tokens == Approx(4.0 / 3 * *even.cost_per_million_tokens));
}

TEST_CASE("a capacity question that asks for nothing sensible is refused") {
  const auto refused = [](const std::function<void(CapacityQuestion&)>& spoil) {
    CapacityQuestion question = question_of({scenario("gamma 1", 1)});
    spoil(question);
    CHECK_THROWS_AS(plan_capacity(question), std::logic_error);
  };
  refused([](CapacityQuestion& question) { question.cost = nullptr; });
  refused([](CapacityQuestion& question) { question.scenarios.clear(); });
  refused([](CapacityQuestion& question) { question.acceptance.clear(); });
  refused([](CapacityQuestion& question) { question.workload.requests = 99; });
  refused([](CapacityQuestion& question) { question.workload.requests_per_second = 0.0; });
  refused([](CapacityQuestion& question) { question.workload.prompt_tokens.mean = 0; });
  refused([](CapacityQuestion& question) { question.workload.output_tokens.variation = std::nan(""); });
  refused([](CapacityQuestion& question) { question.workload.output_tokens.at_most = 0; });
  refused([](CapacityQuestion& question) { question.workload.recorded = {{0, 1, 1}}; });
  refused([](CapacityQuestion& question) { question.workload.recorded = {{1, 1, 1}, {1, 1, 1}}; });
  refused([](CapacityQuestion& question) { question.limits.percentile = 100; });
  refused([](CapacityQuestion& question) { question.limits.tpot_seconds = 0.0; });
  refused([](CapacityQuestion& question) { question.replications = 0; });
  refused([](CapacityQuestion& question) { question.threads = 0; });
  refused([](CapacityQuestion& question) { question.gpus_per_replica = 0; });
  refused([](CapacityQuestion& question) { question.replicas = 0; });
  refused([](CapacityQuestion& question) { question.workload.clients = 0; });
  refused([](CapacityQuestion& question) { question.workload.outside_seconds = -1; });
  refused([](CapacityQuestion& question) {
    question.workload.clients = 2;
    question.workload.requests_per_second = 1;
  });
  refused([](CapacityQuestion& question) { question.price_per_gpu_hour = -1; });
  refused([](CapacityQuestion& question) { question.scenarios[0].engine.cache_blocks = 1; });
}
