#include "sim/validation/evidence.hpp"

#include <stdexcept>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/table_models.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using sim::Generation;
using sim::Step;
using sim::Token;
using validation::Evidence;
using validation::gather_evidence;

namespace {

// p = (.5, .3, .2), q = (.2, .3, .5): beta = .7, a = (.4, 1, 1), E[a^2] = .08 + .3 + .2.
sim::TablePair example() { return sim::fixed_pair({.5, .3, .2}, {.2, .3, .5}); }

const std::vector<Token> prompt{0, 1};

// Two steps: two drafts of which the second is rejected, then two drafts accepted and a bonus.
Generation two_steps() {
  Generation generation;
  generation.tokens = {2, 0, 1, 2, 0};
  generation.steps = {Step{2, 1, 2, 2}, Step{2, 2, 3, -1}};
  return generation;
}

Evidence gather(const Generation& generation) {
  sim::TablePair pair = example();
  return gather_evidence(pair.target, pair.draft, prompt, generation, {}, sim::RandomStream(1, 0));
}

}  // namespace

TEST_CASE("evidence holds the overlap and the acceptance of every emitted token") {
  const Evidence evidence = gather(two_steps());
  REQUIRE(evidence.betas.size() == 5);
  for (const double beta : evidence.betas) CHECK(beta == Approx(.7));
  const std::vector<double> expected{1, .4, 1, 1, .4};
  for (std::size_t t = 0; t < 5; ++t) CHECK(evidence.acceptances[t] == Approx(expected[t]));
  CHECK(evidence.impossible_tokens == 0);
}

TEST_CASE("evidence places each token in its round, the bonus last") {
  const Evidence evidence = gather(two_steps());
  std::vector<std::int64_t> slots;
  for (const auto& token : evidence.tokens) slots.push_back(token.slot);
  CHECK(slots == std::vector<std::int64_t>{1, 2, 1, 2, 3});
}

TEST_CASE("evidence counts the drafts that were looked at, and the bonus is none of them") {
  const Evidence evidence = gather(two_steps());
  CHECK(evidence.accepted.measured == 3);
  CHECK(evidence.accepted.expected == Approx(4 * .7));
  CHECK(evidence.accepted.variance == Approx(4 * .7 * .3));
  CHECK(evidence.emitted_acceptance.measured == Approx(3.8));
  CHECK(evidence.emitted_acceptance.expected == Approx(5 * .7));
  CHECK(evidence.emitted_acceptance.variance == Approx(5 * (.58 - .49)));
}

TEST_CASE("a transform lies in its token's share of the order") {
  const Evidence evidence = gather(two_steps());
  // Token 2 stands last in both orders: [.8, 1]; token 0 first: [0, .5].
  CHECK(evidence.tokens[0].by_ratio >= .8);
  CHECK(evidence.tokens[0].by_probability >= .8);
  CHECK(evidence.tokens[1].by_ratio <= .5);
  CHECK(evidence.tokens[1].by_probability <= .5);
}

TEST_CASE("a token that the target never emits is counted as impossible") {
  sim::TablePair pair = sim::fixed_pair({.5, .5, 0}, {.2, .3, .5});
  const Evidence evidence = gather_evidence(pair.target, pair.draft, prompt, two_steps(), {}, sim::RandomStream(1, 0));
  CHECK(evidence.impossible_tokens == 2);
}

TEST_CASE("evidence is taken from the standardised distributions") {
  sim::TablePair pair = example();
  const Evidence evidence =
      gather_evidence(pair.target, pair.draft, prompt, two_steps(), {.temperature = 0}, sim::RandomStream(1, 0));
  for (const double beta : evidence.betas) CHECK(beta == 0);
  CHECK(evidence.impossible_tokens == 3);
}

TEST_CASE("evidence of a long text does not depend on what the models held before") {
  sim::TablePair pair = sim::synthetic_bigram_pair(8, 1.0, 3);
  sim::DecodingOptions options;
  options.max_new_tokens = 40;
  const sim::RandomStream stream(1, 0);
  const Generation text = sim::decode_speculatively(pair.target, pair.draft, prompt, options, stream);
  const Evidence first = gather_evidence(pair.target, pair.draft, prompt, text, {}, stream);
  const Evidence again = gather_evidence(pair.target, pair.draft, prompt, text, {}, stream);
  CHECK(first.betas == again.betas);
  CHECK(first.acceptances == again.acceptances);
}

TEST_CASE("steps that do not add up to the text are refused") {
  Generation generation = two_steps();
  generation.tokens.pop_back();
  CHECK_THROWS_AS(gather(generation), std::logic_error);
  generation = two_steps();
  generation.steps[0].accepted = 3;
  CHECK_THROWS_AS(gather(generation), std::logic_error);
}

TEST_CASE("an empty text gives no evidence") { CHECK(gather({}).tokens.empty()); }
