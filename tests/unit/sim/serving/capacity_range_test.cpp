#include "sim/serving/capacity_range.hpp"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <memory>
#include <random>
#include <stdexcept>
#include <utility>

#include "sim/serving/recorded_workload.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;

namespace {

/// An iteration takes 10 ms and 0.1 ms a position; replicate i of 81 takes (60 + i)/100 of that.
class ScaledCost final : public cost::IterationCost {
 public:
  double seconds(const cost::Iteration& iteration) const override {
    return 0.01 + 1e-4 * (iteration.sequences * static_cast<double>(iteration.gamma + 1) + iteration.prompt_tokens);
  }
  std::size_t replicates() const override { return 81; }
  double seconds_of_replicate(std::size_t index, const cost::Iteration& iteration) const override {
    return seconds(iteration) * static_cast<double>(60 + index) / 100;
  }
};

/// The cost of replicate `index` alone, or of an index between two.
class OneReplicate final : public cost::IterationCost {
 public:
  explicit OneReplicate(double index) : index_(index) {}
  double seconds(const cost::Iteration& iteration) const override {
    return ScaledCost().seconds(iteration) * (60 + index_) / 100;
  }
  double seconds_of_replicate(std::size_t, const cost::Iteration& iteration) const override {
    return seconds(iteration);
  }

 private:
  double index_;
};

/// The replicate that takes as long as the mean of several.
double mean_index(const std::vector<std::size_t>& replicates) {
  double sum = 0;
  for (const std::size_t index : replicates) sum += static_cast<double>(index);
  return sum / static_cast<double>(replicates.size());
}

/// Replicate i of 3 takes i times as long.
class PartlyNothing final : public cost::IterationCost {
 public:
  double seconds(const cost::Iteration& iteration) const override { return ScaledCost().seconds(iteration); }
  std::size_t replicates() const override { return 3; }
  double seconds_of_replicate(std::size_t index, const cost::Iteration& iteration) const override {
    return static_cast<double>(index) * seconds(iteration);
  }
};

/// 20 requests/s, plainly and with two drafts of which 80% are accepted, at most 30 ms per token.
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

sim::CapacityRange range_of(const sim::CapacityQuestion& question,
                            const std::vector<std::vector<sim::RequestAcceptance>>& acceptances = {}) {
  return sim::over_versions(question, sim::plan_capacity(question), acceptances);
}

/// Each of two searches ends within 1%.
bool holds(const sim::SimulatedValue& range, const sim::SimulatedValue& value) {
  return range.lo <= 1.01 * value.value && value.value <= 1.01 * range.hi;
}

}  // namespace

