#include <fnmatch.h>
#include <algorithm>
#include <array>
#include <cmath>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "analysis/cost/model_config.hpp"

namespace specdec::cost {
namespace {

using traces::ConfigFields;

/// torch_dtype, or dtype as newer files spell it.
std::optional<NumberType> stored_type(const ConfigFields& fields) {
  const std::string name = fields.has("dtype") ? fields.word("dtype") : fields.word("torch_dtype", "");
  if (name == "bfloat16") return NumberType::bf16;
  if (name == "float16") return NumberType::fp16;
  if (name == "float32") return NumberType::fp32;
  return std::nullopt;
}

std::optional<NumberType> type_of_bits(std::int64_t bits) {
  if (bits == 4) return NumberType::int4;
  if (bits == 8) return NumberType::int8;
  return std::nullopt;
}

/// A quantised weight: its type, and its bits with its share of scales and zero points where groups have a size.
struct QuantizedWeight {
  NumberType type = NumberType::fp8;
  std::optional<double> bits = {};

  friend bool operator==(const QuantizedWeight&, const QuantizedWeight&) = default;
};

constexpr double scale_bits = 16;

/// A group of integers shares a scale of 16 bits and, where they are not symmetric, a zero point as wide as they are.
/// A group that is not above 0 is a whole row, whose share is nothing.
std::optional<QuantizedWeight> grouped_integers(std::int64_t bits, std::int64_t group, bool symmetric) {
  const std::optional<NumberType> type = type_of_bits(bits);
  if (!type) return std::nullopt;
  const auto width = static_cast<double>(bits);
  const double shared = scale_bits + (symmetric ? 0 : width);
  return QuantizedWeight{*type, group > 0 ? width + shared / static_cast<double>(group) : width};
}

/// Nothing and -1 stand for whole rows.
std::int64_t group_size(const ConfigFields& fields) {
  return fields.has("group_size") && !fields.is_negative("group_size") ? fields.size("group_size") : 0;
}

std::optional<QuantizedWeight> compressed_group(const ConfigFields& weights) {
  const std::int64_t bits = weights.size("num_bits");
  if (weights.word("type", "int") == "int") {
    return grouped_integers(bits, group_size(weights), weights.flag("symmetric", true));
  }
  if (bits == 8) return QuantizedWeight{NumberType::fp8};
  return std::nullopt;
}

/// The quantised weight of compressed-tensors: by format where that tells, else what all groups have in common.
std::optional<QuantizedWeight> compressed_weight(const ConfigFields& fields) {
  const std::string format = fields.word("format", "");
  if (format == "nvfp4-pack-quantized") return QuantizedWeight{NumberType::nvfp4};
  if (format == "mxfp4-pack-quantized") return QuantizedWeight{NumberType::mxfp4};
  const ConfigFields groups = fields.object("config_groups");
  std::optional<QuantizedWeight> common;
  bool first = true;
  for (const std::string& key : groups.keys()) {
    const ConfigFields group = groups.object(key);
    if (!group.has("weights")) return std::nullopt;
    const std::optional<QuantizedWeight> weight = compressed_group(group.object("weights"));
    if (!first && weight != common) return std::nullopt;
    common = weight;
    first = false;
  }
  return common;
}

/// A scale of 32 bits for each block, where there are blocks.
std::optional<QuantizedWeight> blockwise_fp8(const ConfigFields& fields) {
  double weights = 1;
  const std::vector<std::int64_t> block = fields.counts("weight_block_size");
  for (const std::int64_t side : block) weights *= static_cast<double>(side);
  if (block.empty() || !(weights > 0)) return QuantizedWeight{NumberType::fp8};
  return QuantizedWeight{NumberType::fp8, 8 + 32 / weights};
}

/// Whether GPTQ's `dynamic` gives some modules bits or groups of their own.
bool has_other_groups(const ConfigFields& fields) {
  if (!fields.has("dynamic")) return false;
  const ConfigFields rules = fields.object("dynamic");
  const std::vector<std::string> keys = rules.keys();
  return std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
    if (key.starts_with("-:")) return false;
    const ConfigFields rule = rules.object(key);
    return rule.has("bits") || rule.has("group_size");
  });
}

