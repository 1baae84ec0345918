#include "sim/replay_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "sim/random.hpp"
#include "tests/support/catch.hpp"

using namespace specdec::sim;

namespace {

/// Texts in memory; `columns` gives a piece of them.
struct Texts {
  std::vector<std::int64_t> sequence, place;
  std::vector<double> acceptance, draft_probability;
  std::int64_t depths = 1;

  std::size_t size() const { return sequence.size(); }

  void add_text(std::int64_t number, std::size_t length) {
    for (std::size_t t = 0; t < length; ++t) {
      sequence.push_back(number);
      place.push_back(static_cast<std::int64_t>(t));
    }
  }

  ReplayedPositions columns(std::size_t first, std::size_t count) const {
    ReplayedPositions positions;
    positions.sequence = std::span(sequence).subspan(first, count);
    positions.place = std::span(place).subspan(first, count);
    const auto d = static_cast<std::size_t>(depths);
    positions.acceptance = std::span(acceptance).subspan(first * d, count * d);
    positions.depths = depths;
    if (!draft_probability.empty()) positions.draft_probability = std::span(draft_probability).subspan(first, count);
    return positions;
  }
};

Texts random_texts(const std::vector<std::size_t>& lengths, std::int64_t depths) {
  Texts texts;
  texts.depths = depths;
  for (std::size_t s = 0; s < lengths.size(); ++s) texts.add_text(static_cast<std::int64_t>(s), lengths[s]);
  const RandomStream stream(99, 0);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    for (std::int64_t j = 0; j < depths; ++j)
      texts.acceptance.push_back(std::sqrt(stream.uniform(static_cast<std::int64_t>(i), j, Purpose::test)));
    texts.draft_probability.push_back(stream.uniform(static_cast<std::int64_t>(i), depths, Purpose::test));
  }
  return texts;
}

std::vector<ReplayedRound> rounds_of(const Texts& texts, const ReplayedPolicy& policy, std::uint64_t seed,
                                     std::size_t piece = 1000) {
  std::vector<ReplayedRound> rounds;
  ReplaySimulation simulation(policy, seed, [&](const ReplayedRound& round) { rounds.push_back(round); });
  for (std::size_t i = 0; i < texts.size(); i += piece)
    simulation.add(texts.columns(i, std::min(piece, texts.size() - i)));
  simulation.finish();
  return rounds;
}

/// Algorithm 1 over one text as one would write it down with the whole text in hand.
void play(const Texts& texts, std::size_t first, std::size_t length, const ReplayedPolicy& policy, std::uint64_t seed,
          std::vector<ReplayedRound>& rounds) {
  for (std::size_t start = 0; start < length;) {
    const auto limit = std::min<std::int64_t>(policy.gamma, static_cast<std::int64_t>(length - start) - 1);
    ReplayedRound round{.place = static_cast<std::int64_t>(start)};
    double product = 1;
    bool more = true;
    while (more && round.accepted < limit) {
      const std::size_t i = first + start + static_cast<std::size_t>(round.accepted);
      const auto column = static_cast<std::size_t>(std::min(round.accepted, texts.depths - 1));
      const double a = texts.acceptance[i * static_cast<std::size_t>(texts.depths) + column];
      const RandomStream stream(seed, static_cast<std::uint64_t>(texts.sequence[i]));
      if (stream.uniform(texts.place[i], 0, Purpose::acceptance) >= a) {
        round.rejected = true;
        break;
      }
      ++round.accepted;
      product *= texts.draft_probability[i];
      if (policy.policy == DraftPolicy::threshold) more = texts.draft_probability[i] >= policy.threshold;
      if (policy.policy == DraftPolicy::product) more = product >= policy.threshold;
    }
    round.emitted = round.accepted + 1;
    round.drafted = limit;
    rounds.push_back(round);
    start += static_cast<std::size_t>(round.emitted);
  }
}

}  // namespace

