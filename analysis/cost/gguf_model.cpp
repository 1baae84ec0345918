#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "analysis/cost/layer_shapes.hpp"
#include "analysis/cost/model_config.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/gguf_header.hpp"
#include "traces/formats/printable.hpp"

// Weights are counted from the tensors themselves; the metadata say what a layer caches and how far it sees, by the
// keys of llama.cpp (src/llama-arch.cpp) with the meaning that its loader gives them.

namespace specdec::cost {
namespace {

using traces::FileError;
using traces::GgufHeader;
using traces::GgufTensor;

struct GgufArchitecture {
  std::string_view name;
  /// Every layer but the last of so many sees a window; 0 where all see all, whatever the keys say.
  std::int64_t window_period = 0;
  std::int64_t window_otherwise = 0;
};
constexpr std::array<GgufArchitecture, 12> gguf_architectures = {{{"deepseek2"},
                                                                  {"gemma"},
                                                                  {"gemma2", 2, 4096},
                                                                  {"gemma3", 6},
                                                                  {"gpt-oss", 2},
                                                                  {"gpt2"},
                                                                  {"llama"},
                                                                  {"phi3"},
                                                                  {"qwen2"},
                                                                  {"qwen2moe"},
                                                                  {"qwen3"},
                                                                  {"qwen3moe"}}};

/// Number types that the tensors counted so far have in common.
class CommonType {
 public:
  void add(std::string_view type) {
    if (none_yet_) {
      common_ = type;
    } else if (common_ != type) {
      common_ = {};
    }
    none_yet_ = false;
  }
  /// Empty for the quantized types of ggml, which have no counterpart.
  std::optional<NumberType> type() const {
    if (common_ == "F32") return NumberType::fp32;
    if (common_ == "F16") return NumberType::fp16;
    if (common_ == "BF16") return NumberType::bf16;
    if (common_ == "MXFP4") return NumberType::mxfp4;
    if (common_ == "NVFP4") return NumberType::nvfp4;
    return std::nullopt;
  }

 private:
  bool none_yet_ = true;
  std::string_view common_;
};

class GgufModelReader {
 public:
  explicit GgufModelReader(const std::filesystem::path& path) : first_(path) {}

  ModelSpec read() {
    choose_architecture();
    model_.name = first_.text("general.name").value_or(first_.path().stem().string());
    model_.model_type = architecture_->name;
    model_.width = require_size("embedding_length");
    model_.max_context = first_.integer(key("context_length"));
    blocks_.resize(static_cast<std::size_t>(require_size("block_count", 4096)), LayerGroup{.count = 1});
    latent_keys_.resize(blocks_.size());
    add_tensors(first_);
    for (const std::filesystem::path& part : other_parts()) add_tensors(GgufHeader(part));
    describe_ends();
    for (std::size_t index = 0; index < blocks_.size(); ++index) {
      describe_attention(index);
      add_layer(model_.layers, blocks_[index]);
    }
    model_.weight_bytes = bytes_;
    model_.weight_type = dense_type_.type();
    if (expert_type_.type() != model_.weight_type) model_.expert_weight_type = expert_type_.type();
    return std::move(model_);
  }

  const GgufHeader& header() const { return first_; }

 private:
  std::string key(std::string_view name) const { return fmt::format("{}.{}", architecture_->name, name); }

  void choose_architecture() {
    const std::string name(first_.text("general.architecture").value_or(""));
    architecture_ = std::find_if(gguf_architectures.begin(), gguf_architectures.end(),
                                 [&](const GgufArchitecture& known) { return known.name == name; });
    if (architecture_ != gguf_architectures.end()) return;
    std::vector<std::string_view> names;
    for (const GgufArchitecture& known : gguf_architectures) names.push_back(known.name);
    first_.refuse("general.architecture", name.empty() ? "missing" : '"' + traces::printable(name) + '"',
                  fmt::format("one of {}", fmt::join(names, ", ")));
  }

  std::int64_t require_size(std::string_view name, std::int64_t most = 2147483647) const {
    const std::optional<std::int64_t> size = first_.integer(key(name));
    if (!size) first_.refuse(key(name), "missing", "present");
    if (*size < 1 || *size > most) {
      first_.refuse(key(name), fmt::format("{}", *size), fmt::format("an integer in [1, {}]", most));
    }
    return *size;
  }