TEST_CASE("a capacity's intervals reach what the costs at both tails of their replicates give") {
  const sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  const sim::CapacityAnswer alone = sim::plan_capacity(question);
  const sim::CapacityRange range = range_of(question);
  // 2.5% and 97.5% of 81 replicates: Harrell and Davis's estimates lie within one of the third on either side.
  REQUIRE(range.cost_ends == 4);
  CHECK(mean_index(range.versions[1].replicates) == Approx(2).margin(1));
  CHECK(mean_index(range.versions[2].replicates) == Approx(78).margin(1));

  for (const std::size_t version : {1, 2}) {
    const double index = mean_index(range.versions[version].replicates);
    const sim::CapacityAnswer other = sim::plan_capacity(question_for(std::make_shared<OneReplicate>(index)));
    for (std::size_t i = 0; i < 2; ++i) {
      const sim::ScenarioCapacity& ranged = range.answer.scenarios[i];
      CHECK(ranged.requests_per_second_per_replica.value == alone.scenarios[i].requests_per_second_per_replica.value);
      CHECK(holds(ranged.requests_per_second_per_replica, other.scenarios[i].requests_per_second_per_replica));
      REQUIRE(range.gpus[i]);
      REQUIRE(other.scenarios[i].gpus);
      CHECK(range.gpus[i]->lo <= *other.scenarios[i].gpus);
      CHECK(*other.scenarios[i].gpus <= range.gpus[i]->hi);
      CHECK_FALSE(range.gpus[i]->some_never);
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    REQUIRE(range.gpus_by_case[i].size() == 7);
    CHECK(range.gpus_by_case[i][0] == alone.scenarios[i].gpus);
    CHECK(*range.gpus_by_case[i][1] <= *range.gpus_by_case[i][2]);
  }
  // 40% of the time more or less is far more than the simulation's own error.
  const sim::SimulatedValue& widened = range.answer.scenarios[0].requests_per_second_per_replica;
  const sim::SimulatedValue& own = alone.scenarios[0].requests_per_second_per_replica;
  CHECK(widened.hi - widened.lo > 2 * (own.hi - own.lo));
  CHECK(range.gpus[0]->lo < range.gpus[0]->hi);
}

TEST_CASE("a capacity's intervals reach what the ends of the acceptance give") {
  const sim::CapacityQuestion question = question_for(std::make_shared<OneReplicate>(40));
  const std::vector<sim::RequestAcceptance> low = {{{0.4}}};
  const sim::CapacityRange range = range_of(question, {low});
  CHECK(range.cost_ends == 0);
  sim::CapacityQuestion at_low = question;
  at_low.acceptance = low;
  const sim::CapacityAnswer other = sim::plan_capacity(at_low);
  CHECK(holds(range.answer.scenarios[1].requests_per_second_per_replica,
              other.scenarios[1].requests_per_second_per_replica));
  CHECK(range.answer.scenarios[1].requests_per_second_per_replica.lo <
        range.answer.scenarios[1].requests_per_second_per_replica.value);
}

TEST_CASE(
    "the ends of a stated range of acceptance hold whatever the cost is, those of an interval do not meet its ends") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  const std::vector<std::vector<sim::RequestAcceptance>> ends = {{{{0.5}}}, {{{0.95}}}};
  const sim::CapacityRange apart = range_of(question, ends);
  question.acceptance_is_range = true;
  const sim::CapacityRange range = range_of(question, ends);
  // Four ends of the cost, two of the acceptance; two together, or four.
  CHECK(apart.gpus_by_case[1].size() == 11);
  REQUIRE(range.gpus_by_case[1].size() == 13);
  CHECK(sim::most_versions(question, ends) == 10);
  for (const std::vector<sim::RequestAcceptance>& end : ends) {
    sim::CapacityQuestion alone = question;
    alone.acceptance_is_range = false;
    alone.acceptance = end;
    const sim::CapacityRange its = range_of(alone);
    const auto& wide = range.answer.scenarios[1].requests_per_second_per_replica;
    for (const double rate : its.rates_by_version[1]) {
      CHECK(wide.lo <= rate);
      CHECK(rate <= wide.hi);
    }
  }
  // Plain decoding accepts nothing, and drafts are not faster than it in every version.
  CHECK(range.rates_by_version[0][5] == range.rates_by_version[0][0]);
  CHECK(range.rates_by_version[0].size() == 11);
  CHECK(sim::is_faster_in_all(range, 1, 0));
  CHECK_FALSE(sim::is_faster_in_all(range, 0, 1));
}

namespace {

/// Log-normal: replicate i of 400 takes exp(spread z_i) of ScaledCost, z_i at the quantiles of a normal law.
class LogNormalCost final : public cost::IterationCost {
 public:
  explicit LogNormalCost(double spread) : spread_(spread) {}
  double seconds(const cost::Iteration& iteration) const override { return ScaledCost().seconds(iteration); }
  std::size_t replicates() const override { return 400; }
  double seconds_of_replicate(std::size_t index, const cost::Iteration& iteration) const override {
    const double z = boost::math::quantile(boost::math::normal(), (static_cast<double>(index) + 0.5) / 400);
    return seconds(iteration) * std::exp(spread_ * z);
  }

 private:
  double spread_;
};

/// A cost that takes so many times as long as ScaledCost.
class TimesAsLong final : public cost::IterationCost {
 public:
  explicit TimesAsLong(double factor) : factor_(factor) {}
  double seconds(const cost::Iteration& iteration) const override { return factor_ * ScaledCost().seconds(iteration); }
  double seconds_of_replicate(std::size_t, const cost::Iteration& iteration) const override {
    return seconds(iteration);
  }

 private:
  double factor_;
};

}  // namespace

