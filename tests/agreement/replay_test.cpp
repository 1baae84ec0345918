// Do simulated replays take the steps that the exact laws say? A deviation is told in standard errors,
// z = (measured - expected) / sqrt(expected variance); a sound simulation stays within 5 but for a probability of 6e-7
// per comparison over random seeds. The seeds are fixed.

#include <cmath>
#include <vector>

#include "analysis/theory/replay.hpp"
#include "sim/random.hpp"
#include "sim/replay_simulation.hpp"
#include "sim/synthetic_traces.hpp"
#include "tests/support/catch.hpp"

using namespace specdec::sim;
namespace theory = specdec::theory;
namespace traces = specdec::traces;

namespace {

constexpr double most_standard_errors = 5;

struct Texts {
  std::vector<std::int64_t> sequence, place;
  std::vector<double> acceptance;

  ReplayedPositions columns() const {
    ReplayedPositions positions;
    positions.sequence = sequence;
    positions.place = place;
    positions.acceptance = acceptance;
    return positions;
  }
};

Texts markov_texts(std::int64_t sequences, std::int64_t tokens) {
  const auto source = synthetic_trace({{"", MarkovLaw{}}}, {.sequences = sequences, .tokens = tokens, .seed = 2});
  Texts texts;
  traces::PositionBatch batch;
  while (source->read(batch)) {
    texts.sequence.insert(texts.sequence.end(), batch.sequence.begin(), batch.sequence.end());
    texts.place.insert(texts.place.end(), batch.place.begin(), batch.place.end());
    for (std::size_t i = 0; i < batch.overlap.size(); ++i)
      texts.acceptance.push_back(std::exp(std::min(0.0F, batch.draft_token_logprob[i])));
  }
  return texts;
}

theory::ReplayedSteps exact_steps(const Texts& texts, std::int64_t tokens, std::int64_t gamma) {
  theory::ReplayedSteps sum;
  const auto length = static_cast<std::size_t>(tokens);
  for (std::size_t i = 0; i < texts.acceptance.size(); i += length) {
    const auto one = theory::replay_steps(std::span(texts.acceptance).subspan(i, length), gamma);
    sum.expected += one.expected;
    sum.variance += one.variance;
  }
  return sum;
}

double simulated_rounds(const ReplayedPositions& positions, std::int64_t gamma, std::uint64_t seed) {
  ReplaySimulation simulation({.gamma = gamma}, seed);
  simulation.add(positions);
  simulation.finish();
  return static_cast<double>(simulation.counters().rounds);
}

/// Two tokens; a token's successor depends on it alone. The pair of math: rows are contexts.
constexpr double bigram_target[2][2] = {{0.9, 0.1}, {0.3, 0.7}};
constexpr double bigram_draft[2][2] = {{0.8, 0.2}, {0.9, 0.1}};

struct BigramTexts {
  Texts by_token;   // a_t
  Texts by_prefix;  // beta_t, the mistake
};

BigramTexts bigram_texts(std::int64_t sequences, std::int64_t tokens) {
  BigramTexts texts;
  for (std::int64_t s = 0; s < sequences; ++s) {
    const RandomStream stream(8, static_cast<std::uint64_t>(s));
    std::size_t context = 0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const double* p = bigram_target[context];
      const double* q = bigram_draft[context];
      const std::size_t token = stream.uniform(t, 0, Purpose::target) < p[0] ? 0 : 1;
      texts.by_token.sequence.push_back(s);
      texts.by_token.place.push_back(t);
      texts.by_token.acceptance.push_back(std::min(1.0, q[token] / p[token]));
      texts.by_prefix.acceptance.push_back(std::min(p[0], q[0]) + std::min(p[1], q[1]));
      context = token;
    }
  }
  texts.by_prefix.sequence = texts.by_token.sequence;
  texts.by_prefix.place = texts.by_token.place;
  return texts;
}

}  // namespace

TEST_CASE("simulated rounds over recorded texts are as many as the exact law says") {
  constexpr std::int64_t tokens = 400;
  const Texts texts = markov_texts(100, tokens);
  for (const std::int64_t gamma : {1, 2, 4, 8}) {
    const theory::ReplayedSteps exact = exact_steps(texts, tokens, gamma);
    const double z = (simulated_rounds(texts.columns(), gamma, 5) - exact.expected) / std::sqrt(exact.variance);
    CHECK(std::abs(z) < most_standard_errors);
  }
}

// Tokens per round in the long run of sticky betas, docs/theory.md: gamma 4 has 2.60133469724, and rounds that begin
// anywhere in the text, instead of where the last one ended, 3.046856.
TEST_CASE("rounds over sticky regions have the tokens of the chain seen from the rounds, not of the chain itself") {
  const Texts texts = markov_texts(1, 200'000);
  ReplaySimulation simulation({.gamma = 4}, 5);
  simulation.add(texts.columns());
  simulation.finish();
  const double rounds = static_cast<double>(simulation.counters().rounds);
  const double per_round = 200'000 / rounds;
  // Renewals a few rounds apart: the rounds' own variance, below 4, times 10 bounds that of the sum.
  const double standard_error = std::sqrt(10 * 4 / rounds);
  CHECK(std::abs(per_round - 2.60133469724) < most_standard_errors * standard_error);

  double anywhere = 0;
  std::int64_t starts = 0;
  for (std::int64_t t = 0; t + 10 < 200'000; t += 97, ++starts) {
    const auto first = static_cast<std::size_t>(t);
    const ReplayedPositions all = texts.columns();
    ReplayedPositions piece = all;
    piece.sequence = all.sequence.subspan(first, 10);
    piece.place = all.place.subspan(first, 10);
    piece.acceptance = all.acceptance.subspan(first, 10);
    std::int64_t emitted = 0;
    ReplaySimulation from_here({.gamma = 4}, 6, [&](const ReplayedRound& round) {
      if (emitted == 0) emitted = round.emitted;
    });
    from_here.add(piece);
    from_here.finish();
    anywhere += static_cast<double>(emitted);
  }
  anywhere /= static_cast<double>(starts);
  CHECK(std::abs(anywhere - 2.60133469724) > most_standard_errors * standard_error);
}

// 6 tokens after context 0, gamma 3: 2.42761 rounds by exact enumeration of Algorithm 1, and 2.417615805 where beta_t
// is replayed in place of a_t. 5 standard errors of 600,000 texts, with a variance of at most 1, are 0.0065.
TEST_CASE("replaying the prefixes' acceptance in place of the tokens' is seen to be biased") {
  constexpr std::int64_t sequences = 600'000;
  const BigramTexts texts = bigram_texts(sequences, 6);
  const double n = static_cast<double>(sequences);
  const double most = most_standard_errors / std::sqrt(n);
  CHECK(std::abs(simulated_rounds(texts.by_token.columns(), 3, 5) / n - 2.42761) < most);
  CHECK(std::abs(simulated_rounds(texts.by_prefix.columns(), 3, 5) / n - 2.417615805) < most);
  CHECK(std::abs(simulated_rounds(texts.by_prefix.columns(), 3, 5) / n - 2.42761) > most);
}
