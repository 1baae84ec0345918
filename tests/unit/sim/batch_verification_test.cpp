#include "sim/batch_verification.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sim/random.hpp"
#include "tests/support/catch.hpp"

using namespace specdec::sim;

namespace {

class AlwaysGamma final : public BatchRule {
 public:
  explicit AlwaysGamma(std::int64_t gamma, std::int64_t beyond = 0) : gamma_(gamma), beyond_(beyond) {}
  BatchDecision decide(std::span<const BatchedPlace> batch) override {
    sizes.push_back(std::ssize(batch));
    BatchDecision decision{gamma_, {}};
    for (const BatchedPlace& at : batch) decision.verified.push_back(std::min(gamma_, at.most_drafts()) + beyond_);
    return decision;
  }
  void observe(std::span<const BatchedPlace>, const BatchDecision&, std::span<const std::int64_t>) override {}

  std::vector<std::int64_t> sizes;

 private:
  std::int64_t gamma_, beyond_;
};

double one_per_round(std::int64_t, std::int64_t, std::int64_t) { return 1; }

const std::vector<double> rates = {0.9, 0.2, 0.7, 0.8, 1, 0, 0.5, 0.6, 0.9, 0.9, 0.4, 0.7};

std::vector<BatchedText> texts_of_lengths(const std::vector<std::int64_t>& lengths) {
  std::vector<BatchedText> texts;
  for (const std::int64_t length : lengths)
    texts.push_back({.sequence = std::ssize(texts),
                     .tokens = length,
                     .acceptance = std::span(rates).first(static_cast<std::size_t>(length))});
  return texts;
}

struct Played {
  std::int64_t steps = 0, accepted = 0, verified = 0;
};

/// Algorithm 1 over one text as one would write it down.
Played play(const BatchedText& text, std::int64_t gamma, std::uint64_t seed) {
  const RandomStream stream(seed, static_cast<std::uint64_t>(text.sequence));
  const auto depths = static_cast<std::size_t>(text.depths);
  Played played;
  for (std::int64_t start = 0; start < text.tokens; ++start, ++played.steps) {
    const std::int64_t limit = std::min(gamma, text.tokens - start - 1);
    played.verified += limit;
    for (std::size_t j = 0; j < static_cast<std::size_t>(limit); ++j, ++start, ++played.accepted) {
      const double a = text.acceptance[static_cast<std::size_t>(start) * depths + std::min(j, depths - 1)];
      if (stream.uniform(start, 0, Purpose::acceptance) >= a) break;
    }
  }
  return played;
}

}  // namespace

TEST_CASE("texts decoded together make the rounds of their replay one by one", "[batch]") {
  const std::vector<BatchedText> texts = texts_of_lengths({12, 5, 9, 2, 1, 12});
  for (const std::int64_t gamma : {0, 1, 3, 20}) {
    for (const std::int64_t batch : {1, 2, 6, 50}) {
      AlwaysGamma rule(gamma);
      const std::vector<BatchedRun> runs = decode_in_batches(texts, batch, rule, one_per_round, 7);
      for (std::size_t s = 0; s < texts.size(); ++s) {
        CHECK(runs[s].tokens == texts[s].tokens);
        const Played played = play(texts[s], gamma, 7);
        CHECK(runs[s].steps == played.steps);
        CHECK(runs[s].accepted == played.accepted);
        CHECK(runs[s].verified == played.verified);
      }
    }
  }
}

TEST_CASE("a text that ends gives its place to the next, and rounds cost what their batch costs", "[batch]") {
  const std::vector<BatchedText> texts = texts_of_lengths({3, 1, 2, 1});
  AlwaysGamma rule(0);
  const auto cost = [](std::int64_t sequences, std::int64_t drafted, std::int64_t verified) {
    CHECK(drafted == 0);
    CHECK(verified == 0);
    return 10 * static_cast<double>(sequences);
  };
  const std::vector<BatchedRun> runs = decode_in_batches(texts, 2, rule, cost, 1);
  CHECK(rule.sizes == std::vector<std::int64_t>{2, 2, 2, 1});
  CHECK(runs[0].cost == 30);
  CHECK(runs[3].cost == 10);
}

TEST_CASE("a text whose places are alike is one row of acceptances by depth", "[batch]") {
  const std::vector<double> row = {1, 1, 0};
  const BatchedText text{.tokens = 9, .depths = 3, .acceptance = row};
  AlwaysGamma rule(5);
  const BatchedRun run = decode_in_batches({&text, 1}, 1, rule, one_per_round, 1).front();
  CHECK(run.steps == 3);
  CHECK(run.accepted == 6);
  CHECK(run.verified == 5 + 5 + 2);
  CHECK(run.verified_at == std::vector<std::int64_t>{3, 3, 2, 2, 2});
  CHECK(run.accepted_at == std::vector<std::int64_t>{3, 3});
  CHECK(run.judged == 8);
  CHECK(run.accepted_expected == 6);
}

TEST_CASE("a rate of a depth that no round can have reached is not looked at, and another must be one", "[batch]") {
  const std::vector<double> one_row = {1, std::numeric_limits<double>::quiet_NaN()};
  const BatchedText text{.tokens = 2, .depths = 2, .acceptance = one_row};
  AlwaysGamma rule(2);
  CHECK(decode_in_batches({&text, 1}, 1, rule, one_per_round, 1).front().steps == 1);
  const BatchedText longer{.tokens = 3, .depths = 2, .acceptance = one_row};
  CHECK_THROWS_WITH(decode_in_batches({&longer, 1}, 1, rule, one_per_round, 1),
                    "decode_in_batches: acceptance is nan, but must be in [0, 1]");
}

TEST_CASE("batches refuse shapes that do not agree and rules that verify what was not drafted", "[batch]") {
  std::vector<BatchedText> texts = texts_of_lengths({4});
  AlwaysGamma too_many(1, 1);
  CHECK_THROWS_AS(decode_in_batches(texts, 1, too_many, one_per_round, 1), std::invalid_argument);
  AlwaysGamma rule(1);
  CHECK_THROWS_AS(decode_in_batches(texts, 0, rule, one_per_round, 1), std::domain_error);
  texts[0].tokens = 3;
  CHECK_THROWS_WITH(decode_in_batches(texts, 1, rule, one_per_round, 1),
                    "decode_in_batches: acceptance has 4 entries, but must have 1 or 3");
}