std::optional<QuantizedWeight> quantized_weight(const ConfigFields& fields) {
  const std::string method = fields.word("quant_method", "");
  if (method == "fp8" || method == "fbgemm_fp8") return blockwise_fp8(fields);
  if (method == "mxfp4") return QuantizedWeight{NumberType::mxfp4};
  // GPTQ stores zero points of symmetric weights, too.
  if (method == "gptq" && has_other_groups(fields)) return std::nullopt;
  if (method == "gptq") return grouped_integers(fields.size("bits"), group_size(fields), false);
  if (method == "awq")
    return grouped_integers(fields.size("bits"), group_size(fields), !fields.flag("zero_point", true));
  if (method == "compressed-tensors") return compressed_weight(fields);
  // modelopt; newer files of it name no method.
  if (method == "modelopt" || method.empty()) {
    const std::string algorithm = fields.word("quant_algo", "");
    if (algorithm == "FP8") return QuantizedWeight{NumberType::fp8};
    if (algorithm == "NVFP4") return QuantizedWeight{NumberType::nvfp4};
  }
  return std::nullopt;
}

std::string_view without_prefix(std::string_view name) {
  for (const std::string_view prefix : {"backbone.", "language_model.", "model.", "language_model."})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return name;
}

/// Names of modules as quantised checkpoints list those that they leave alone: whole names or parts of them between
/// dots, names with '*', and regular expressions behind "re:", which hold from the name's beginning.
class ModuleList {
 public:
  void add(const std::string& pattern) {
    if (pattern.starts_with("re:")) {
      add_expression(std::string_view(pattern).substr(3));
    } else if (pattern.find('*') != std::string::npos) {
      globs_.emplace_back(without_prefix(pattern));
    } else {
      names_.emplace(without_prefix(pattern));
    }
  }
  void add_expression(std::string_view expression) {
    constexpr std::string_view any_case = "(?i)";  // Python's
    std::regex::flag_type flags = std::regex::ECMAScript | std::regex::nosubs;
    if (expression.starts_with(any_case)) {
      expression.remove_prefix(any_case.size());
      flags |= std::regex::icase;
    }
    // Searching anywhere says the same, and spares going back through ".*" from the name's end at each place.
    constexpr std::string_view anything = ".*";
    const bool anywhere = expression.starts_with(anything);
    if (anywhere) expression.remove_prefix(anything.size());
    try {
      auto& expressions = anywhere ? sought_ : expressions_;
      expressions.emplace_back(expression.begin(), expression.end(), flags);
    } catch (const std::regex_error&) {
      is_certain_ = false;  // its dialect is another one
    }
  }

  /// Every pattern is understood.
  bool is_certain() const { return is_certain_; }

  /// @param module  without "model." in front: "layers.3.mlp.gate_proj"
  bool has(const std::string& module) const {
    const bool names_any = !names_.empty() || !globs_.empty();
    for (std::size_t begin = 0; names_any && begin != std::string::npos; begin = after_dot(module, begin)) {
      for (std::size_t end = module.find('.', begin);; end = module.find('.', end + 1)) {
        const std::string part = module.substr(begin, end - begin);
        if (names_.find(part) != names_.end()) return true;
        const bool globbed = begin == 0 && std::any_of(globs_.begin(), globs_.end(), [&](const std::string& glob) {
                               return ::fnmatch(glob.c_str(), part.c_str(), 0) == 0;
                             });
        if (globbed) return true;
        if (end == std::string::npos) break;
      }
    }
    const std::string whole = "model." + module;
    const auto sought = [&](const std::regex& expression) { return std::regex_search(whole, expression); };
    if (std::any_of(sought_.begin(), sought_.end(), sought)) return true;
    return std::any_of(expressions_.begin(), expressions_.end(), [&](const std::regex& expression) {
      constexpr auto here = std::regex_constants::match_continuous;
      return std::regex_search(whole, expression, here) || std::regex_search(module, expression, here);
    });
  }