TEST_CASE("the intervals of a capacity hold 95% where cost and acceptance err independently of each other", "[long]") {
  // Errors of about the same effect on the rate of gamma 2: the case in which either alone holds the fewest.
  constexpr double cost_spread = 0.06, alpha = 0.6, alpha_spread = 0.08;
  sim::CapacityQuestion question = question_for(std::make_shared<LogNormalCost>(cost_spread));
  question.workload.requests_per_second.reset();
  question.limits = {};
  question.acceptance = {{{alpha}}};
  const auto at = [&](double deviations) {
    return std::vector<sim::RequestAcceptance>{{{alpha + deviations * alpha_spread}}};
  };
  const sim::CapacityRange range = range_of(question, {at(-1.96), at(1.96)});
  const sim::SimulatedValue& held_by = range.answer.scenarios[1].requests_per_second_per_replica;
  const std::vector<double>& rates = range.rates_by_version[1];
  const auto [least, most] = std::minmax_element(rates.begin(), rates.begin() + 7);
  std::mt19937_64 random(4);
  std::normal_distribution<double> normal;
  int held = 0, held_alone = 0;
  for (int truth = 0; truth < 600; ++truth) {
    sim::CapacityQuestion its = question;
    its.scenarios = {question.scenarios[1]};
    its.cost = std::make_shared<TimesAsLong>(std::exp(cost_spread * normal(random)));
    its.acceptance = at(normal(random));
    const double rate = sim::plan_capacity(its).scenarios[0].requests_per_second_per_replica.value;
    held += held_by.lo <= rate && rate <= held_by.hi ? 1 : 0;
    held_alone += *least <= rate && rate <= *most ? 1 : 0;
  }
  // At 95% fewer than 549 of 600 are held with probability 1e-4; the versions with one error alone, the twin, hold
  // about 83%, more than 534 with probability 1e-4.
  CHECK(held >= 549);
  CHECK(held <= 588);
  CHECK(held_alone <= 534);
}

TEST_CASE("the intervals of a capacity hold 95% where rounds and prompts are priced with errors of their own",
          "[long]") {
  constexpr double spread = 0.2;
  const auto at = [](double rounds, double prompts, const cost::Iteration& iteration) {
    return rounds * (0.01 + 1e-4 * iteration.sequences * static_cast<double>(iteration.gamma + 1)) +
           prompts * 2e-4 * iteration.prompt_tokens;
  };
  class TwoFactors final : public cost::IterationCost {
   public:
    TwoFactors(std::vector<std::pair<double, double>> factors, decltype(at) price)
        : factors_(std::move(factors)), price_(price) {}
    double seconds(const cost::Iteration& iteration) const override {
      return price_(factors_[0].first, factors_[0].second, iteration);
    }
    /// The first pair is the cost itself.
    std::size_t replicates() const override { return factors_.size() - 1; }
    double seconds_of_replicate(std::size_t index, const cost::Iteration& iteration) const override {
      return price_(factors_[index + 1].first, factors_[index + 1].second, iteration);
    }

   private:
    std::vector<std::pair<double, double>> factors_;
    decltype(at) price_;
  };
  std::mt19937_64 random(8);
  std::normal_distribution<double> normal;
  const auto drawn = [&] { return std::exp(spread * normal(random)); };
  std::vector<std::pair<double, double>> factors = {{1, 1}};
  for (int i = 0; i < 2000; ++i) factors.emplace_back(drawn(), drawn());
  sim::CapacityQuestion question = question_for(std::make_shared<TwoFactors>(factors, at));
  question.workload.requests_per_second.reset();
  question.limits = {};
  question.scenarios.resize(1);
  const auto rate_at = [&](double rounds, double prompts) {
    sim::CapacityQuestion its = question;
    its.cost = std::make_shared<TwoFactors>(std::vector<std::pair<double, double>>{{rounds, prompts}}, at);
    return sim::plan_capacity(its).scenarios[0].requests_per_second_per_replica.value;
  };
  const std::vector<double> rates = range_of(question).rates_by_version[0];
  const auto [least, most] = std::minmax_element(rates.begin(), rates.end());
  const double slow = rate_at(std::exp(1.96 * spread), 1), fast = rate_at(std::exp(-1.96 * spread), 1);
  int held = 0, held_by_rounds = 0;
  for (int truth = 0; truth < 600; ++truth) {
    const double rounds = drawn();
    const double rate = rate_at(rounds, drawn());
    held += *least <= rate && rate <= *most ? 1 : 0;
    held_by_rounds += slow <= rate && rate <= fast ? 1 : 0;
  }
  // At 95% fewer than 549 of 600 are held with probability 1e-4. Ends by rounds alone, the twin, hold about 83%: more
  // than 534 with probability 1e-4.
  CHECK(held >= 549);
  CHECK(held_by_rounds <= 534);
}

