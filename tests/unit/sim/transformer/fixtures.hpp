#pragma once

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/language_model.hpp"
#include "tests/support/source_dir.hpp"
#include "traces/formats/safetensors.hpp"

namespace specdec::tests {

/// A folder of tests/fixtures/transformer.
inline std::filesystem::path transformer_fixture(const std::string& name) {
  return std::filesystem::path(tests::source_dir()) / "tests" / "fixtures" / "transformer" / name;
}

/// Values that Hugging Face transformers computed for a fixture: a sequence of tokens and the logits after each.
struct ExpectedLogits {
  std::vector<sim::Token> tokens;
  /// Shape: (tokens, vocab_size).
  std::vector<float> logits;
  std::size_t vocab_size = 0;

  explicit ExpectedLogits(const std::filesystem::path& folder) {
    const traces::SafetensorsFile file(folder / "expected.safetensors");
    const traces::Tensor& ids = *file.find("tokens");
    tokens.resize(static_cast<std::size_t>(ids.elements()));
    std::memcpy(tokens.data(), ids.bytes.data(), ids.bytes.size());
    const traces::Tensor& rows = *file.find("logits");
    logits.resize(static_cast<std::size_t>(rows.elements()));
    traces::read_floats(rows, 0, logits);
    vocab_size = static_cast<std::size_t>(rows.shape.back());
  }
};

}  // namespace specdec::tests
