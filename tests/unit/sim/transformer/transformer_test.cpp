#include "sim/transformer/transformer.hpp"

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/catch.hpp"
#include "tests/support/safetensors_file.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/unit/sim/transformer/fixtures.hpp"

using namespace specdec;
using sim::Token;
using sim::Transformer;
using tests::ExpectedLogits;
using tests::transformer_fixture;

namespace {

const std::vector<std::string> checkpoints = {"llama_gqa", "llama_sharded_bf16",     "llama_tied_f16", "llama3_rope",
                                              "gpt2",      "gpt2_without_prefix_f16"};

/// The largest |difference| of a row over the row's largest |expected|.
double worst_error(const std::vector<float>& found, const ExpectedLogits& expected) {
  double worst = 0;
  for (std::size_t t = 0; t < expected.tokens.size(); ++t) {
    double largest = 0;
    double difference = 0;
    for (std::size_t i = t * expected.vocab_size; i < (t + 1) * expected.vocab_size; ++i) {
      largest = std::max(largest, std::abs(double{expected.logits[i]}));
      difference = std::max(difference, std::abs(double{found[i]} - double{expected.logits[i]}));
    }
    worst = std::max(worst, difference / largest);
  }
  return worst;
}

/// Logits of a sequence scored in blocks of one size.
std::vector<float> logits_in_blocks(const std::filesystem::path& folder, const std::vector<Token>& tokens,
                                    std::size_t block, int threads) {
  Transformer model(sim::load_checkpoint(folder), {.threads = threads});
  const auto width = static_cast<std::size_t>(model.vocab_size());
  std::vector<float> logits(tokens.size() * width);
  for (std::size_t first = 0; first < tokens.size(); first += block) {
    const std::size_t n = std::min(block, tokens.size() - first);
    model.score_logits(std::span(tokens).subspan(first, n), std::span(logits).subspan(first * width, n * width));
  }
  return logits;
}

}  // namespace

TEST_CASE("logits agree with Hugging Face transformers to 1e-4 of each row's largest") {
  for (const std::string& name : checkpoints) {
    CAPTURE(name);
    const ExpectedLogits expected(transformer_fixture(name));
    const auto found = logits_in_blocks(transformer_fixture(name), expected.tokens, expected.tokens.size(), 1);
    const double error = worst_error(found, expected);
    CAPTURE(error);
    CHECK(error <= 1e-4);
  }
}

TEST_CASE("matrices of parts of 16 and of 32 bits score as those of one type") {
  const auto whole = transformer_fixture("llama_tied_f16");
  const tests::TemporaryFolder folder;
  std::filesystem::copy_file(whole / "config.json", folder.path() / "config.json");
  const traces::SafetensorsFile file(whole / "model.safetensors");
  std::vector<std::vector<float>> widened;
  std::vector<tests::TensorData> tensors;
  for (const traces::Tensor& tensor : file.tensors()) {
    tensors.push_back({{tensor.name, tensor.type, tensor.shape}, tensor.bytes});
    if (tensor.name.find("v_proj") == std::string::npos) continue;
    std::vector<float>& values = widened.emplace_back(static_cast<std::size_t>(tensor.elements()));
    traces::read_floats(tensor, 0, values);
    tensors.back() = {{tensor.name, traces::ElementType::f32, tensor.shape}, std::as_bytes(std::span(values))};
  }
  REQUIRE_FALSE(widened.empty());
  tests::write_safetensors(folder.path() / "model.safetensors", tensors);
  const std::vector<Token> tokens = ExpectedLogits(whole).tokens;
  CHECK(logits_in_blocks(folder.path(), tokens, 3, 1) == logits_in_blocks(whole, tokens, 3, 1));
}

TEST_CASE("a row of logits has the same bits in blocks of any size and with any number of threads") {
  for (const std::string& name : checkpoints) {
    CAPTURE(name);
    const ExpectedLogits expected(transformer_fixture(name));
    const auto whole = logits_in_blocks(transformer_fixture(name), expected.tokens, expected.tokens.size(), 1);
    for (std::size_t block = 1; block <= 13; ++block) {
      for (int threads = 1; threads <= 3; ++threads) {
        CAPTURE(block, threads);
        CHECK(logits_in_blocks(transformer_fixture(name), expected.tokens, block, threads) == whole);
      }
    }
  }
}
