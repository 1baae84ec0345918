#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cost/hardware_spec.hpp"

namespace specdec::cost {

/// A matrix of a layer, by its name in a checkpoint behind "model.layers.N.": "self_attn.q_proj". Names are literals.
struct LayerMatrix {
  std::string_view name;
  std::int64_t parameters = 0;

  friend bool operator==(const LayerMatrix&, const LayerMatrix&) = default;
};

/// Layers of a model that are all alike, in numbers per layer.
struct LayerGroup {
  std::int64_t count = 0;
  /// Weights that every token is multiplied by: projections, dense feed-forward, router, shared experts.
  std::int64_t dense_parameters = 0;
  /// Weights that are read but take no matrix product: norms, biases, small convolutions.
  std::int64_t other_parameters = 0;
  /// Routed experts, those of a token, and parameters of each, biases included; 0, 0, 0 without them.
  std::int64_t experts = 0, experts_per_token = 0, parameters_per_expert = 0;
  /// A matrix of one of them, by its name as those of LayerMatrix; empty without experts.
  std::string_view expert_matrix = {};

  /// Values kept per token of the context: keys and values, or the latent and the shared rotary key.
  std::int64_t cached_values_per_token = 0;
  /// Keys and values of all heads come from one latent (DeepSeek), to which queries attend.
  bool latent = false;
  /// FLOP of one query position against one position of the context: 4 heads head_size, or what the latent form takes.
  std::int64_t attention_flops_per_pair = 0;
  /// Positions that a token sees, its own included; empty if it sees all.
  std::optional<std::int64_t> window = {};
  /// Sparse attention: how many of the positions that it sees a token attends to; empty if to all. What chooses
  /// them looks at every position: values kept per token of the context beside the others, and FLOP per pair.
  std::optional<std::int64_t> selected = {};
  std::int64_t index_values_per_token = 0, index_flops_per_pair = 0;
  /// Values kept per sequence whatever its length (linear attention, state space, recurrence), and FLOP per token to
  /// update and read them.
  std::int64_t state_values_per_sequence = 0, state_flops_per_token = 0;
  /// Ways that the cache can be divided over accelerators before parts are kept twice: key/value heads; 1 for latents.
  std::int64_t cache_shards = 1;
  /// Heads of queries, which engines divide evenly over accelerators; 0 where the layer has none.
  std::int64_t query_heads = 0;

  /// The matrices of dense_parameters, as far as a configuration tells: their sum is at most that.
  std::vector<LayerMatrix> matrices = {};
  /// Those of dense_parameters that have ModelSpec::unquantized_type; of layers that differ, the mean.
  std::int64_t unquantized_parameters = 0;

  friend bool operator==(const LayerGroup&, const LayerGroup&) = default;
};

/// An architecture as far as its bytes and operations go.
struct ModelSpec {
  std::string name = {};
  /// "llama", "deepseek_v3", ... as the configuration says.
  std::string model_type = {};
  std::vector<std::string> aliases = {};
  /// Pages that print the numbers; empty for a user's own file.
  std::vector<std::string> sources = {};
  /// Parameters that a model is said to have whose shape nobody published, so that `layers` is empty and it cannot be
  /// priced.
  std::optional<std::int64_t> stated_parameters = {};

  std::int64_t width = 0;  ///< hidden size
  std::int64_t vocabulary = 0;
  /// Longest context that the configuration names.
  std::optional<std::int64_t> max_context = {};
  std::vector<LayerGroup> layers = {};
  /// Parameters of the input embedding (looked up, never read as a whole), and of the output head; a tied head counts
  /// as both and is stored once.
  std::int64_t embedding_parameters = 0, head_parameters = 0;
  bool tied_head = false;
  /// True if a draft uses the target's own (an EAGLE head, a next-token module): read in a pass, stored by the target.
  bool shared_embedding = false, shared_head = false;
  /// The width of the target's states that such a draft reads; 0 for a model of its own.
  std::int64_t target_width = 0;
  /// Such a draft makes all of its tokens in one pass (DFlash), not one after the other.
  bool drafts_in_parallel = false;
  /// The preset that such a draft was trained for; empty where nobody says.
  std::string target = {};
  /// Beside the layers: last norm, the projection of an EAGLE head or a next-token module.
  std::int64_t extra_dense_parameters = 0, extra_other_parameters = 0;
  /// Stored, but not read when tokens are decoded: an encoder, and what only its output is multiplied by.
  std::int64_t idle_parameters = 0;

