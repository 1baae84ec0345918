#include "tests/support/random_checkpoint.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

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

template <class T>
void write(std::ofstream& file, const T* data, std::size_t count) {
  file.write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(count * sizeof(T)));
}

void write_safetensors(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors) {
  nlohmann::json header;
  std::uint64_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    const std::uint64_t end = offset + tensor.values.size() * sizeof(float);
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::ofstream file(path, std::ios::binary);
  write(file, &length, 1);
  write(file, text.data(), text.size());
  for (const NamedTensor& tensor : tensors) write(file, tensor.values.data(), tensor.values.size());
}

void write_config(const std::filesystem::path& path, const Shape& s) {
  const nlohmann::json config = {{"model_type", "llama"},
                                 {"vocab_size", s.vocab_size},
                                 {"hidden_size", s.width},
                                 {"intermediate_size", s.feed_forward},
                                 {"num_hidden_layers", s.layers},
                                 {"num_attention_heads", s.heads},
                                 {"max_position_embeddings", s.max_length},
                                 {"rms_norm_eps", 1e-5},
                                 {"tie_word_embeddings", true}};
  std::ofstream(path) << config;
}

}  // namespace

RandomCheckpoint::RandomCheckpoint(const Shape& shape) : tensors_(random_tensors(shape)) {
  write_config(folder() / "config.json", shape);
  write_safetensors(folder() / "model.safetensors", tensors_);
}

}  // namespace specdec::tests
