// Do simulated replays take the steps that the exact laws say? A deviation is told in standard errors,
// z = (measured - expected) / sqrt(expected variance); a sound simulation stays within 5 but for a probability of 6e-7
// per comparison over random seeds. The seeds are fixed.

#include <cmath>
#include <vector>

#include "analysis/theory/replay.hpp"
#include "sim/random.hpp"
#include "sim/synthetic_traces.hpp"
#include "sim/validation/batch_rules.hpp"
#include "tests/support/catch.hpp"

using namespace specdec::sim;
namespace theory = specdec::theory;
namespace traces = specdec::traces;

namespace {

constexpr double most_standard_errors = 5;

/// a_t of texts of one length, one after the other.
std::vector<double> markov_texts(std::int64_t sequences, std::int64_t tokens) {
  const auto source = synthetic_trace({{"", MarkovLaw{}}}, {.sequences = sequences, .tokens = tokens, .seed = 2});
  std::vector<double> acceptance;
  traces::PositionBatch batch;
  while (source->read(batch))
    for (const float logprob : batch.draft_token_logprob) acceptance.push_back(std::exp(std::min(0.0F, logprob)));
  return acceptance;
}

theory::ReplayedSteps exact_steps(std::span<const double> acceptance, std::int64_t tokens, std::int64_t gamma) {
  theory::ReplayedSteps sum;
  const auto length = static_cast<std::size_t>(tokens);
  for (std::size_t i = 0; i < acceptance.size(); i += length) {
    const auto one = theory::replay_steps(acceptance.subspan(i, length), gamma);
    sum.expected += one.expected;
    sum.variance += one.variance;
  }
  return sum;
}

BatchedRun replayed(std::int64_t number, std::span<const double> acceptance, std::int64_t gamma, std::uint64_t seed,
                    std::int64_t most_rounds = 1 << 20) {
  specdec::validation::PolicyRule rule(gamma);
  const BatchedText text{.sequence = number, .tokens = std::ssize(acceptance), .acceptance = acceptance};
  const auto one_a_round = [](auto...) { return 1.0; };
  return decode_in_batches({&text, 1}, 1, rule, one_a_round, seed, [&] { return most_rounds-- == 0; }).front();
}

double simulated_rounds(std::span<const double> acceptance, std::int64_t tokens, std::int64_t gamma,
                        std::uint64_t seed) {
  std::int64_t rounds = 0;
  const auto length = static_cast<std::size_t>(tokens);
  for (std::size_t i = 0; i < acceptance.size(); i += length) {
    const auto number = static_cast<std::int64_t>(i / length);
    rounds += replayed(number, acceptance.subspan(i, length), gamma, seed).steps;
  }
  return static_cast<double>(rounds);
}

/// Two tokens; a token's successor depends on it alone. The pair of math: rows are contexts.
constexpr double bigram_target[2][2] = {{0.9, 0.1}, {0.3, 0.7}};
constexpr double bigram_draft[2][2] = {{0.8, 0.2}, {0.9, 0.1}};

struct BigramTexts {
  std::vector<double> by_token;   // a_t
  std::vector<double> by_prefix;  // beta_t, the mistake
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
      texts.by_token.push_back(std::min(1.0, q[token] / p[token]));
      texts.by_prefix.push_back(std::min(p[0], q[0]) + std::min(p[1], q[1]));
      context = token;
    }
  }
  return texts;
}

}  // namespace

TEST_CASE("simulated rounds over recorded texts are as many as the exact law says") {
  constexpr std::int64_t tokens = 400;
  const std::vector<double> texts = markov_texts(100, tokens);
  for (const std::int64_t gamma : {1, 2, 4, 8}) {
    const theory::ReplayedSteps exact = exact_steps(texts, tokens, gamma);
    const double z = (simulated_rounds(texts, tokens, gamma, 5) - exact.expected) / std::sqrt(exact.variance);
    CHECK(std::abs(z) < most_standard_errors);
  }
}

// Tokens per round in the long run of sticky betas, docs/theory.md: gamma 4 has 2.60133469724, and rounds that begin
// anywhere in the text, instead of where the last one ended, 3.046856.
TEST_CASE("rounds over sticky regions have the tokens of the chain seen from the rounds, not of the chain itself") {
  const std::vector<double> text = markov_texts(1, 200'000);
  const double rounds = simulated_rounds(text, 200'000, 4, 5);
  const double per_round = 200'000 / rounds;
  // Renewals a few rounds apart: the rounds' own variance, below 4, times 10 bounds that of the sum.
  const double standard_error = std::sqrt(10 * 4 / rounds);
  CHECK(std::abs(per_round - 2.60133469724) < most_standard_errors * standard_error);

  double anywhere = 0;
  std::int64_t starts = 0;
  for (std::int64_t t = 0; t + 10 < 200'000; t += 97, ++starts) {
    const auto from_here = std::span(text).subspan(static_cast<std::size_t>(t), 10);
    anywhere += static_cast<double>(replayed(t, from_here, 4, 6, 1).tokens);
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
  CHECK(std::abs(simulated_rounds(texts.by_token, 6, 3, 5) / n - 2.42761) < most);
  CHECK(std::abs(simulated_rounds(texts.by_prefix, 6, 3, 5) / n - 2.417615805) < most);
  CHECK(std::abs(simulated_rounds(texts.by_prefix, 6, 3, 5) / n - 2.42761) > most);
}
