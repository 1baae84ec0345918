#include "sim/replay_simulation.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/core/state_archive.hpp"
#include "sim/random.hpp"
#include "sim/replay_draws.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/instruction_sets.hpp"

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
    ReplayedRound round{.sequence = texts.sequence[first], .place = static_cast<std::int64_t>(start)};
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
    const bool exact = policy.policy == DraftPolicy::fixed || !round.rejected;
    round.drafted_least = policy.policy == DraftPolicy::fixed ? limit : round.accepted + (round.rejected ? 1 : 0);
    round.drafted_most = exact ? round.drafted_least : limit;
    rounds.push_back(round);
    start += static_cast<std::size_t>(round.emitted);
  }
}

/// Steps of fixed gamma over all texts, with the numbers of one repetition.
std::int64_t steps_of(const Texts& texts, std::int64_t gamma, std::uint64_t seed, std::int64_t repetition) {
  std::int64_t steps = 0;
  std::int64_t accepted = 0;  // in the round
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (texts.place[i] == 0) accepted = 0;
    if (accepted == 0) ++steps;
    const auto column = static_cast<std::size_t>(std::min(accepted, texts.depths - 1));
    const double a = texts.acceptance[i * static_cast<std::size_t>(texts.depths) + column];
    const RandomStream stream(seed, static_cast<std::uint64_t>(texts.sequence[i]));
    const bool accepts = accepted < gamma && stream.uniform(texts.place[i], repetition, Purpose::acceptance) < a;
    accepted = accepts ? accepted + 1 : 0;
  }
  return steps;
}

}  // namespace

// Accepted: yes yes no yes yes yes no yes. The third token is the bonus after two drafts; the last is never drafted.
TEST_CASE("a replay with sure outcomes goes the one way there is") {
  Texts texts;
  texts.add_text(4, 8);
  texts.acceptance = {1, 1, 0, 1, 1, 1, 0, 1};
  const auto rounds = rounds_of(texts, {.gamma = 2}, 1);
  const std::vector<ReplayedRound> expected = {
      {4, 0, 2, 3, false, 2, 2}, {4, 3, 2, 3, false, 2, 2}, {4, 6, 0, 1, true, 1, 1}, {4, 7, 0, 1, false, 0, 0}};
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
  CHECK(counters.sequences == 2);
  CHECK(counters.tokens == 110);
  CHECK(counters.tokens == counters.accepted + counters.rounds);
  CHECK(counters.examined_at.size() == 4);
  std::int64_t accepted = 0;
  for (std::size_t j = 0; j < 4; ++j) {
    accepted += counters.accepted_at[j];
    CHECK(counters.accepted_at[j] <= counters.examined_at[j]);
    if (j > 0) CHECK(counters.examined_at[j] <= counters.accepted_at[j - 1]);
  }
  CHECK(accepted == counters.accepted);
  added.sequences = 2;
  CHECK(added == counters);
}

TEST_CASE("many runs are those of the single one under their own luck, for any number of threads") {
  const Texts texts = random_texts({30, 1, 500}, 2);
  MonteCarloReplay one({0, 1, 4}, 100, 17, 1);
  MonteCarloReplay two({0, 1, 4}, 100, 17, 2);
  one.add(texts.columns(0, texts.size()));
  for (std::size_t i = 0; i < texts.size(); i += 11)
    two.add(texts.columns(i, std::min<std::size_t>(11, texts.size() - i)));
  const auto found = one.result();
  REQUIRE(found.size() == 3);
  CHECK(found[0].tokens_per_step == 1);
  CHECK(found[0].standard_error == 0);
  CHECK(found[1].standard_error > 0);
  CHECK(found[1].tokens_per_step < found[2].tokens_per_step);
  for (std::size_t g = 0; g < 3; ++g) {
    CHECK(found[g].tokens_per_step == two.result()[g].tokens_per_step);
    CHECK(found[g].standard_error == two.result()[g].standard_error);
  }
}

TEST_CASE("many runs take the steps of texts followed token by token, with one depth and with several") {
  const std::vector<std::int64_t> gammas = {0, 1, 3, 16, 300};
  for (const std::int64_t depths : {1, 2}) {
    Texts texts = random_texts({30, 1, 64, 500, 1, 129, 2000}, depths);
    // A stretch without a rejection that is longer than any length of a round, over the end of a text.
    std::fill(texts.acceptance.end() - 1200 * depths, texts.acceptance.end(), 1);
    MonteCarloReplay whole(gammas, 3, 21), pieces(gammas, 3, 21);
    whole.add(texts.columns(0, texts.size()));
    for (std::size_t i = 0; i < texts.size(); i += 37)
      pieces.add(texts.columns(i, std::min<std::size_t>(37, texts.size() - i)));
    for (std::size_t g = 0; g < gammas.size(); ++g) {
      double sum = 0, squares = 0;
      for (std::int64_t repetition = 0; repetition < 3; ++repetition) {
        const auto steps = static_cast<double>(steps_of(texts, gammas[g], 21, repetition));
        sum += steps;
        squares += steps * steps;
      }
      const auto tokens = static_cast<double>(texts.size());
      const double mean = sum / 3;
      const MonteCarloTokens found = whole.result()[g];
      CHECK(found.tokens_per_step == Approx(tokens / mean).epsilon(1e-14));
      const double variance = std::max(0.0, squares / 3 - mean * mean) * 3 / 2;
      const double error = tokens / (mean * mean) * std::sqrt(variance / 3);
      CHECK(found.standard_error == Approx(error).epsilon(1e-6).margin(1e-9));
      CHECK(found.tokens_per_step == pieces.result()[g].tokens_per_step);
      CHECK(found.standard_error == pieces.result()[g].standard_error);
    }
  }
}

