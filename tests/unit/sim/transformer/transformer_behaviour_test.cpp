#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>

#include "sim/transformer/transformer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_checkpoint.hpp"
#include "tests/support/safetensors_file.hpp"
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

/// Writes the checkpoint with its first `layers` blocks alone, as if it had been trained so.
void write_shortened(const tests::RandomCheckpoint& checkpoint, int layers, const std::filesystem::path& folder) {
  std::ifstream in(checkpoint.folder() / "config.json");
  std::string config{std::istreambuf_iterator<char>(in), {}};
  const std::string key = "\"num_hidden_layers\":";
  config.replace(config.find(key) + key.size(), 1, std::to_string(layers));
  std::ofstream(folder / "config.json") << config;
  const std::string prefix = "model.layers.";
  std::vector<tests::TensorData> kept;
  for (const tests::NamedTensor& tensor : checkpoint.tensors()) {
    if (tensor.name.starts_with(prefix) && tensor.name[prefix.size()] - '0' >= layers) continue;
    kept.push_back({{tensor.name, traces::ElementType::f32, tensor.shape}, std::as_bytes(std::span(tensor.values))});
  }
  tests::write_safetensors(folder / "model.safetensors", kept);
}

/// The features of all positions, one after another.
std::vector<float> features_of(const Transformer& model) {
  std::vector<float> all;
  for (std::int64_t position = 0; position < model.length(); ++position) {
    const std::span<const float> state = model.features(position);
    all.insert(all.end(), state.begin(), state.end());
  }
  return all;
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
  Transformer model(sim::load_checkpoint(tests::transformer_fixture("llama_gqa")));
  std::vector<double> rows(67);
  model.score(std::vector<Token>{1, 2, 3}, rows);
  CHECK_THROWS_AS(model.score(std::vector<Token>{1, 67}, rows), std::domain_error);
  CHECK_THROWS_AS(model.score(std::vector<Token>{-1}, rows), std::domain_error);
  CHECK_THROWS_AS(model.score(std::vector<Token>(126, 1), rows), std::domain_error);
  CHECK_THROWS_AS(model.score({}, rows), std::invalid_argument);
  rows.resize(66);
  CHECK_THROWS_AS(model.score(std::vector<Token>{1}, rows), std::invalid_argument);
  CHECK_THROWS_AS(model.roll_back(4), std::domain_error);
  CHECK_THROWS_AS(model.roll_back(-1), std::domain_error);
  CHECK(model.length() == 3);
  CHECK(model.max_length() == 128);
  CHECK_NOTHROW(model.score({}, {}));
  CHECK_NOTHROW(model.score(std::vector<Token>(125, 1), {}));
  const auto weights = sim::load_checkpoint(tests::transformer_fixture("llama_gqa"));
  CHECK_THROWS_AS(Transformer(weights, {.threads = 0}), std::domain_error);
}

TEST_CASE("operations count two per parameter that a token is multiplied by") {
  const Transformer model(sim::load_checkpoint(tests::transformer_fixture("llama_gqa")));
  // 2 layers of q 40x40, k and v 20x40, o 40x40, gate and up 56x40, down 40x56; head 67x40.
  CHECK(model.operations_per_token() == 2.0 * (2 * (1600 + 2 * 800 + 1600 + 3 * 2240) + 2680));
}

TEST_CASE("a model told to run k blocks is the checkpoint that has no more") {
  const tests::Shape shape{48, 3, 3, 80, 90, 200};
  const tests::RandomCheckpoint checkpoint(shape);
  const auto weights = sim::load_checkpoint(checkpoint.folder());
  const auto tokens = some_tokens(100, shape.vocab_size);
  for (int layers = 1; layers <= 3; ++layers) {
    CAPTURE(layers);
    const tests::TemporaryFolder folder;
    write_shortened(checkpoint, layers, folder.path());
    Transformer shortened(sim::load_checkpoint(folder.path()));
    Transformer cut(weights, {.layers = layers});
    CHECK(rows_in_blocks(cut, tokens, 7) == rows_in_blocks(shortened, tokens, 100));
    CHECK(cut.operations_per_token() == shortened.operations_per_token());
  }
  CHECK_THROWS_AS(Transformer(weights, {.layers = 4}), std::domain_error);
  CHECK_THROWS_AS(Transformer(weights, {.layers = -1}), std::domain_error);
}

