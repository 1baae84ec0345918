#include "analysis/planning/contradicted_alpha.hpp"

#include <cmath>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec;
using planning::CountedRun;
using traces::ServingCounts;

namespace {

/// Rounds of which the drafts at 1, 2, ... were accepted at these rates, given that all before were.
ServingCounts run(const std::vector<double>& rates, double rounds, bool positions = true) {
  ServingCounts counts;
  counts.unit = traces::CountUnit::run;
  counts.shape = traces::DraftShape::chain;
  counts.gamma = static_cast<std::int64_t>(rates.size());
  counts.rounds = rounds;
  counts.drafted = rounds * static_cast<double>(rates.size());
  double alive = rounds, accepted = 0;
  for (const double rate : rates) {
    alive = std::round(alive * rate);
    accepted += alive;
    if (positions) counts.accepted_at.push_back(alive);
  }
  counts.accepted = accepted;
  return counts;
}

}  // namespace

TEST_CASE(
    "one rate is contradicted by rates that differ by position by more than the sampling of rounds that resemble") {
  const ServingCounts falling = run({0.8, 0.7}, 2000), constant = run({0.8, 0.8}, 2000), few = run({0.8, 0.7}, 100);
  const auto found = planning::contradicted_alpha(std::vector<CountedRun>{{&falling, 2}});
  REQUIRE(found);
  CHECK(found->by_position);
  CHECK(found->first_at == 1);
  CHECK(found->second_at == 2);
  CHECK(found->first_rate == Approx(0.8));
  CHECK(found->second_rate == Approx(0.7));
  // Binomial standard errors at a design effect of 3, one pair.
  const double error = std::sqrt(3 * (0.8 * 0.2 / 2000 + 0.7 * 0.3 / 1600));
  CHECK(found->p_value == Approx(std::erfc(0.1 / error / std::sqrt(2))).epsilon(0.3));
  CHECK_FALSE(planning::contradicted_alpha(std::vector<CountedRun>{{&constant, 2}}));
  CHECK_FALSE(planning::contradicted_alpha(std::vector<CountedRun>{{&few, 2}}));
  CHECK_FALSE(planning::contradicted_alpha({}));
}

TEST_CASE("without counts by position one rate is contradicted by the tokens per step of two gammas") {
  // 1 + .8 = 1.8 tokens at gamma 1; 1 + .8 + .8 .5 + .8 .25 = 2.4 at gamma 3, as many as a rate of .668 gives.
  const ServingCounts one = run({0.8}, 4000, false), three = run({0.8, 0.5, 0.5}, 4000, false);
  const auto found = planning::contradicted_alpha(std::vector<CountedRun>{{&one, 1}, {&three, 3}});
  REQUIRE(found);
  CHECK_FALSE(found->by_position);
  CHECK(found->first_at == 1);
  CHECK(found->second_at == 3);
  CHECK(found->first_rate == Approx(0.8));
  const double rate = found->second_rate;
  CHECK(rate + rate * rate + rate * rate * rate == Approx(1.4));
  const ServingCounts alike = run({0.8, 0.8, 0.8}, 4000, false);
  CHECK_FALSE(planning::contradicted_alpha(std::vector<CountedRun>{{&one, 1}, {&alike, 3}}));
  ServingCounts mean = run({0.8, 0.5, 0.5}, 4000, false);
  mean.rounds.reset();
  mean.drafted.reset();
  mean.accepted.reset();
  mean.tokens_per_round = 2.4;  // the mean of nobody knows how many
  // It errs as published means do, by far less than this.
  CHECK(planning::contradicted_alpha(std::vector<CountedRun>{{&one, 1}, {&mean, 3}}));
}
