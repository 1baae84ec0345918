#include <algorithm>
#include <array>
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

/// Of compressed-tensors: by format where that tells, else by the number of bits; nothing where groups differ.
std::optional<NumberType> compressed_type(const ConfigFields& fields) {
  const std::string format = fields.word("format", "");
  if (format == "nvfp4-pack-quantized") return NumberType::nvfp4;
  if (format == "mxfp4-pack-quantized") return NumberType::mxfp4;
  const ConfigFields groups = fields.object("config_groups");
  std::optional<NumberType> common;
  bool first = true;
  for (const std::string& key : groups.keys()) {
    const ConfigFields group = groups.object(key);
    if (!group.has("weights")) return std::nullopt;
    const ConfigFields weights = group.object("weights");
    const std::int64_t bits = weights.size("num_bits");
    std::optional<NumberType> type;
    if (weights.word("type", "int") == "int") {
      type = type_of_bits(bits);
    } else if (bits == 8) {
      type = NumberType::fp8;
    }
    if (!first && type != common) return std::nullopt;
    common = type;
    first = false;
  }
  return common;
}

std::optional<NumberType> quantized_type(const ConfigFields& fields) {
  const std::string method = fields.word("quant_method", "");
  if (method == "fp8" || method == "fbgemm_fp8") return NumberType::fp8;
  if (method == "mxfp4") return NumberType::mxfp4;
  if (method == "gptq" || method == "awq") return type_of_bits(fields.size("bits"));
  if (method == "compressed-tensors") return compressed_type(fields);
  if (method == "modelopt") {
    const std::string algorithm = fields.word("quant_algo", "");
    if (algorithm == "FP8") return NumberType::fp8;
    if (algorithm == "NVFP4") return NumberType::nvfp4;
  }
  return std::nullopt;
}

/// Whether attention is among what stays as it was; then only experts are certain to have the quantized type.
bool keeps_attention(const ConfigFields& fields) {
  constexpr std::array<std::string_view, 2> lists = {"ignore", "modules_to_not_convert"};
  return std::any_of(lists.begin(), lists.end(), [&](std::string_view list) {
    const std::vector<std::string> kept = fields.words(list);
    return std::any_of(kept.begin(), kept.end(),
                       [](const std::string& name) { return name.find("self_attn") != std::string::npos; });
  });
}

}  // namespace

void read_weight_types(const ConfigFields& fields, ModelSpec& model) {
  const std::optional<NumberType> stored = stored_type(fields);
  if (!fields.has("quantization_config")) {
    model.weight_type = stored;
    return;
  }
  const ConfigFields quantization = fields.object("quantization_config");
  const std::optional<NumberType> quantized = quantized_type(quantization);
  if (!keeps_attention(quantization)) {
    model.weight_type = quantized;
    return;
  }
  const bool has_experts =
      std::any_of(model.layers.begin(), model.layers.end(), [](const LayerGroup& layer) { return layer.experts > 0; });
  if (!has_experts || !quantized) return;
  model.weight_type = stored;
  model.expert_weight_type = quantized;
}

}  // namespace specdec::cost