TEST_CASE("a state whose steps or lengths no text of its tokens can have is refused") {
  const std::vector<std::int64_t> gammas = {1, 3};
  MonteCarloReplay replay(gammas, 2, 21);
  const Texts texts = random_texts({300, 40}, 1);
  replay.add(texts.columns(0, texts.size()));
  specdec::core::StateWriter writer;
  replay.exchange(writer);
  const auto read_with = [&](std::size_t place, std::int64_t number) {
    std::string state = writer.bytes();
    std::memcpy(state.data() + 8 * place, &number, sizeof number);
    MonteCarloReplay read(gammas, 2, 21);
    specdec::core::StateReader reader(state);
    read.exchange(reader);
    return read.result()[0].tokens_per_step;
  };
  // In words of 64 bits: tokens, depths, the number of steps and 4 of them, the number of lengths and those of 0 to
  // 255.
  CHECK(read_with(0, 340) == replay.result()[0].tokens_per_step);
  CHECK_THROWS_AS(read_with(0, 339), std::invalid_argument);
  CHECK_THROWS_AS(read_with(0, std::int64_t{1} << 60), std::invalid_argument);
  CHECK_THROWS_AS(read_with(1, 0), std::invalid_argument);
  CHECK_THROWS_AS(read_with(3, 341), std::invalid_argument);
  CHECK_THROWS_AS(read_with(3, -1), std::invalid_argument);
  CHECK_THROWS_AS(read_with(8, 1), std::invalid_argument);
  CHECK_THROWS_AS(read_with(8 + 27, std::int64_t{720575940379279360}), std::invalid_argument);
  CHECK_THROWS_AS(read_with(8 + 27, -1), std::invalid_argument);
}

TEST_CASE("draws of many positions are those of the stream on every instruction set") {
  const std::uint64_t seed = 0x9876'5432'10fe'dcba;
  const std::int64_t slot = RandomStream::max_slot - 2;
  on_every_instruction_set([&] {
    for (const std::size_t size : {1, 7, 8, 63, 64, 65, 200}) {
      std::vector<std::int64_t> sequences, rounds;
      std::vector<double> probabilities;
      std::vector<std::uint64_t> thresholds;
      for (std::size_t i = 0; i < size; ++i) {
        sequences.push_back(i % 3 == 0 ? (std::int64_t{1} << 40) + 5 : static_cast<std::int64_t>(i));
        rounds.push_back(i % 5 == 0 ? RandomStream::max_round : static_cast<std::int64_t>(i));
        const double u =
            RandomStream(seed, static_cast<std::uint64_t>(sequences[i])).uniform(rounds[i], slot, Purpose::acceptance);
        // Never, always, at the number itself, and just above it.
        const double choices[] = {0, 1, u, std::nextafter(u, 1.0), 0.5};
        probabilities.push_back(choices[i % 5]);
        thresholds.push_back(kernels::draw_threshold(probabilities.back()));
      }
      std::vector<std::uint64_t> accepted((size + 63) / 64, ~std::uint64_t{0});
      kernels::draw_acceptances(seed, sequences, rounds, slot, thresholds, accepted);
      for (std::size_t i = 0; i < 64 * accepted.size(); ++i) {
        const bool expected =
            i < size &&
            RandomStream(seed, static_cast<std::uint64_t>(sequences[i])).uniform(rounds[i], slot, Purpose::acceptance) <
                probabilities[i];
        CHECK((accepted[i / 64] >> (i % 64) & 1) == (expected ? 1 : 0));
      }
    }
  });
}

TEST_CASE("with sure outcomes many runs have the steps of the single one") {
  Texts texts;
  texts.add_text(0, 8);
  texts.acceptance = {1, 1, 0, 1, 1, 1, 0, 1};
  MonteCarloReplay many({2}, 3, 5);
  many.add(texts.columns(0, 8));
  CHECK(many.result().front().tokens_per_step == 2);
  CHECK(many.result().front().standard_error == 0);
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
  CHECK_THROWS_AS(MonteCarloReplay({1}, 1, 1), std::domain_error);
  MonteCarloReplay many({1}, 2, 1);
  many.add(texts.columns(0, 1));
  texts.depths = 2;
  CHECK_THROWS_AS(many.add(texts.columns(0, 1)), std::domain_error);
}

TEST_CASE("a column of a depth that no round can have reached is not looked at") {
  Texts texts;
  texts.depths = 2;
  texts.add_text(0, 2);
  texts.acceptance = {1, std::numeric_limits<double>::quiet_NaN(), 1, 1};
  CHECK(rounds_of(texts, {.gamma = 3}, 1).size() == 1);
}
