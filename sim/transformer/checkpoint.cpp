#include "sim/transformer/checkpoint.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/transformer/weights.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/safetensors.hpp"

namespace specdec::sim {
namespace {

using nlohmann::json;
using traces::FileError;
using traces::SafetensorsFile;
using traces::Tensor;

using Shape = std::vector<std::int64_t>;

/// The tensors of a checkpoint, in one file or several.
class Store {
 public:
  explicit Store(const std::filesystem::path& folder) {
    const auto single = folder / "model.safetensors";
    const auto index = folder / "model.safetensors.index.json";
    if (std::filesystem::exists(single) || !std::filesystem::exists(index)) {
      path_ = single;
      const auto& file = files_.emplace_back(std::make_unique<SafetensorsFile>(single));
      for (const Tensor& tensor : file->tensors()) tensors_.emplace(tensor.name, Entry{&tensor, file.get()});
    } else {
      path_ = index;
      open_shards(folder, read_weight_map(index));
    }
  }

  bool has(const std::string& name) const { return tensors_.contains(name); }

  /// Checks a tensor's presence, shape and type.
  void require(const std::string& name, const Shape& shape) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) {
      throw FileError(path_, FileError::whole_file(), name, "missing",
                      "a tensor of shape " + traces::shape_text(shape));
    }
    const Tensor& tensor = *found->second.tensor;
    if (tensor.shape != shape) {
      refuse(found->second, "shape", traces::shape_text(tensor.shape),
             traces::shape_text(shape) + ", as config.json demands");
    }
    using traces::ElementType;
    if (tensor.type != ElementType::f32 && tensor.type != ElementType::f16 && tensor.type != ElementType::bf16) {
      refuse(found->second, "dtype", std::string(name_of(tensor.type)), "F32, F16 or BF16");
    }
    required_.insert(name);
  }

  /// Hands every row of a required tensor (its last dimension) to `take(row, values)`.
  template <class F>
  void for_each_row(const std::string& name, F take) const {
    const Entry& entry = tensors_.at(name);
    const std::int64_t width = entry.tensor->shape.back();
    std::vector<float> values(static_cast<std::size_t>(width));
    for (std::int64_t r = 0; r * width < entry.tensor->elements(); ++r) {
      traces::read_floats(*entry.tensor, r * width, values);
      const auto bad = std::find_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); });
      if (bad != values.end()) {
        const std::int64_t at = r * width + (bad - values.begin());
        throw FileError(entry.file->path(), FileError::byte(entry.tensor->offset + at * size_of(entry.tensor->type)),
                        fmt::format("{}, element {}", name, at), fmt::format("{}", *bad), "finite");
      }
      take(static_cast<std::size_t>(r), std::span<const float>(values));
    }
  }

  /// Refuses tensors that nobody required: they belong to another architecture.
  void require_nothing_else(const std::function<bool(const std::string&)>& harmless) const {
    for (const auto& [name, entry] : tensors_) {
      if (!required_.contains(name) && !harmless(name)) {
        throw FileError(entry.file->path(), FileError::byte(entry.tensor->offset), name, "present",
                        "absent: the model has no such tensor");
      }
    }
  }

 private:
  struct Entry {
    const Tensor* tensor;
    const SafetensorsFile* file;
  };
  /// From tensor to file name.
  using WeightMap = std::map<std::string, std::string>;

  [[noreturn]] static void refuse(const Entry& entry, const char* what, std::string found, std::string expected) {
    throw FileError(entry.file->path(), FileError::byte(entry.tensor->offset), entry.tensor->name + "." + what,
                    std::move(found), std::move(expected));
  }

  static WeightMap read_weight_map(const std::filesystem::path& path) {
    const traces::MappedFile file(path);
    const auto* text = reinterpret_cast<const char*>(file.bytes().data());
    const json document = json::parse(text, text + file.bytes().size(), nullptr, false);
    if (!document.is_object() || !document.contains("weight_map") || !document["weight_map"].is_object()) {
      throw FileError(path, FileError::whole_file(), "weight_map", "missing", "an object from tensor to file name");
    }
    WeightMap map;
    for (const auto& [name, shard] : document["weight_map"].items()) {
      const std::string value = shard.is_string() ? shard.get<std::string>() : "";
      if (value.empty() || std::filesystem::path(value).filename() != value) {
        throw FileError(path, FileError::whole_file(), "weight_map." + name,
                        shard.dump(-1, ' ', true, json::error_handler_t::replace),
                        "the name of a file in the same folder");
      }
      map.emplace(name, value);
    }
    return map;
  }

  void open_shards(const std::filesystem::path& folder, const WeightMap& map) {
    std::map<std::string, const SafetensorsFile*> opened;
    for (const auto& [name, shard] : map) {
      if (opened.contains(shard)) continue;
      const auto& file = files_.emplace_back(std::make_unique<SafetensorsFile>(folder / shard));
      opened.emplace(shard, file.get());
      for (const Tensor& tensor : file->tensors()) {
        const auto mapped = map.find(tensor.name);
        if (mapped != map.end() && mapped->second == shard) tensors_.emplace(tensor.name, Entry{&tensor, file.get()});
      }
    }
    for (const auto& [name, shard] : map) {
      if (!has(name)) {
        throw FileError(folder / shard, FileError::whole_file(), name, "missing",
                        "in this file, as model.safetensors.index.json says");
      }
    }
  }

  std::filesystem::path path_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, Entry> tensors_;
  std::set<std::string> required_;
};

