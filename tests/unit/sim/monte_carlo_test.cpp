#include "sim/monte_carlo.hpp"

#include <stdexcept>
#include <vector>

#include "tests/support/catch.hpp"

using namespace specdec::sim;
using Tokens = std::vector<Token>;

namespace {

DecodingOptions options_for(std::int64_t gamma, std::int64_t tokens) {
  DecodingOptions options;
  options.gamma = gamma;
  options.max_new_tokens = tokens;
  return options;
}

}  // namespace

TEST_CASE("the sum over sequences is bit-identical for any number of threads") {
  const TablePair pair = synthetic_bigram_pair(20, 0.7, 3);
  const DecodingOptions options = options_for(4, 12);
  const Tokens prompt = {5};
  // More sequences than are handed over in one portion.
  const Counters one = simulate(pair, prompt, options, {5000, 1, 11});
  CHECK(one.tokens == 5000 * 12);
  for (const std::int64_t threads : {2, 3, 8}) CHECK(simulate(pair, prompt, options, {5000, threads, 11}) == one);
  CHECK(!(simulate(pair, prompt, options, {5000, 1, 12}) == one));
}

TEST_CASE("a sequence's text does not depend on how many others run, and results come in order") {
  const TablePair pair = synthetic_bigram_pair(20, 0.7, 3);
  const DecodingOptions options = options_for(3, 10);
  const Tokens prompt = {0};
  const auto make_decoder = [&]() -> SequenceDecoder {
    return [own = pair, &prompt, &options](std::int64_t, const RandomStream& stream) mutable {
      return decode_speculatively(own.target, own.draft, prompt, options, stream);
    };
  };
  std::int64_t expected = 0;
  ContextTableModel target = pair.target;
  ContextTableModel draft = pair.draft;
  for_each_sequence({50, 4, 7}, make_decoder, [&](std::int64_t sequence, const Generation& run) {
    CHECK(sequence == expected++);
    const RandomStream stream(7, static_cast<std::uint64_t>(sequence));
    CHECK(run.tokens == decode_speculatively(target, draft, prompt, options, stream).tokens);
  });
  CHECK(expected == 50);
}

TEST_CASE("the first sequence that throws ends the simulation with its exception") {
  const auto make_decoder = []() -> SequenceDecoder {
    return [](std::int64_t sequence, const RandomStream&) -> Generation {
      if (sequence >= 3) throw std::runtime_error("sequence " + std::to_string(sequence));
      return {};
    };
  };
  std::int64_t seen = 0;
  CHECK_THROWS_WITH(for_each_sequence({100, 2, 0}, make_decoder, [&](std::int64_t, const Generation&) { ++seen; }),
                    "sequence 3");
  CHECK(seen == 3);
}

TEST_CASE("no sequences give empty counters, and options out of range are refused") {
  const TablePair pair = fixed_pair({0.5, 0.5}, {1, 0});
  const Tokens prompt = {0};
  CHECK(simulate(pair, prompt, options_for(2, 5), {0, 1, 0}) == Counters{});
  CHECK_THROWS_AS(simulate(pair, prompt, options_for(2, 5), {-1, 1, 0}), std::domain_error);
  CHECK_THROWS_AS(simulate(pair, prompt, options_for(2, 5), {1, 0, 0}), std::domain_error);
  CHECK_THROWS_AS(simulate(pair, prompt, options_for(-2, 5), {1, 1, 0}), std::domain_error);
}