  /// Bytes of the file itself, where it says so: safetensors index total_size, sum over the tensors of a GGUF file.
  std::optional<std::int64_t> weight_bytes = {};
  /// Types that the configuration stores weights in, where it says so; routed experts may have their own.
  std::optional<NumberType> weight_type = {}, expert_weight_type = {};
  /// Type of what a quantised checkpoint leaves as it was: norms, embedding, the head unless it is quantised, too,
  /// extra parameters and the layers' unquantized_parameters. Empty: they have weight_type.
  std::optional<NumberType> unquantized_type = {};
  bool quantized_head = false;
  /// Bits of a quantised weight with its scales and zero points, where the configuration gives the size of their
  /// groups; empty: stored_bits of its type.
  std::optional<double> quantized_bits = {};
  /// The next-token module that comes with the model (DeepSeek's MTP): one more layer, its projection, the target's
  /// head. Empty where there is none.
  std::vector<LayerGroup> next_token_layers = {};
  std::int64_t next_token_extra_parameters = 0;
};

/// Whether more is known than how many parameters it is said to have.
inline bool has_shape(const ModelSpec& model) { return !model.layers.empty(); }

/// Whether some layer has routed experts.
bool has_experts(const ModelSpec& model);

/// sum over everything that is stored: layers with all their experts, embedding and head once if tied and neither where
/// they are another model's, norms, idle parameters; without the next-token module.
std::int64_t total_parameters(const ModelSpec& model);
/// Weights that a token is multiplied by: layers' dense parameters and the experts that it chooses, the head; neither
/// norms nor the input embedding.
std::int64_t active_parameters(const ModelSpec& model);
/// Values of the cache per token of the context, over all layers; layers with a window count in full.
std::int64_t cached_values_per_token(const ModelSpec& model);
/// sum over full-attention layers of attention_flops_per_pair, and of what chooses positions over layers of sparse
/// attention: 4 L heads head_size where all layers are alike.
std::int64_t attention_flops_per_pair(const ModelSpec& model);
/// Bytes in the cache of one sequence of `context` tokens: sum over layers of min(context, window) values, and states,
/// which engines keep in 16 bits at least:
///
///   sum count ((cached values min(context, window) + index values context) bytes + state values max(bytes, 2))
///
/// @param context >= 0  @param bytes_per_value >= 0
/// @throws std::domain_error if a value is outside its range
double cache_bytes(const ModelSpec& model, double context, double bytes_per_value);

/// ln(1 - k/E), of the share of E experts that a token that chooses k of them passes over; -infinity for k = E. Tokens
/// that each choose k of the E without replacement touch, in expectation,
///
///   E (1 - (1 - k/E)^n) = -E expm1(n log1p(-k/E)) experts;   an upper bound where routing is not uniform
///
/// Source:   docs/theory.md#mixture-of-experts
/// @param experts E >= 1  @param per_token k, [1, E]
/// @throws std::domain_error if a value is outside its range
/// Accuracy: relative error <= 1e-15
double log_share_passed_over(std::int64_t experts, std::int64_t per_token);

/// The module of the model as a draft of its own, with the target's embedding and head (shared).
/// @throws std::invalid_argument where the model has none
ModelSpec next_token_module(const ModelSpec& model);

/// A Hugging Face config.json, a file in the form of the presets (docs/reference/formats.md#models), a folder that holds a
/// config.json (a safetensors index beside it gives weight_bytes, hf_quant_config.json the types), or a GGUF file (the
/// first of its parts); told from the content.
/// @throws traces::FileError  where a key is missing or out of its range, or the model_type is not among those known
ModelSpec read_model_spec(const std::filesystem::path& path);
/// The model types that read_model_spec knows, sorted.
std::span<const std::string_view> known_model_types();

/// The models that come with the program, in order of name.
std::span<const ModelSpec> model_presets();
/// By name or alias, upper and lower case, spaces, dashes and underscores alike; null where none has it.
const ModelSpec* model_preset(std::string_view name);

}  // namespace specdec::cost
