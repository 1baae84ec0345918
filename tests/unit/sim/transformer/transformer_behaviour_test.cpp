#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/transformer/transformer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_checkpoint.hpp"
#include "tests/unit/sim/transformer/fixtures.hpp"

using namespace specdec;
using sim::Token;
using sim::Transformer;

namespace {

/// Large enough that every product is shared between threads, with sizes that split unevenly.
const tests::Shape wide{144, 2, 3, 400, 1000, 700};

std::vector<Token> some_tokens(std::size_t n, std::int64_t vocab_size) {
  std::vector<Token> tokens(n);
  for (std::size_t i = 0; i < n; ++i)
    tokens[i] = static_cast<Token>((i * i * 31 + 7 * i) % static_cast<std::size_t>(vocab_size));
  return tokens;
}

std::vector<double> rows_in_blocks(Transformer& model, const std::vector<Token>& tokens, std::size_t block) {
  const auto width = static_cast<std::size_t>(model.vocab_size());
  std::vector<double> rows(tokens.size() * width);
  for (std::size_t first = 0; first < tokens.size(); first += block) {
    const std::size_t n = std::min(block, tokens.size() - first);
    model.score(std::span(tokens).subspan(first, n), std::span(rows).subspan(first * width, n * width));
  }
  return rows;
}

}  // namespace

TEST_CASE(
    "rows have the same bits for blocks of 1 to 9 and 500 tokens and 1 to 3 threads, beyond one chunk of a block") {
  const tests::RandomCheckpoint checkpoint(wide);
  const auto weights = sim::load_checkpoint(checkpoint.folder());
  const auto tokens = some_tokens(300, wide.vocab_size);
  Transformer one(weights);
  const auto expected = rows_in_blocks(one, tokens, 1);
  for (int threads = 1; threads <= 3; ++threads) {
    Transformer model(weights, {.threads = threads});
    for (const std::size_t block : {1, 2, 3, 4, 5, 6, 7, 8, 9, 500}) {
      CAPTURE(threads, block);
      model.roll_back(0);
      CHECK(rows_in_blocks(model, tokens, block) == expected);
    }
  }
}

TEST_CASE("rows are distributions, and only those of the last tokens are written") {
  const tests::RandomCheckpoint checkpoint(wide);
  Transformer model(sim::load_checkpoint(checkpoint.folder()));
  const auto width = static_cast<std::size_t>(wide.vocab_size);
  const auto tokens = some_tokens(60, wide.vocab_size);
  std::vector<double> all(tokens.size() * width);
  model.score(tokens, all);
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    const std::span<const double> row = std::span(all).subspan(t * width, width);
    CHECK(std::abs(std::accumulate(row.begin(), row.end(), 0.0) - 1) < 1e-12);
    CHECK(*std::min_element(row.begin(), row.end()) >= 0);
  }
  for (const std::size_t n : {0, 1, 3, 13, 50}) {
    model.roll_back(0);
    std::vector<double> last(n * width);
    model.score(tokens, last);
    CHECK(model.length() == 60);
    CHECK(std::equal(last.begin(), last.end(), all.end() - static_cast<std::ptrdiff_t>(n * width)));
  }
}

TEST_CASE("after a roll-back the model scores as if the tokens had never been there") {
  const auto folder = tests::transformer_fixture("llama_gqa");
  const tests::ExpectedLogits expected(folder);
  const auto weights = sim::load_checkpoint(folder);
  Transformer straight(weights);
  Transformer wandering(weights);
  const auto rows = rows_in_blocks(straight, expected.tokens, 100);
  std::vector<double> row(expected.vocab_size);
  for (std::size_t t = 0; t < expected.tokens.size(); ++t) {
    wandering.score(std::vector<Token>{5, 4, 3, 2, 1, 0}, {});
    wandering.roll_back(static_cast<std::int64_t>(t));
    wandering.score(std::span(expected.tokens).subspan(t, 1), row);
    CHECK(std::equal(row.begin(), row.end(), rows.begin() + static_cast<std::ptrdiff_t>(t * expected.vocab_size)));
    if (t + 7 > expected.tokens.size()) break;
  }
}

TEST_CASE("bad calls are refused with the range and leave the prefix as it was") {
  Transformer model(sim::load_checkpoint(tests::transformer_fixture("llama_gqa")), {.max_length = 20});
  std::vector<double> rows(67);
  model.score(std::vector<Token>{1, 2, 3}, rows);
  CHECK_THROWS_AS(model.score(std::vector<Token>{1, 67}, rows), std::domain_error);
  CHECK_THROWS_AS(model.score(std::vector<Token>{-1}, rows), std::domain_error);
  CHECK_THROWS_AS(model.score(std::vector<Token>(18, 1), rows), std::domain_error);
  CHECK_THROWS_AS(model.score({}, rows), std::invalid_argument);
  rows.resize(66);
  CHECK_THROWS_AS(model.score(std::vector<Token>{1}, rows), std::invalid_argument);
  CHECK_THROWS_AS(model.roll_back(4), std::domain_error);
  CHECK_THROWS_AS(model.roll_back(-1), std::domain_error);
  CHECK(model.length() == 3);
  CHECK(model.max_length() == 20);
  CHECK_NOTHROW(model.score({}, {}));
  CHECK_NOTHROW(model.score(std::vector<Token>(17, 1), {}));
  const auto weights = sim::load_checkpoint(tests::transformer_fixture("llama_gqa"));
  CHECK_THROWS_AS(Transformer(weights, {.threads = 0}), std::domain_error);
  CHECK_THROWS_AS(Transformer(weights, {.max_length = 129}), std::domain_error);
}

TEST_CASE("operations count two per parameter that a token is multiplied by, attention by its context") {
  const Transformer model(sim::load_checkpoint(tests::transformer_fixture("llama_gqa")));
  // 2 layers of q 40x40, k and v 20x40, o 40x40, gate and up 56x40, down 40x56; head 67x40.
  CHECK(model.operations_per_token() == 2.0 * (2 * (1600 + 2 * 800 + 1600 + 3 * 2240) + 2680));
  CHECK(model.attention_operations(10) == 4.0 * 2 * 4 * 10 * 10);
}