  /// A number of all layers, or of this one.
  std::int64_t size_of_layer(std::string_view name, std::size_t index, std::optional<std::int64_t> otherwise) const {
    const std::vector<std::int64_t> sizes = first_.integers(key(name));
    if (sizes.empty()) {
      if (!otherwise) first_.refuse(key(name), "missing", "present");
      return *otherwise;
    }
    if (sizes.size() != 1 && sizes.size() != blocks_.size()) {
      first_.refuse(key(name), fmt::format("an array of {}", sizes.size()),
                    fmt::format("one number, or one for each of {} layers", blocks_.size()));
    }
    const std::int64_t size = sizes.size() == 1 ? sizes[0] : sizes[index];
    if (size < 1) first_.refuse(key(name), fmt::format("{}", size), "an integer in [1, 2147483647]");
    return size;
  }

  /// Size of a head's keys or values; heads that divide the width need not say it.
  std::int64_t head_size(std::string_view name, std::size_t index, std::int64_t heads) const {
    if (!first_.has(key(name)) && model_.width % heads == 0) return model_.width / heads;
    return size_of_layer(name, index, std::nullopt);
  }

  /// NAME-00001-of-00003.gguf names the others.
  std::vector<std::filesystem::path> other_parts() const {
    const std::int64_t parts = first_.integer("split.count").value_or(1);
    std::vector<std::filesystem::path> paths;
    if (parts <= 1) return paths;
    if (parts > 99999) first_.refuse("split.count", fmt::format("{}", parts), "an integer in [1, 99999]");
    if (first_.integer("split.no").value_or(0) != 0) {
      first_.refuse("split.no", fmt::format("{}", *first_.integer("split.no")),
                    "0: the first part describes the model");
    }
    const std::string name = first_.path().filename().string();
    const std::string suffix = fmt::format("-00001-of-{:05}.gguf", parts);
    if (!name.ends_with(suffix)) {
      first_.refuse("split.count", fmt::format("{}", parts), fmt::format("1 in a file not named *{}", suffix));
    }
    const std::string prefix = name.substr(0, name.size() - suffix.size());
    for (std::int64_t part = 2; part <= parts; ++part) {
      paths.push_back(first_.path().parent_path() / fmt::format("{}-{:05}-of-{:05}.gguf", prefix, part, parts));
    }
    return paths;
  }

  [[noreturn]] static void refuse_tensor(const GgufHeader& header, const GgufTensor& tensor, std::string expected) {
    throw FileError(header.path(), "tensor " + traces::printable(tensor.name), "present", std::move(expected));
  }

  void add_tensors(const GgufHeader& header) {
    for (const GgufTensor& tensor : header.tensors()) {
      bytes_ += tensor.bytes;
      const std::string_view name = tensor.name;
      if (name.starts_with("blk.")) {
        add_to_block(header, tensor);
      } else if (name == "token_embd.weight") {
        if (tensor.shape.size() != 2) refuse_tensor(header, tensor, "of two dimensions");
        model_.vocabulary = tensor.shape[1];
        add_matrix(tensor, model_.embedding_parameters);
      } else if (name == "position_embd.weight") {
        add_matrix(tensor, model_.embedding_parameters);
      } else if (name == "output.weight") {
        add_matrix(tensor, model_.head_parameters);
      } else if (name.starts_with("rope_")) {
        continue;  // tables, no parameters
      } else if (tensor.shape.size() == 1) {
        model_.extra_other_parameters += tensor.elements;
      } else {
        refuse_tensor(header, tensor, "absent: a matrix beside embedding, head and blocks has no known use");
      }
    }
  }

  void add_matrix(const GgufTensor& tensor, std::int64_t& parameters) {
    parameters += tensor.elements;
    dense_type_.add(tensor.type);
  }