TEST_CASE(
    "features are what the head multiplies, kept for every position with the same bits in any blocks and threads") {
  const tests::RandomCheckpoint checkpoint(wide);
  const auto weights = sim::load_checkpoint(checkpoint.folder());
  const auto tokens = some_tokens(110, wide.vocab_size);
  const auto vocab = static_cast<std::size_t>(wide.vocab_size);
  const auto width = static_cast<std::size_t>(wide.width);
  Transformer whole(weights, {.keep_features = true});
  std::vector<float> logits(2 * vocab);
  whole.score_logits(tokens, logits);
  const std::vector<float> features = features_of(whole);
  REQUIRE(features.size() == tokens.size() * width);

  const std::vector<float>& head = checkpoint.tensors().front().values;
  for (std::size_t v = 0; v < vocab; ++v) {
    double logit = 0;
    for (std::size_t i = 0; i < width; ++i) logit += double{features[109 * width + i]} * double{head[v * width + i]};
    REQUIRE(std::abs(logit - double{logits[vocab + v]}) < 1e-4);
  }

  for (int threads = 1; threads <= 3; ++threads) {
    for (const std::size_t block : {1, 5, 49}) {
      CAPTURE(threads, block);
      Transformer model(weights, {.threads = threads, .keep_features = true});
      for (std::size_t first = 0; first < tokens.size(); first += block)
        model.score(std::span(tokens).subspan(first, std::min(block, tokens.size() - first)), {});
      CHECK(features_of(model) == features);
    }
  }

  whole.score(some_tokens(40, wide.vocab_size), {});
  whole.roll_back(80);
  CHECK(features_of(whole) == std::vector<float>(features.begin(), features.begin() + 80 * wide.width));
  whole.score(std::span(tokens).subspan(80), {});
  CHECK(features_of(whole) == features);
}

TEST_CASE("features are refused beyond the prefix, and where they are not kept") {
  const auto weights = sim::load_checkpoint(tests::transformer_fixture("llama_gqa"));
  Transformer model(weights, {.keep_features = true});
  CHECK_THROWS_AS(model.features(0), std::domain_error);
  model.score(std::vector<Token>{1, 2, 3}, {});
  CHECK(model.features(2).size() == 40);
  CHECK_THROWS_AS(model.features(3), std::domain_error);
  CHECK_THROWS_AS(model.features(-1), std::domain_error);
  model.roll_back(2);
  CHECK_THROWS_AS(model.features(2), std::domain_error);
  Transformer without(weights);
  without.score(std::vector<Token>{1}, {});
  CHECK_THROWS_AS(without.features(0), std::invalid_argument);
}

TEST_CASE("vectors in the place of embeddings are scored as the tokens that have them") {
  const tests::RandomCheckpoint checkpoint(wide);
  const auto weights = sim::load_checkpoint(checkpoint.folder());
  const auto tokens = some_tokens(100, wide.vocab_size);
  const auto vocab = static_cast<std::size_t>(wide.vocab_size);
  const std::vector<float>& embedding = checkpoint.tensors().front().values;
  std::vector<float> vectors;
  for (const Token token : tokens)
    vectors.insert(vectors.end(), embedding.begin() + token * wide.width, embedding.begin() + (token + 1) * wide.width);
  Transformer by_tokens(weights);
  Transformer by_vectors(weights);
  std::vector<double> expected(60 * vocab);
  std::vector<double> found(60 * vocab);
  by_tokens.score(tokens, expected);
  by_vectors.score_vectors(vectors, found);
  CHECK(found == expected);
  CHECK(by_vectors.length() == 100);
  CHECK_THROWS_AS(by_vectors.score_vectors(std::span(vectors).first(3), {}), std::invalid_argument);
  CHECK_THROWS_AS(by_vectors.score_vectors(std::span(vectors).first(static_cast<std::size_t>(wide.width)), found),
                  std::invalid_argument);
  CHECK(by_vectors.length() == 100);
}

TEST_CASE("a model that knows some tokens gives the others 0, reads them as the first, and is else the whole model") {
  const tests::Shape shape{32, 2, 2, 48, 20, 30};
  const std::vector<std::int64_t> known{2, 3, 7, 11, 19};
  Transformer some(sim::load_checkpoint(tests::RandomCheckpoint(shape, known).folder()));
  Transformer all(sim::load_checkpoint(tests::RandomCheckpoint(shape).folder()));
  CHECK(some.vocab_size() == 20);
  CHECK(some.operations_per_token() < all.operations_per_token());
  const std::vector<double> found = rows_in_blocks(some, {7, 0, 19, 3}, 4);
  const std::vector<double> whole = rows_in_blocks(all, {7, 2, 19, 3}, 4);
  for (std::size_t row = 0; row < 4; ++row) {
    double sum = 0;
    for (const std::int64_t token : known) sum += whole[row * 20 + static_cast<std::size_t>(token)];
    for (std::int64_t token = 0; token < 20; ++token) {
      const std::size_t at = row * 20 + static_cast<std::size_t>(token);
      CAPTURE(row, token);
      if (std::find(known.begin(), known.end(), token) == known.end())
        CHECK(found[at] == 0);
      else
        CHECK(found[at] == Approx(whole[at] / sum).epsilon(1e-5));
    }
  }
}