TEST_CASE("the ends of a capacity's intervals hardly depend on the seed of its requests", "[long]") {
  // Each of 200 replicates has an error at all batches, and one that wanders over them, so that one that stands at a
  // tail of the mean batch of these requests does not at that of others.
  class Wandering final : public cost::IterationCost {
   public:
    double seconds(const cost::Iteration& iteration) const override { return ScaledCost().seconds(iteration); }
    std::size_t replicates() const override { return 200; }
    double seconds_of_replicate(std::size_t index, const cost::Iteration& iteration) const override {
      std::mt19937_64 random(index + 1);
      std::normal_distribution<double> normal;
      const double everywhere = 0.15 * normal(random), phase = 10 * normal(random), pitch = 60 * normal(random);
      const double here = 0.15 * std::cos(phase + pitch * std::log(std::max(1.0, iteration.sequences)));
      return std::exp(everywhere + here) * seconds(iteration);
    }
  };
  /// The replicate alone that stands at 2.5% of an iteration's price.
  class Alone final : public cost::IterationCost {
   public:
    explicit Alone(const cost::Iteration& at) {
      std::vector<std::pair<double, std::size_t>> order;
      for (std::size_t i = 0; i < 200; ++i) order.emplace_back(Wandering().seconds_of_replicate(i, at), i);
      std::sort(order.begin(), order.end());
      index_ = order[4].second;
    }
    double seconds(const cost::Iteration& iteration) const override {
      return Wandering().seconds_of_replicate(index_, iteration);
    }
    double seconds_of_replicate(std::size_t, const cost::Iteration& iteration) const override {
      return seconds(iteration);
    }

   private:
    std::size_t index_ = 0;
  };
  sim::CapacityQuestion question = question_for(std::make_shared<Wandering>());
  question.workload.requests_per_second.reset();
  question.workload.output_tokens.variation = 1;
  question.workload.requests = 100;
  question.scenarios.resize(1);
  const int seeds = 60;
  double sum = 0, squares = 0, sum_alone = 0, squares_alone = 0;
  for (int seed = 1; seed <= seeds; ++seed) {
    question.seed = static_cast<std::uint64_t>(seed);
    const sim::CapacityRange range = range_of(question);
    sim::CapacityQuestion single = question;
    single.cost = std::make_shared<Alone>(range.answer.scenarios[0].largest_iteration);
    const double own = range.rates_by_version[0][0];
    const double end = std::log(range.rates_by_version[0][1] / own);
    const double alone = std::log(sim::plan_capacity(single).scenarios[0].requests_per_second_per_replica.value / own);
    sum += end;
    squares += end * end;
    sum_alone += alone;
    squares_alone += alone * alone;
  }
  const double scatter = std::sqrt(squares / seeds - std::pow(sum / seeds, 2));
  const double scatter_alone = std::sqrt(squares_alone / seeds - std::pow(sum_alone / seeds, 2));
  // The true ratio is about .7, and that of 60 seeds has a standard error of 13%: above .95 once in 80. The seeds are
  // fixed.
  INFO(scatter << " against " << scatter_alone);
  CHECK(scatter < 0.95 * scatter_alone);
}

TEST_CASE("an exact cost and acceptance leave a capacity's intervals as the simulation gave them") {
  const sim::CapacityQuestion question = question_for(std::make_shared<OneReplicate>(40));
  const sim::CapacityAnswer alone = sim::plan_capacity(question);
  const sim::CapacityRange range = range_of(question);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(range.answer.scenarios[i].requests_per_second_per_replica.lo ==
          alone.scenarios[i].requests_per_second_per_replica.lo);
    CHECK(range.gpus[i]->lo == *alone.scenarios[i].gpus);
    CHECK(range.gpus[i]->hi == *alone.scenarios[i].gpus);
  }
  CHECK_THROWS_AS(sim::over_versions(question, {}, {}), std::invalid_argument);
}

TEST_CASE("where the slow end of a cost meets no limit, no number of GPUs is enough there") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  // One sequence alone takes 10.1 ms; 1.38 times that is above the limit, and of two drafts' 10.3 ms 80% help.
  question.limits.tpot_seconds = 0.0125;
  const sim::CapacityRange range = range_of(question);
  CHECK(range.gpus[0]->some_never);
  CHECK_FALSE(range.gpus[1]->some_never);
}