  /// blk.INDEX.NAME
  void add_to_block(const GgufHeader& header, const GgufTensor& tensor) {
    std::string_view name = tensor.name;
    name.remove_prefix(4);
    std::size_t index = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), index);
    if (error != std::errc() || end == name.data() + name.size() || *end != '.' || index >= blocks_.size()) {
      refuse_tensor(header, tensor, fmt::format("of a block in [0, {}]", blocks_.size() - 1));
    }
    name.remove_prefix(static_cast<std::size_t>(end - name.data()) + 1);
    LayerGroup& block = blocks_[index];
    if (name.find("_exps.") != std::string_view::npos) {
      const std::int64_t experts = require_size("expert_count");
      if (tensor.shape.back() != experts) refuse_tensor(header, tensor, fmt::format("of {} experts", experts));
      block.experts = experts;
      block.experts_per_token = require_size("expert_used_count", experts);
      block.parameters_per_expert += tensor.elements / experts;
      if (name.ends_with(".weight")) expert_type_.add(tensor.type);
      return;
    }
    if (name == "attn_k_b.weight") latent_keys_[index] = true;
    if (tensor.shape.size() == 1) {
      block.other_parameters += tensor.elements;
    } else {
      // Routers stay in single precision whatever the rest is stored in.
      block.dense_parameters += tensor.elements;
      if (!name.starts_with("ffn_gate_inp")) dense_type_.add(tensor.type);
    }
  }

  void describe_ends() {
    if (model_.embedding_parameters == 0) {
      throw FileError(first_.path(), "tensor token_embd.weight", "missing", "present");
    }
    model_.tied_head = model_.head_parameters == 0;
    if (model_.tied_head) model_.head_parameters = product({model_.vocabulary, model_.width});
  }

  void describe_attention(std::size_t index) {
    LayerGroup& block = blocks_[index];
    if (block.dense_parameters == 0) {
      throw FileError(first_.path(), fmt::format("tensors of block {}", index), "missing", "present");
    }
    const std::int64_t heads = size_of_layer("attention.head_count", index, std::nullopt);
    block.query_heads = heads;
    if (latent_keys_[index]) {
      const std::int64_t rank = require_size("attention.kv_lora_rank");
      const std::int64_t cached = rank + require_size("rope.dimension_count");
      block.cached_values_per_token = cached;
      block.latent = true;
      block.attention_flops_per_pair = product({2, heads, cached + rank});
      return;
    }
    const std::int64_t key_value_heads = size_of_layer("attention.head_count_kv", index, heads);
    const std::int64_t key_size = head_size("attention.key_length", index, heads);
    const std::int64_t value_size = head_size("attention.value_length", index, heads);
    block.cached_values_per_token = product({key_value_heads, key_size + value_size});
    block.attention_flops_per_pair = product({2, heads, key_size + value_size});
    block.cache_shards = key_value_heads;
    block.window = window_of(index);
  }

  std::optional<std::int64_t> window_of(std::size_t index) const {
    if (architecture_->window_period == 0) return std::nullopt;
    const std::vector<std::int64_t> pattern = first_.integers(key("attention.sliding_window_pattern"));
    bool sees_all = false;
    if (pattern.size() > 1) {
      sees_all = size_of_pattern(pattern, index) == 0;
    } else {
      const std::int64_t period = pattern.empty() ? architecture_->window_period : pattern[0];
      sees_all = period > 0 && (static_cast<std::int64_t>(index) + 1) % period == 0;
    }
    if (sees_all) return std::nullopt;
    if (architecture_->window_otherwise > 0 && !first_.has(key("attention.sliding_window"))) {
      return architecture_->window_otherwise;
    }
    return require_size("attention.sliding_window");
  }

  std::int64_t size_of_pattern(const std::vector<std::int64_t>& pattern, std::size_t index) const {
    if (pattern.size() != blocks_.size()) {
      first_.refuse(key("attention.sliding_window_pattern"), fmt::format("an array of {}", pattern.size()),
                    fmt::format("a period, or one flag for each of {} layers", blocks_.size()));
    }
    return pattern[index];
  }

  GgufHeader first_;
  const GgufArchitecture* architecture_ = nullptr;
  ModelSpec model_;
  std::vector<LayerGroup> blocks_;
  std::vector<bool> latent_keys_;
  CommonType dense_type_, expert_type_;
  std::int64_t bytes_ = 0;
};

}  // namespace

ModelSpec model_spec_from_gguf(const std::filesystem::path& path) {
  GgufModelReader reader(path);
  try {
    ModelSpec model = reader.read();
    require_countable(model);
    return model;
  } catch (const std::overflow_error&) {
    reader.header().refuse("sizes", "those of a model of 2^53 parameters or more", "those of fewer");
  }
}

}  // namespace specdec::cost
