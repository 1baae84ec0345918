#include "tests/support/random_checkpoint.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <span>
#include <utility>

#include "tests/support/safetensors_file.hpp"

namespace specdec::tests {
namespace {

std::vector<NamedTensor> random_tensors(const Shape& s) {
  std::mt19937 generator(1);
  std::vector<NamedTensor> tensors;
  const auto add = [&](std::string name, std::vector<std::int64_t> shape) {
    const bool is_norm = shape.size() == 1;
    const std::int64_t count = is_norm ? shape[0] : shape[0] * shape[1];
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(shape.back())));
    std::vector<float> values(static_cast<std::size_t>(count), 1.0F);
    if (!is_norm) {
      for (float& v : values) v = normal(generator);
    }
    tensors.push_back({std::move(name), std::move(shape), std::move(values)});
  };
  const auto add_layers = [&](const char* name, const std::vector<std::int64_t>& shape) {
    for (std::int64_t i = 0; i < s.layers; ++i) add(fmt::format("model.layers.{}.{}.weight", i, name), shape);
  };
  add("model.embed_tokens.weight", {s.vocab_size, s.width});
  add_layers("input_layernorm", {s.width});
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"}) {
    add_layers(fmt::format("self_attn.{}", name).c_str(), {s.width, s.width});
  }
  add_layers("post_attention_layernorm", {s.width});
  add_layers("mlp.gate_proj", {s.feed_forward, s.width});
  add_layers("mlp.down_proj", {s.width, s.feed_forward});
  add_layers("mlp.up_proj", {s.feed_forward, s.width});
  add("model.norm.weight", {s.width});
  return tensors;
}

/// Keeps the embeddings of these tokens alone.
void keep_tokens(NamedTensor& embedding, const std::vector<std::int64_t>& known) {
  const std::int64_t width = embedding.shape.back();
  std::vector<float> rows;
  for (const std::int64_t token : known) {
    const auto row = embedding.values.begin() + token * width;
    rows.insert(rows.end(), row, row + width);
  }
  embedding.shape.front() = std::ssize(known);
  embedding.values = std::move(rows);
}

void write_weights(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors,
                   std::vector<std::int64_t> known) {
  std::vector<TensorData> data;
  for (std::size_t i = 0; i < known.size(); ++i) known[i] -= static_cast<std::int64_t>(i);
  if (!known.empty())
    data.push_back({{"d2t", traces::ElementType::i64, {std::ssize(known)}}, std::as_bytes(std::span(known))});
  for (const NamedTensor& tensor : tensors) {
    data.push_back({{tensor.name, traces::ElementType::f32, tensor.shape}, std::as_bytes(std::span(tensor.values))});
  }
  write_safetensors(path, data);
}

void write_config(const std::filesystem::path& path, const Shape& s, const std::vector<std::int64_t>& known) {
  nlohmann::json config = {{"model_type", "llama"},
                                 {"vocab_size", s.vocab_size},
                                 {"hidden_size", s.width},
                                 {"intermediate_size", s.feed_forward},
                                 {"num_hidden_layers", s.layers},
                                 {"num_attention_heads", s.heads},
                                 {"max_position_embeddings", s.max_length},
                                 {"rms_norm_eps", 1e-5},
                                 {"tie_word_embeddings", true}};
  if (!known.empty()) config["draft_vocab_size"] = known.size();
  std::ofstream(path) << config;
}

}  // namespace

RandomCheckpoint::RandomCheckpoint(const Shape& shape, const std::vector<std::int64_t>& known)
    : tensors_(random_tensors(shape)) {
  if (!known.empty()) keep_tokens(tensors_.front(), known);
  write_config(folder() / "config.json", shape, known);
  write_weights(folder() / "model.safetensors", tensors_, known);
}

}  // namespace specdec::tests