TEST_CASE("times at a load asked for hold those of every case at that load, where it breaks the limits, too") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  const sim::CapacityRange range = range_of(question);
  sim::CapacityQuestion slow = question;
  const double slowest = std::max(mean_index(range.versions[2].replicates), mean_index(range.versions[4].replicates));
  slow.cost = std::make_shared<OneReplicate>(slowest);
  for (std::size_t i = 0; i < 2; ++i) {
    const sim::ScenarioCapacity& whole = range.answer.scenarios[i];
    const std::vector<double> load = {whole.at_requests_per_second};
    const sim::ReplicaAtLoad there = sim::replica_at_loads(slow, i, load).front();
    INFO(whole.scenario.name);
    CHECK((i > 0 || there.tpot_seconds->p99.value > *question.limits.tpot_seconds));
    CHECK(whole.tpot_seconds->p99.hi == Approx(there.tpot_seconds->p99.value).epsilon(1e-12));
    CHECK(whole.tpot_seconds->p50.hi == Approx(there.tpot_seconds->p50.value).epsilon(1e-12));
    CHECK(whole.mean_batch.hi >= there.mean_batch.value);
    CHECK(range.overloaded[i] == 0);
  }
}

TEST_CASE("times at a load have no upper end where a case's queue grows at it") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  question.limits = {};
  const double most = sim::plan_capacity(question).scenarios[0].requests_per_second_per_replica.value;
  question.workload.requests_per_second = 0.9 * most;
  question.replicas = 1;
  const sim::CapacityRange range = range_of(question);
  const sim::ScenarioCapacity& plain = range.answer.scenarios[0];
  REQUIRE(plain.meets_load);
  CHECK(range.overloaded[0] == 2);
  // Five versions, and both ends of the simulation's interval, which two replications leave wide.
  CHECK(range.gpus_by_case[0] ==
        std::vector<std::optional<std::int64_t>>{2, 2, std::nullopt, 2, std::nullopt, std::nullopt, 2});
  for (const sim::SimulatedValue& value :
       {plain.tpot_seconds->p50, plain.ttft_seconds->p99, plain.gap_seconds->mean, plain.mean_batch}) {
    CHECK(std::isinf(value.hi));
    CHECK(value.lo < value.value);
  }
  // It puts out what it takes of the load.
  sim::CapacityQuestion slow = question;
  slow.cost = std::make_shared<OneReplicate>(mean_index(range.versions[2].replicates));
  const double taken = sim::plan_capacity(slow).scenarios[0].saturated_requests_per_second_per_replica.value;
  const sim::SimulatedValue& output = plain.output_tokens_per_second_per_replica;
  CHECK(output.lo <= output.value * taken / (0.9 * most) * (1 + 1e-12));
}

TEST_CASE("ranges per replica do not depend on the load asked for or the number of replicas") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  const std::vector<std::vector<sim::RequestAcceptance>> acceptances = {{{{0.6}}}, {{{0.9}}}};
  const sim::CapacityRange at_load = range_of(question, acceptances);
  const auto check_same = [&](const sim::CapacityRange& other) {
    REQUIRE(other.versions.size() == at_load.versions.size());
    for (std::size_t v = 0; v < other.versions.size(); ++v)
      CHECK(other.versions[v].replicates == at_load.versions[v].replicates);
    CHECK(other.rates_by_version == at_load.rates_by_version);
    for (std::size_t i = 0; i < 2; ++i) {
      const sim::SimulatedValue& ours = at_load.answer.scenarios[i].requests_per_second_per_replica;
      const sim::SimulatedValue& theirs = other.answer.scenarios[i].requests_per_second_per_replica;
      CHECK(theirs.lo == ours.lo);
      CHECK(theirs.hi == ours.hi);
      CHECK(other.answer.scenarios[i].largest_iteration.sequences ==
            at_load.answer.scenarios[i].largest_iteration.sequences);
    }
  };
  question.replicas = 1;
  check_same(range_of(question, acceptances));
  question.workload.requests_per_second = 1e4;
  REQUIRE_FALSE(sim::plan_capacity(question).recommended);
  check_same(range_of(question, acceptances));
  question.workload.requests_per_second = 0.5;
  check_same(range_of(question, acceptances));
  question.workload.requests_per_second.reset();
  question.replicas.reset();
  check_same(range_of(question, acceptances));
}

