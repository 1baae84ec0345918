// Blockwise decoding: the text is plain greedy decoding's whatever the heads say, at the calls that its steps cost.

#include "sim/blockwise.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "sim/decoding.hpp"
#include "tests/support/algorithm_one.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_models.hpp"

using namespace specdec::sim;
using namespace specdec::test_support;

namespace {

Tokens greedy_text(ContextTableModel& target, std::int64_t tokens, std::optional<Token> end_token = {}) {
  DecodingOptions options;
  options.max_new_tokens = tokens;
  options.standardisation = {.temperature = 0};
  options.end_token = end_token;
  return decode_autoregressively(target, enumerated_prompt, options, RandomStream(0, 0)).tokens;
}

/// Heads that say what a text holds, as far as it goes.
OffsetPredictors right_heads(const Tokens& text) {
  return [&text](std::span<const Token> so_far, std::int64_t count) {
    const std::size_t first = std::min(so_far.size() - enumerated_prompt.size(), text.size());
    const std::size_t last = std::min(first + static_cast<std::size_t>(count), text.size());
    return Tokens(text.begin() + static_cast<std::ptrdiff_t>(first), text.begin() + static_cast<std::ptrdiff_t>(last));
  };
}

}  // namespace

TEST_CASE("blockwise text is greedy text, whatever the heads say and wherever it ends") {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const TablePair pair = random_pair(4, 2, Likeness::independent, seed);
    ContextTableModel target = pair.target;
    const RandomStream noise(seed, 1);
    const Tokens text = greedy_text(target, 40);
    // Right or not, and now and then fewer than asked for.
    const OffsetPredictors heads = [&](std::span<const Token> so_far, std::int64_t count) {
      Tokens guesses = right_heads(text)(so_far, count);
      for (std::size_t j = 0; j < guesses.size(); ++j)
        if (noise.uniform(static_cast<std::int64_t>(so_far.size()), static_cast<std::int64_t>(j), Purpose::test) < 0.3)
          guesses[j] = 3 - guesses[j];
      if (so_far.size() % 5 == 0 && !guesses.empty()) guesses.pop_back();
      return guesses;
    };
    for (const auto proposal : {BlockProposal::own_call, BlockProposal::with_verification}) {
      for (const std::int64_t block : {1, 2, 5}) {
        for (const auto end_token : {std::optional<Token>(), std::optional<Token>(2)}) {
          CAPTURE(seed, static_cast<int>(proposal), block, end_token.has_value());
          const Generation run =
              decode_blockwise(target, heads, enumerated_prompt,
                               {.block = block, .proposal = proposal, .max_new_tokens = 40, .end_token = end_token});
          CHECK(run.tokens == greedy_text(target, 40, end_token));
          const Counters& c = run.counters;
          CHECK(c.target_calls == (proposal == BlockProposal::own_call ? 2 * c.steps : c.steps + 1));
          const std::int64_t proposals = proposal == BlockProposal::own_call ? c.steps : 1;
          CHECK(c.target_positions == proposals + c.steps + c.drafted);
          if (!end_token) CHECK(c.tokens == c.steps + c.accepted);
          if (block == 1) CHECK(c.steps == c.tokens);
        }
      }
    }
  }
}

TEST_CASE("perfect heads make a block of every step, and cut the last one to what is wanted") {
  TablePair pair = synthetic_bigram_pair(6, 1, 2);
  const Tokens text = greedy_text(pair.target, 100);
  const auto run = [&](std::int64_t tokens, BlockProposal proposal) {
    return decode_blockwise(pair.target, right_heads(text), enumerated_prompt,
                            {.block = 4, .proposal = proposal, .max_new_tokens = tokens});
  };
  CHECK(run(100, BlockProposal::own_call).counters.target_calls == 50);
  CHECK(run(100, BlockProposal::with_verification).counters.target_calls == 26);
  CHECK(run(98, BlockProposal::with_verification).counters.drafted_at == std::vector<std::int64_t>{25, 24, 24});
  CHECK(run(97, BlockProposal::with_verification).steps.back().drafted == 0);
  CHECK(run(0, BlockProposal::with_verification).counters.target_calls == 0);
}

TEST_CASE("a draft model as heads makes the steps of greedy speculative decoding, and one call more") {
  std::int64_t accepted = 0;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    CAPTURE(seed);
    TablePair pair = synthetic_bigram_pair(8, 0.7, seed);
    DecodingOptions options;
    options.gamma = 3;
    options.max_new_tokens = 50;
    options.standardisation = {.temperature = 0};
    options.proposing = Proposing::greedy;
    const Generation drafted =
        decode_speculatively(pair.target, pair.draft, enumerated_prompt, options, RandomStream(0, 0));
    ModelDraft draft(pair.draft, {}, Proposing::greedy);
    const Generation found = decode_blockwise(pair.target, predictors_of(draft, enumerated_prompt), enumerated_prompt,
                                              {.block = 4, .max_new_tokens = 50});
    CHECK(found.tokens == drafted.tokens);
    accepted += found.counters.accepted;
    // A block begins with the token that ends a step of the other: they are one token apart.
    CHECK(std::abs(found.counters.steps - drafted.counters.steps) <= 1);
    CHECK(found.counters.target_calls == found.counters.steps + 1);
  }
  CHECK(accepted > 50);
}

TEST_CASE("heads that say too much or no token, and blocks of none, are refused") {
  TablePair pair = synthetic_bigram_pair(6, 1, 2);
  const auto decode = [&](const Tokens& guesses, std::int64_t block) {
    return decode_blockwise(pair.target, [&](std::span<const Token>, std::int64_t) { return guesses; },
                            enumerated_prompt, {.block = block, .max_new_tokens = 9});
  };
  CHECK_THROWS_WITH(decode({1, 2}, 2), "decode_blockwise: tokens of the heads is 2, but must be in [0, 1]");
  CHECK_THROWS_AS(decode({6}, 2), std::domain_error);
  CHECK_THROWS_AS(decode({}, 0), std::domain_error);
  CHECK_THROWS_AS(decode_blockwise(pair.target, right_heads({}), {}, {}), std::domain_error);
}