// Accepted: yes yes no yes yes yes no yes. The third token is the bonus after two drafts; the last is never drafted.
TEST_CASE("a replay with sure outcomes goes the one way there is") {
  Texts texts;
  texts.add_text(4, 8);
  texts.acceptance = {1, 1, 0, 1, 1, 1, 0, 1};
  const auto rounds = rounds_of(texts, {.gamma = 2}, 1);
  const std::vector<ReplayedRound> expected = {
      {0, 2, 3, false, 2}, {3, 2, 3, false, 2}, {6, 0, 1, true, 1}, {7, 0, 1, false, 0}};
  CHECK(rounds == expected);
}

TEST_CASE("a streamed replay equals one that has the whole text in hand, for every policy") {
  const std::vector<std::size_t> lengths = {1, 2, 3, 40, 7, 300};
  for (const std::int64_t depths : {1, 3}) {
    const Texts texts = random_texts(lengths, depths);
    for (const DraftPolicy kind : {DraftPolicy::fixed, DraftPolicy::threshold, DraftPolicy::product}) {
      for (const std::int64_t gamma : {0, 1, 2, 5, 400}) {
        const ReplayedPolicy policy{.gamma = gamma, .policy = kind, .threshold = 0.2};
        std::vector<ReplayedRound> expected;
        std::size_t first = 0;
        for (const std::size_t length : lengths) {
          play(texts, first, length, policy, 17, expected);
          first += length;
        }
        CHECK(rounds_of(texts, policy, 17) == expected);
        CHECK(rounds_of(texts, policy, 17, 1) == expected);
        CHECK(rounds_of(texts, policy, 17, 7) == expected);
      }
    }
  }
}

TEST_CASE("counters of a replay add up") {
  const Texts texts = random_texts({50, 60}, 1);
  ReplayCounters added;
  ReplaySimulation simulation({.gamma = 4}, 3, [&](const ReplayedRound& round) { added.add(round); });
  simulation.add(texts.columns(0, texts.size()));
  simulation.finish();
  const ReplayCounters& counters = simulation.counters();
  CHECK(counters.tokens == 110);
  CHECK(counters.tokens == counters.accepted + counters.rounds);
  CHECK(counters.accepted_at.size() == 4);
  std::int64_t accepted = 0;
  for (std::size_t j = 0; j < 4; ++j) {
    accepted += counters.accepted_at[j];
    if (j > 0) CHECK(counters.accepted_at[j] <= counters.accepted_at[j - 1]);
  }
  CHECK(accepted == counters.accepted);
  CHECK(added == counters);
}

TEST_CASE("a replay refuses acceptances that are none, and missing columns") {
  Texts texts;
  texts.add_text(3, 2);
  texts.acceptance = {0.5, std::numeric_limits<double>::quiet_NaN()};
  ReplaySimulation simulation({.gamma = 2}, 1);
  CHECK_THROWS_WITH(simulation.add(texts.columns(0, 2)),
                    "replay: acceptance at place 1 of sequence 3 is nan, but must be in [0, 1]");
  texts.acceptance = {0.5, 0.5};
  ReplaySimulation confident({.gamma = 2, .policy = DraftPolicy::threshold}, 1);
  CHECK_THROWS_AS(confident.add(texts.columns(0, 2)), std::invalid_argument);
  CHECK_THROWS_AS(ReplaySimulation({.gamma = -1}, 1), std::domain_error);
  CHECK_THROWS_AS(ReplaySimulation({.gamma = 1, .threshold = 1.5}, 1), std::domain_error);
}

TEST_CASE("a column of a depth that no round can have reached is not looked at") {
  Texts texts;
  texts.depths = 2;
  texts.add_text(0, 2);
  texts.acceptance = {1, std::numeric_limits<double>::quiet_NaN(), 1, 1};
  CHECK(rounds_of(texts, {.gamma = 3}, 1).size() == 1);
}
