#include "sim/transformer/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "sim/transformer/weight_reader.hpp"
#include "sim/transformer/weights.hpp"

namespace specdec::sim {
namespace {

/// Builds the weights in two passes over the same walk.
class Loader {
 public:
  Loader(const TransformerConfig& config, TensorStore& store) : config_(config), store_(store), reader_(store) {
    if (config.family == TransformerConfig::Family::gpt2 && store.has("transformer.wte.weight"))
      prefix_ = "transformer.";
  }

  std::shared_ptr<const TransformerWeights> load() {
    const std::vector<Token> known = store_.known_tokens(config_.known_tokens, config_.vocab_size);
    TransformerWeights unused;
    walk(unused);
    store_.require_nothing_else([this](const std::string& name) { return is_harmless(name); });
    auto weights = std::make_shared<TransformerWeights>();
    weights->config = config_;
    reader_.begin_reading(weights->matrix_memory);
    walk(*weights);
    if (!known.empty()) weights->token_embedding = spread_embedding(weights->token_embedding, known);
    weights->known_tokens = known;
    return weights;
  }

 private:
  /// A row for every token: its own, or the first.
  std::vector<float> spread_embedding(const std::vector<float>& known_rows, std::span<const Token> known) const {
    const auto width = static_cast<std::size_t>(config_.width);
    std::vector<float> rows(static_cast<std::size_t>(config_.vocab_size) * width);
    std::size_t row = 0;
    for (std::size_t token = 0; token * width < rows.size(); ++token) {
      const bool is_known = row < known.size() && static_cast<std::size_t>(known[row]) == token;
      std::copy_n(known_rows.begin() + static_cast<std::ptrdiff_t>(is_known ? row++ * width : 0), width,
                  rows.begin() + static_cast<std::ptrdiff_t>(token * width));
    }
    return rows;
  }

  /// Buffers that old checkpoints contain (rotary frequencies, causal masks), and the copy of a tied head.
  bool is_harmless(const std::string& name) const {
    return name.ends_with(".rotary_emb.inv_freq") || name.ends_with(".attn.bias") ||
           name.ends_with(".attn.masked_bias") || (config_.tied_head && name == "lm_head.weight");
  }

  void walk(TransformerWeights& weights) {
    if (config_.family == TransformerConfig::Family::llama) {
      walk_llama(weights);
    } else {
      walk_gpt2(weights);
    }
  }

  void walk_llama(TransformerWeights& weights) {
    const auto& c = config_;
    reader_.table("model.embed_tokens.weight", c.known_tokens, c.width, weights.token_embedding);
    for (std::int64_t i = 0; i < c.layers; ++i) {
      TransformerBlock block;
      reader_.llama_block(c, fmt::format("model.layers.{}.", i), block);
      if (!reader_.checking()) weights.blocks.push_back(std::move(block));
    }
    reader_.norm_weight("model.norm.weight", c.width, weights.final_norm.weight);
    head("model.embed_tokens.weight", weights);
  }

  void walk_gpt2(TransformerWeights& weights) {
    const auto& c = config_;
    reader_.table(prefix_ + "wte.weight", c.vocab_size, c.width, weights.token_embedding);
    reader_.table(prefix_ + "wpe.weight", c.max_length, c.width, weights.position_embedding);
    for (std::int64_t i = 0; i < c.layers; ++i) {
      TransformerBlock block;
      const std::string layer = fmt::format("{}h.{}.", prefix_, i);
      reader_.columns(layer + "attn.c_attn", c.width, 3 * c.width, block.query_key_value);
      reader_.columns(layer + "attn.c_proj", c.width, c.width, block.attention_output);
      reader_.columns(layer + "mlp.c_fc", c.width, c.feed_forward, block.feed_forward_input);
      reader_.columns(layer + "mlp.c_proj", c.feed_forward, c.width, block.feed_forward_output);
      norm(layer + "ln_1", block.attention_norm);
      norm(layer + "ln_2", block.feed_forward_norm);
      if (!reader_.checking()) weights.blocks.push_back(std::move(block));
    }
    norm(prefix_ + "ln_f", weights.final_norm);
    head(prefix_ + "wte.weight", weights);
  }

  void norm(const std::string& name, Norm& out) {
    reader_.norm_weight(name + ".weight", config_.width, out.weight);
    reader_.vector(name + ".bias", config_.width, out.bias);
  }

  void head(const std::string& embedding, TransformerWeights& weights) {
    reader_.matrix(config_.tied_head ? embedding : "lm_head.weight", config_.known_tokens, config_.width,
                   weights.head.matrix);
  }

  const TransformerConfig& config_;
  TensorStore& store_;
  WeightReader reader_;
  std::string prefix_;
};

}  // namespace

std::shared_ptr<const TransformerWeights> load_checkpoint(const std::filesystem::path& folder) {
  const TransformerConfig config = read_config(folder / "config.json");
  TensorStore store = TensorStore::of_checkpoint(folder);
  return Loader(config, store).load();
}

const TransformerConfig& config_of(const TransformerWeights& weights) { return weights.config; }

}  // namespace specdec::sim