 private:
  static std::size_t after_dot(const std::string& module, std::size_t begin) {
    const std::size_t dot = module.find('.', begin);
    return dot == std::string::npos ? dot : dot + 1;
  }

  std::set<std::string, std::less<>> names_;
  std::vector<std::string> globs_;
  std::vector<std::regex> expressions_;
  std::vector<std::regex> sought_;
  bool is_certain_ = true;
};

ModuleList left_alone(const ConfigFields& fields) {
  ModuleList modules;
  for (const std::string_view list : {"modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules"})
    for (const std::string& pattern : fields.words(list)) modules.add(pattern);
  if (!fields.has("dynamic")) return modules;
  // GPTQ writes "-:" in front of what is left alone.
  for (const std::string& key : fields.object("dynamic").keys())
    if (key.starts_with("-:")) modules.add_expression(std::string_view(key).substr(2));
  return modules;
}

/// The modules that compressed-tensors quantises, where these are fewer than all linear layers.
std::optional<ModuleList> targets_of(const ConfigFields& fields) {
  if (!fields.has("config_groups")) return std::nullopt;
  ModuleList targets;
  bool any = false;
  const ConfigFields groups = fields.object("config_groups");
  for (const std::string& key : groups.keys()) {
    for (const std::string& target : groups.object(key).words("targets")) {
      if (target == "Linear") return std::nullopt;
      targets.add(target);
      any = true;
    }
  }
  return any ? std::optional(std::move(targets)) : std::nullopt;
}

/// Names under which other checkpoints have the same matrix.
struct OtherName {
  std::string_view part, other;
};
constexpr std::array<OtherName, 12> other_names = {{{"self_attn.q_proj", "self_attn.qkv_proj"},
                                                    {"self_attn.k_proj", "self_attn.qkv_proj"},
                                                    {"self_attn.v_proj", "self_attn.qkv_proj"},
                                                    {"mlp.gate_proj", "mlp.gate_up_proj"},
                                                    {"mlp.up_proj", "mlp.gate_up_proj"},
                                                    {"mlp.shared_experts.", "mlp.shared_expert."},
                                                    {"mlp.experts.0.gate_proj", "block_sparse_moe.experts.0.w1"},
                                                    {"mlp.", "mixer."},
                                                    {"mlp.", "feed_forward."},
                                                    {"self_attn.", "mixer."},
                                                    {"linear_attn.in_proj_qkvz", "linear_attn.in_proj_qkv"},
                                                    {"linear_attn.in_proj_ba", "linear_attn.in_proj_b"}}};

bool lists(const ModuleList& modules, const std::string& layer, std::string_view matrix) {
  return modules.has(layer + std::string(matrix)) ||
         std::any_of(other_names.begin(), other_names.end(), [&](const OtherName& name) {
           return matrix.starts_with(name.part) &&
                  modules.has(layer + std::string(name.other) + std::string(matrix.substr(name.part.size())));
         });
}

bool is_router(std::string_view matrix) { return matrix == "mlp.gate" || matrix == "mlp.shared_expert_gate"; }

/// Only matrices of layers and, with some methods, the head are quantised; routers, embedding and norms never.
class QuantizedModel {
 public:
  QuantizedModel(const ConfigFields& quantization, ModelSpec& model)
      : modules_(left_alone(quantization)),
        targets_(targets_of(quantization)),
        model_(model),
        experts_only_(quantization.word("quant_method", "") == "mxfp4") {
    for (const LayerGroup& group : model.layers) layers_ += group.count;
  }

  void apply(const ConfigFields& quantization, const QuantizedWeight& weight) {
    for (LayerGroup& group : model_.layers) leave(group);
    for (LayerGroup& group : model_.next_token_layers) leave(group);
    bool any_dense = false, any_expert = false;
    for (const LayerGroup& group : model_.layers) {
      any_dense = any_dense || group.unquantized_parameters < group.dense_parameters;
      any_expert = any_expert || group.experts > 0;
    }
    const NumberType unquantized = model_.weight_type.value_or(NumberType::bf16);
    model_.unquantized_type = unquantized;
    model_.quantized_bits = weight.bits;
    model_.quantized_head = !model_.tied_head && quantizes_head(quantization);
    if (any_expert) {
      const bool left = share_left_alone(expert_matrix(), layers_with_experts()) > 0.5;
      const NumberType expert = left ? unquantized : weight.type;
      const bool is_other = !any_dense || left;
      if (is_other) model_.expert_weight_type = expert;
    }
    if (any_dense) model_.weight_type = weight.type;
  }