TEST_CASE("replicates that price iterations at nothing are no versions of a cost") {
  const sim::CapacityRange range = range_of(question_for(std::make_shared<PartlyNothing>()));
  REQUIRE(range.cost_ends == 4);
  for (const sim::CapacityVersion& version : range.versions) {
    for (const std::size_t index : version.replicates) CHECK(index > 0);
  }
}

TEST_CASE("GPUs of runs with other random numbers lie within the range of one, which its cases of the cost do not hold",
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
  int held = 0, held_by_versions = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    question.seed = seed;
    const sim::CapacityRange range = range_of(question);
    REQUIRE(range.gpus_by_case[0].size() == 3);
    held += range.gpus[0]->lo <= 24 && 24 <= range.gpus[0]->hi ? 1 : 0;
    held_by_versions += range.gpus_by_case[0][0] == 24 ? 1 : 0;
  }
  // Fewer than 33 of 40 intervals of 95% hold in one of 5,000 runs.
  CHECK(held >= 33);
  CHECK(held_by_versions < 30);
}

TEST_CASE("plain decoding over the versions of another range has the cases that it has in that range") {
  const sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  const sim::CapacityRange both = range_of(question, {{{{0.4}}}});
  sim::CapacityQuestion alone = question;
  alone.scenarios = {question.scenarios[0]};
  alone.acceptance.clear();
  const sim::CapacityRange plain = sim::over_versions_of(both, alone, sim::plan_capacity(alone));
  CHECK(plain.gpus_by_case[0] == both.gpus_by_case[0]);
  CHECK(plain.rates_by_version[0] == both.rates_by_version[0]);
  CHECK(plain.median_tpot_by_version[0] == both.median_tpot_by_version[0]);
  CHECK(plain.answer.scenarios[0].requests_per_second_per_replica.lo ==
        both.answer.scenarios[0].requests_per_second_per_replica.lo);
  CHECK(plain.cost_ends == both.cost_ends);
  CHECK_FALSE(plain.interrupted);
  CHECK_THROWS_AS(sim::over_versions_of(both, alone, {}), std::invalid_argument);
}

TEST_CASE("cases with fewer and with more GPUs are counted, and no number of them is more than any") {
  sim::CapacityRange range;
  range.gpus_by_case = {{2, 4, 4, std::nullopt, 8, std::nullopt}, {4, 4, 2, 8, std::nullopt, std::nullopt}, {1}};
  const sim::GpuComparison ours = sim::compare_gpus(range, 0, 1), theirs = sim::compare_gpus(range, 1, 0);
  CHECK(ours.fewer == 2);
  CHECK(ours.more == 2);
  CHECK(ours.cases == 6);
  CHECK(theirs.fewer == ours.more);
  CHECK(theirs.more == ours.fewer);
  CHECK(sim::compare_gpus(range, 1, 1).fewer == 0);
  CHECK_THROWS_AS(sim::compare_gpus(range, 0, 2), std::invalid_argument);
  CHECK_THROWS_AS(sim::compare_gpus(range, 3, 0), std::out_of_range);
}

TEST_CASE("a scenario within what was measured is preferred to a cheaper one beyond that gains too little") {
  sim::CapacityQuestion question = question_for(std::make_shared<OneReplicate>(40));
  question.scenarios.push_back({"gamma 3", {}});
  question.scenarios[2].engine = question.scenarios[1].engine;
  question.scenarios[2].engine.schedule = {{1, 3}};
  const sim::CapacityAnswer free = sim::plan_capacity(question);
  REQUIRE(free.recommended == 2);
  CHECK_FALSE(free.passed_over);
  const sim::ScenarioCapacity &two = free.scenarios[1], &three = free.scenarios[2];
  REQUIRE(two.gpus == three.gpus);
  const double loss = 1 - three.tpot_seconds->p50.value / two.tpot_seconds->p50.value;
  REQUIRE((loss > 0 && loss < 0.5));

  question.scenarios[2].extrapolated = true;
  question.prefer_measured = 1.01 * loss;
  CHECK(sim::plan_capacity(question).recommended == 1);
  CHECK(sim::plan_capacity(question).passed_over == 2);
  question.prefer_measured = 0.99 * loss;
  CHECK(sim::plan_capacity(question).recommended == 2);
  CHECK_FALSE(sim::plan_capacity(question).passed_over);
}