/// Builds the weights in two passes over the same walk: the first checks, the second allocates and reads.
class Loader {
 public:
  Loader(const TransformerConfig& config, Store& store) : config_(config), store_(store) {
    if (config.family == TransformerConfig::Family::gpt2 && store.has("transformer.wte.weight"))
      prefix_ = "transformer.";
  }

  std::shared_ptr<const TransformerWeights> load() {
    checking_ = true;
    TransformerWeights unused;
    walk(unused);
    store_.require_nothing_else([this](const std::string& name) { return is_harmless(name); });
    checking_ = false;
    auto weights = std::make_shared<TransformerWeights>();
    weights->config = config_;
    weights->matrix_memory.resize(matrix_floats_);
    next_matrix_ = weights->matrix_memory.data();
    walk(*weights);
    return weights;
  }

 private:
  /// Buffers that old checkpoints carry (rotary frequencies, causal masks), and the copy of a tied head.
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
    const std::int64_t queries = c.heads * c.head_size;
    const std::int64_t keys = c.key_value_heads * c.head_size;
    table("model.embed_tokens.weight", c.vocab_size, c.width, weights.token_embedding);
    for (std::int64_t i = 0; i < c.layers; ++i) {
      TransformerBlock block;
      const std::string layer = fmt::format("model.layers.{}.", i);
      rows({{layer + "self_attn.q_proj", queries},
            {layer + "self_attn.k_proj", keys},
            {layer + "self_attn.v_proj", keys}},
           c.width, c.attention_bias, block.query_key_value);
      rows({{layer + "self_attn.o_proj", c.width}}, queries, c.attention_bias, block.attention_output);
      rows({{layer + "mlp.gate_proj", c.feed_forward}, {layer + "mlp.up_proj", c.feed_forward}}, c.width,
           c.feed_forward_bias, block.feed_forward_input);
      rows({{layer + "mlp.down_proj", c.width}}, c.feed_forward, c.feed_forward_bias, block.feed_forward_output);
      norm_weight(layer + "input_layernorm.weight", block.attention_norm.weight);
      norm_weight(layer + "post_attention_layernorm.weight", block.feed_forward_norm.weight);
      if (!checking_) weights.blocks.push_back(std::move(block));
    }
    norm_weight("model.norm.weight", weights.final_norm.weight);
    head("model.embed_tokens.weight", weights);
  }

  void walk_gpt2(TransformerWeights& weights) {
    const auto& c = config_;
    table(prefix_ + "wte.weight", c.vocab_size, c.width, weights.token_embedding);
    table(prefix_ + "wpe.weight", c.max_length, c.width, weights.position_embedding);
    for (std::int64_t i = 0; i < c.layers; ++i) {
      TransformerBlock block;
      const std::string layer = fmt::format("{}h.{}.", prefix_, i);
      columns(layer + "attn.c_attn", c.width, 3 * c.width, block.query_key_value);
      columns(layer + "attn.c_proj", c.width, c.width, block.attention_output);
      columns(layer + "mlp.c_fc", c.width, c.feed_forward, block.feed_forward_input);
      columns(layer + "mlp.c_proj", c.feed_forward, c.width, block.feed_forward_output);
      norm(layer + "ln_1", block.attention_norm);
      norm(layer + "ln_2", block.feed_forward_norm);
      if (!checking_) weights.blocks.push_back(std::move(block));
    }
    norm(prefix_ + "ln_f", weights.final_norm);
    head(prefix_ + "wte.weight", weights);
  }

  void table(const std::string& name, std::int64_t count, std::int64_t width, std::vector<float>& out) {
    if (checking_) return store_.require(name, {count, width});
    out.reserve(static_cast<std::size_t>(count * width));
    store_.for_each_row(name, [&](std::size_t, auto values) { out.insert(out.end(), values.begin(), values.end()); });
  }

  void vector(const std::string& name, std::int64_t size, AlignedFloats& out) {
    if (checking_) return store_.require(name, {size});
    store_.for_each_row(name, [&](std::size_t, auto values) { out.insert(out.end(), values.begin(), values.end()); });
  }

  void norm_weight(const std::string& name, AlignedFloats& out) {
    vector(name, config_.width, out);
    out.resize(round_up(out.size(), line_floats));
  }

  void norm(const std::string& name, Norm& out) {
    norm_weight(name + ".weight", out.weight);
    vector(name + ".bias", config_.width, out.bias);
  }

  /// Reserves memory for a matrix, or hands it out.
  void allocate(std::int64_t rows, std::int64_t depth, PackedMatrix& out) {
    const auto row_count = static_cast<std::size_t>(rows);
    const auto column_count = static_cast<std::size_t>(depth);
    const std::size_t floats = PackedMatrix::floats(row_count, column_count);
    if (checking_) {
      matrix_floats_ += floats;
    } else {
      out = PackedMatrix(row_count, column_count, std::exchange(next_matrix_, next_matrix_ + floats));
    }
  }

  struct Part {
    std::string name;
    std::int64_t rows;
  };

  /// Matrices stored [out, in], one under the other.
  void rows(const std::vector<Part>& parts, std::int64_t depth, bool has_bias, Linear& out) {
    std::int64_t total = 0;
    for (const auto& [name, count] : parts) {
      if (checking_) store_.require(name + ".weight", {count, depth});
      total += count;
    }
    allocate(total, depth, out.matrix);
    std::size_t first = 0;
    for (const auto& [name, count] : parts) {
      if (!checking_) {
        store_.for_each_row(name + ".weight",
                            [&](std::size_t r, auto values) { out.matrix.set_row(first + r, values); });
      }
      if (has_bias) vector(name + ".bias", count, out.bias);
      first += static_cast<std::size_t>(count);
    }
  }

  /// A matrix stored [in, out], with its bias.
  void columns(const std::string& name, std::int64_t depth, std::int64_t count, Linear& out) {
    if (checking_) store_.require(name + ".weight", {depth, count});
    allocate(count, depth, out.matrix);
    if (!checking_) {
      store_.for_each_row(name + ".weight", [&](std::size_t k, auto values) { out.matrix.set_column(k, values); });
    }
    vector(name + ".bias", count, out.bias);
  }

  void head(const std::string& embedding, TransformerWeights& weights) {
    const std::string name = config_.tied_head ? embedding : "lm_head.weight";
    if (checking_) store_.require(name, {config_.vocab_size, config_.width});
    allocate(config_.vocab_size, config_.width, weights.head.matrix);
    if (checking_) return;
    store_.for_each_row(name, [&](std::size_t r, auto values) { weights.head.matrix.set_row(r, values); });
  }

  const TransformerConfig& config_;
  Store& store_;
  std::string prefix_;
  bool checking_ = true;
  std::size_t matrix_floats_ = 0;
  float* next_matrix_ = nullptr;
};

}  // namespace

std::shared_ptr<const TransformerWeights> load_checkpoint(const std::filesystem::path& folder) {
  const TransformerConfig config = read_config(folder / "config.json");
  Store store(folder);
  return Loader(config, store).load();
}

const TransformerConfig& config_of(const TransformerWeights& weights) { return weights.config; }

}  // namespace specdec::sim