  bool is_certain() const { return modules_.is_certain() && (!targets_ || targets_->is_certain()); }

 private:
  /// Share of the layers that leave the matrix alone, of the `having` ones that have such a matrix at all.
  double share_left_alone(std::string_view matrix, std::int64_t having) const {
    std::int64_t left = 0;
    for (std::int64_t index = 0; index < layers_; ++index) {
      const std::string layer = "layers." + std::to_string(index) + '.';
      left += lists(modules_, layer, matrix) || (targets_ && !lists(*targets_, layer, matrix)) ? 1 : 0;
    }
    return std::min(1.0, static_cast<double>(left) / static_cast<double>(having));
  }

  std::int64_t layers_with_experts() const {
    std::int64_t sum = 0;
    for (const LayerGroup& group : model_.layers) sum += group.experts > 0 ? group.count : 0;
    return sum;
  }

  std::string_view expert_matrix() const {
    const auto first = std::find_if(model_.layers.begin(), model_.layers.end(),
                                    [](const LayerGroup& group) { return group.experts > 0; });
    return first->expert_matrix;
  }

  std::int64_t layers_having(std::string_view matrix) const {
    std::int64_t sum = 0;
    for (const LayerGroup& group : model_.layers) {
      const bool has = std::any_of(group.matrices.begin(), group.matrices.end(),
                                   [&](const LayerMatrix& other) { return other.name == matrix; });
      if (has) sum += group.count;
    }
    return std::max<std::int64_t>(1, sum);
  }

  void leave(LayerGroup& group) {
    double left = experts_only_ ? static_cast<double>(group.dense_parameters) : 0;
    for (const LayerMatrix& matrix : group.matrices) {
      if (experts_only_) break;
      const double share = is_router(matrix.name) ? 1 : share_left_alone(matrix.name, layers_having(matrix.name));
      left += share * static_cast<double>(matrix.parameters);
    }
    group.unquantized_parameters = std::llround(left);
  }

  bool quantizes_head(const ConfigFields& quantization) const {
    const std::string method = quantization.word("quant_method", "");
    if (method == "gptq") return quantization.flag("lm_head", false);
    // Those that quantise whatever is a linear layer and not listed.
    const bool all_linear = method == "compressed-tensors" || method == "modelopt" || method.empty();
    return all_linear && !modules_.has("lm_head") && (!targets_ || targets_->has("lm_head"));
  }

  ModuleList modules_;
  std::optional<ModuleList> targets_;
  ModelSpec& model_;
  bool experts_only_ = false;
  std::int64_t layers_ = 0;
};

}  // namespace

void read_quantization(const ConfigFields& quantization, ModelSpec& model) {
  const std::optional<QuantizedWeight> weight = quantized_weight(quantization);
  QuantizedModel quantized(quantization, model);
  if (weight && quantized.is_certain()) {
    quantized.apply(quantization, *weight);
  } else {
    model.weight_type.reset();
  }
}

void read_weight_types(const ConfigFields& fields, ModelSpec& model) {
  model.weight_type = stored_type(fields);
  if (!fields.has("quantization_config") && fields.has("text_config")) {
    const ConfigFields text = fields.object("text_config");
    if (!model.weight_type) model.weight_type = stored_type(text);
    if (text.has("quantization_config")) read_quantization(text.object("quantization_config"), model);
  } else if (fields.has("quantization_config")) {
    read_quantization(fields.object("quantization_config"), model);
  }
  // DeepSeek-V4 says it apart, and the scales beside the other weights are not those of experts.
  if (fields.word("expert_dtype", "") == "fp4") {
    model.expert_weight_type = NumberType::mxfp4;
    model.quantized_bits.reset();
  }
}

}  // namespace specdec::cost