TEST_CASE("the next measurement is of what most of a capacity's uncertainty comes from") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  const std::vector<sim::RequestAcceptance> near = {{{0.79}}}, far = {{{0.05}}};
  const auto of_cost = sim::capacity_doubt(question, range_of(question, {near}), 1);
  REQUIRE(of_cost);
  CHECK(of_cost->source == sim::UncertaintySource::cost);
  CHECK(of_cost->next.gamma == 2);
  CHECK(of_cost->next.with_baseline);
  CHECK(of_cost->next.context == Approx(50 + 40 / 2));
  CHECK(of_cost->next.batch >= 1);
  const auto of_plain = sim::capacity_doubt(question, range_of(question, {far}), 0);
  REQUIRE(of_plain);
  CHECK(of_plain->source == sim::UncertaintySource::cost);
  CHECK(of_plain->next.gamma == 0);
  CHECK_FALSE(of_plain->next.with_baseline);

  sim::CapacityQuestion exact = question_for(std::make_shared<OneReplicate>(40));
  CHECK_FALSE(sim::capacity_doubt(exact, range_of(exact), 1));
  // Something that no version holds.
  for (const auto& [asked, range] :
       {std::pair(question, range_of(question, {near})), std::pair(exact, range_of(exact))}) {
    const auto known = sim::capacity_doubt(asked, range, 1, sim::UncertaintySource::acceptance);
    REQUIRE(known);
    CHECK(known->source == sim::UncertaintySource::acceptance);
    CHECK(known->next.gamma == 2);
    CHECK_FALSE(known->next.with_baseline);
  }
  const auto of_acceptance = sim::capacity_doubt(exact, range_of(exact, {far}), 1);
  REQUIRE(of_acceptance);
  CHECK(of_acceptance->source == sim::UncertaintySource::acceptance);
  CHECK_FALSE(of_acceptance->next.with_baseline);
  exact.scenarios[1].extrapolated = true;
  CHECK(sim::capacity_doubt(exact, range_of(exact), 1)->source == sim::UncertaintySource::extrapolation);
}

TEST_CASE("a replica at a load has the figures that a capacity at that load has, with and without other versions") {
  sim::CapacityQuestion question = question_for(std::make_shared<ScaledCost>());
  question.price_per_gpu_hour = 3;
  question.replicas = 2;
  question.limits = {};
  const sim::CapacityRange range = range_of(question);
  const std::vector<double> loads = {10, 1};
  for (std::size_t i = 0; i < 2; ++i) {
    const sim::ScenarioCapacity& whole = range.answer.scenarios[i];
    REQUIRE(whole.at_requests_per_second == 10);
    const std::vector<sim::ReplicaAtLoad> ranged = sim::replica_over_versions(question, i, loads, range.versions);
    REQUIRE(ranged.size() == 2);
    CHECK(ranged[0].tpot_seconds->p99.value == whole.tpot_seconds->p99.value);
    CHECK(ranged[0].tpot_seconds->p99.lo == whole.tpot_seconds->p99.lo);
    CHECK(ranged[0].ttft_seconds->p50.hi == whole.ttft_seconds->p50.hi);
    CHECK(ranged[0].mean_batch.lo == whole.mean_batch.lo);
    CHECK(ranged[0].output_tokens_per_second.hi == whole.output_tokens_per_second_per_replica.hi);
    CHECK(ranged[0].cost_per_million_tokens == whole.cost_per_million_tokens);
    CHECK(ranged[0].steady->tpot_seconds == whole.steady->tpot_seconds);
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

TEST_CASE(
    "an interrupted capacity gives the scenarios that were finished, and no interval of those without all versions") {
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

  const sim::CapacityRange range = sim::over_versions(question, whole, {}, interrupted_after(0));
  CHECK(range.interrupted);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(range.rates_by_version[i].size() == 1);
    CHECK_FALSE(range.gpus[i]);
    const sim::SimulatedValue& rate = range.answer.scenarios[i].requests_per_second_per_replica;
    CHECK(rate.lo == 0);
    CHECK(std::isinf(rate.hi));
  }
  CHECK_FALSE(sim::capacity_doubt(question, range, 0));
  // All versions of both scenarios but the last one of the second: four of the five are complete.
  sim::over_versions(question, whole, {}, interrupted_after(1'000'000));
  const sim::CapacityRange half = sim::over_versions(question, whole, {}, interrupted_after(asked - 1));
  CHECK(half.interrupted);
  for (std::size_t i = 0; i < 2; ++i) CHECK(half.gpus_by_case[i].size() == 4);
}
