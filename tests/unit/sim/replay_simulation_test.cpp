#include "sim/replay_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sim/policies.hpp"
#include "tests/support/catch.hpp"

using namespace specdec::sim;

namespace {

/// Algorithm 1 over one text as one would write it down.
std::vector<ReplayedRound> play(const ReplayedText& text, const ReplayedPolicy& policy, std::uint64_t seed) {
  std::vector<ReplayedRound> rounds;
  const std::size_t depths = static_cast<std::size_t>(text.depths), length = text.acceptance.size() / depths;
  for (std::size_t start = 0; start < length;) {
    const auto limit = std::min<std::int64_t>(policy.gamma, static_cast<std::int64_t>(length - start) - 1);
    ReplayedRound round{.place = static_cast<std::int64_t>(start)};
    double product = 1;
    bool more = true;
    while (more && round.accepted < limit) {
      const std::size_t i = start + static_cast<std::size_t>(round.accepted);
      const double a = text.acceptance[i * depths + std::min(static_cast<std::size_t>(round.accepted), depths - 1)];
      const RandomStream stream(seed, static_cast<std::uint64_t>(text.sequence));
      if (stream.uniform(static_cast<std::int64_t>(i), 0, Purpose::acceptance) >= a) {
        round.rejected = true;
        break;
      }
      ++round.accepted;
      product *= text.draft_probability[i];
      if (policy.policy.stops_after) more = !policy.policy.stops_after(text.draft_probability[i], product);
    }
    round.emitted = round.accepted + 1;
    round.drafted = limit;
    rounds.push_back(round);
    start += static_cast<std::size_t>(round.emitted);
  }
  return rounds;
}

}  // namespace

// Accepted: yes yes no yes yes yes no yes. The third token is the bonus after two drafts; the last is never drafted.
TEST_CASE("a replay with sure outcomes goes the one way there is") {
  const std::vector<double> acceptance = {1, 1, 0, 1, 1, 1, 0, 1};
  const std::vector<ReplayedRound> expected = {
      {0, 2, 3, false, 2}, {3, 2, 3, false, 2}, {6, 0, 1, true, 1}, {7, 0, 1, false, 0}};
  CHECK(replay_rounds({.gamma = 2}, 1, {4, acceptance}) == expected);
}

TEST_CASE("feedback drafts two more after a full accept and one less after another round, at least one") {
  const std::vector<double> acceptance = {0, 0, 1, 0, 1, 1, 1, 0, 1, 1};
  const std::vector<ReplayedRound> expected = {
      {0, 0, 1, true, 2}, {1, 0, 1, true, 1}, {2, 1, 2, false, 1}, {4, 3, 4, false, 3}, {8, 1, 2, false, 1}};
  CHECK(replay_rounds({.gamma = 2, .policy = feedback_policy()}, 1, {4, acceptance}) == expected);
}

TEST_CASE("a replay accepts by the documented numbers, for every policy") {
  const RandomStream stream(99, 0);
  for (const std::int64_t depths : {1, 3}) {
    for (const std::int64_t length : {1, 2, 3, 40, 300}) {
      std::vector<double> acceptance, probability;
      for (std::int64_t t = 0; t < length; ++t) {
        for (std::int64_t j = 0; j < depths; ++j) acceptance.push_back(std::sqrt(stream.uniform(t, j, Purpose::test)));
        probability.push_back(stream.uniform(t, depths, Purpose::test));
      }
      const ReplayedText text{length, acceptance, depths, probability};
      for (const DraftingPolicy& kind : {DraftingPolicy(), threshold_policy(0.2), threshold_policy(0, 0.2)}) {
        for (const std::int64_t gamma : {0, 1, 2, 5, 400}) {
          const ReplayedPolicy policy{.gamma = gamma, .policy = kind};
          CHECK(replay_rounds(policy, 17, text) == play(text, policy, 17));
        }
      }
    }
  }
}

TEST_CASE("a replay refuses acceptances that are none, and missing columns") {
  const std::vector<double> wrong = {0.5, std::numeric_limits<double>::quiet_NaN()};
  CHECK_THROWS_WITH(replay_rounds({.gamma = 2}, 1, {3, wrong}),
                    "replay: acceptance at place 1 of sequence 3 is nan, but must be in [0, 1]");
  const std::vector<double> right = {0.5, 0.5};
  CHECK_THROWS_AS(replay_rounds({.gamma = 2, .policy = threshold_policy(0.5)}, 1, {3, right}), std::invalid_argument);
  CHECK_THROWS_AS(replay_rounds({.gamma = -1}, 1, {3, right}), std::domain_error);
}

TEST_CASE("a column of a depth that no round can have reached is not looked at") {
  const std::vector<double> acceptance = {1, std::numeric_limits<double>::quiet_NaN(), 1, 1};
  CHECK(replay_rounds({.gamma = 3}, 1, {0, acceptance, 2}).size() == 1);
}
