#include "planner/known_inputs.hpp"

#include <fmt/format.h>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "analysis/planning/tabulated_curve.hpp"
#include "planner/json_members.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner::json {

// The members of a structure, with their keys, are listed once, for writing and for reading.

template <class Members>
void list_members(Members& members, estimate::Interval& interval) {
  members("low", interval.lo);
  members("high", interval.hi);
}

template <class Members>
void list_members(Members& members, estimate::TokensPerStep& tokens) {
  members("value", tokens.value);
  members("ci95", tokens.ci95);
  members("full_accepts", tokens.full_accepts);
  members("extrapolated", tokens.extrapolated);
  members.optional("bracket", tokens.bracket);
}

template <class Members>
void list_members(Members& members, Note& warning) {
  members("code", warning.code);
  members("message", warning.message);
  members("explains_null", warning.explains_null);
}

template <class Members>
void list_members(Members& members, cost::SourcedNumber& number) {
  members("value", number.value);
}

template <class Members>
void list_members(Members& members, cost::HardwareSpec& hardware) {
  members("name", hardware.name);
  members("vendor", hardware.vendor);
  members("memory_bytes", hardware.memory_bytes);
  members("memory_bandwidth_bytes_per_second", hardware.memory_bandwidth_bytes_per_second);
  members("peak_flops", hardware.peak_flops);
  members("link_bytes_per_second", hardware.link_bytes_per_second);
  members("watts", hardware.watts);
  members("gpus_per_node", hardware.gpus_per_node);
  members("point_error", hardware.point_error);
}

template <class Members>
void list_members(Members& members, cost::LayerGroup& layers) {
  members("count", layers.count);
  members("dense_parameters", layers.dense_parameters);
  members("other_parameters", layers.other_parameters);
  members("experts", layers.experts);
  members("experts_per_token", layers.experts_per_token);
  members("parameters_per_expert", layers.parameters_per_expert);
  members("cached_values_per_token", layers.cached_values_per_token);
  members("attention_flops_per_pair", layers.attention_flops_per_pair);
  members("window", layers.window);
  members("selected", layers.selected);
  members("index_values_per_token", layers.index_values_per_token);
  members("index_flops_per_pair", layers.index_flops_per_pair);
  members("state_values_per_sequence", layers.state_values_per_sequence);
  members("state_flops_per_token", layers.state_flops_per_token);
  members("cache_shards", layers.cache_shards);
  members("query_heads", layers.query_heads);
  members("latent", layers.latent);
  members("unquantized_parameters", layers.unquantized_parameters);
}

template <class Members>
void list_members(Members& members, cost::ModelSpec& model) {
  members("name", model.name);
  members("model_type", model.model_type);
  members("width", model.width);
  members("vocabulary", model.vocabulary);
  members("max_context", model.max_context);
  members("layers", model.layers);
  members("embedding_parameters", model.embedding_parameters);
  members("head_parameters", model.head_parameters);
  members("tied_head", model.tied_head);
  members("shared_embedding", model.shared_embedding);
  members("shared_head", model.shared_head);
  members("target_width", model.target_width);
  members("target", model.target);
  members("extra_dense_parameters", model.extra_dense_parameters);
  members("extra_other_parameters", model.extra_other_parameters);
  members("idle_parameters", model.idle_parameters);
  members("weight_bytes", model.weight_bytes);
  members("weight_type", model.weight_type);
  members("expert_weight_type", model.expert_weight_type);
  members("unquantized_type", model.unquantized_type);
  members("quantized_head", model.quantized_head);
  members("quantized_bits", model.quantized_bits);
  members("next_token_layers", model.next_token_layers);
  members("next_token_extra_parameters", model.next_token_extra_parameters);
}

template <class Members>
void list_members(Members& members, cost::ProductTimes& times) {
  members("bandwidth_share", times.bandwidth_share);
  members("peak_share", times.peak_share);
  members("corner", times.corner);
  members("call_seconds", times.call_seconds);
}

template <class Members>
void list_members(Members& members, cost::ExpertTimes& times) {
  members("products", times.products);
  members("routing", times.routing);
}

template <class Members>
void list_members(Members& members, cost::VerificationTimes& times) {
  members("floor_seconds", times.floor_seconds);
  members("position_seconds", times.position_seconds);
  members("tile_seconds", times.tile_seconds);
  members("each_head_bandwidth_share", times.each_head_bandwidth_share);
}

template <class Members>
void list_members(Members& members, cost::AttentionTimes& times) {
  members("floor_seconds", times.floor_seconds);
  members("sequence_seconds", times.sequence_seconds);
  members("bandwidth_share", times.bandwidth_share);
  members("peak_share", times.peak_share);
  members("verification", times.verification);
}

template <class Members>
void list_members(Members& members, cost::CollectiveTimes& times) {
  members("accelerators", times.accelerators);
  members("bytes", times.bytes);
  members("seconds", times.seconds);
}

template <class Members>
void list_members(Members& members, cost::KernelTimes& kernels) {
  members("device", kernels.device);
  members("engine", kernels.engine);
  members("version", kernels.version);
  members("products", kernels.products);
  members("attention", kernels.attention);
  members("experts", kernels.experts);
  members("all_reduces", kernels.all_reduces);
  members("all_to_alls", kernels.all_to_alls);
  members("layer_seconds", kernels.layer_seconds);
  members("iteration_seconds", kernels.iteration_seconds);
  members("sequence_seconds", kernels.sequence_seconds);
  members("deployment_error", kernels.deployment_error);
  members("point_error", kernels.point_error);
}

/// The parts of an Acceptance that are no pointers.
template <class Members>
void list_members(Members& members, Acceptance& acceptance) {
  members("rule", acceptance.rule);
  members("clusters", acceptance.clusters);
  members("text", acceptance.text);
  members("alpha", acceptance.alpha);
  members("alpha_ci95", acceptance.alpha_ci95);
  members("engine", acceptance.engine);
  members("method", acceptance.method);
  members("warnings", acceptance.warnings);
}

}  // namespace specdec::planner::json

namespace specdec::planner {
namespace {

using json::Place;
using json::Reader;
using json::Writer;
using nlohmann::ordered_json;

using Table = std::vector<estimate::TokensPerStep>;

std::shared_ptr<const estimate::AcceptanceCurve> curve_from(Table table, const char* key) {
  try {
    return std::make_shared<planning::TabulatedCurve>(std::move(table));
  } catch (const std::logic_error& error) {
    throw QuestionError(fmt::format("{} in known: {}", key, error.what()));
  }
}

}  // namespace

ordered_json known_json(const Acceptance& acceptance, std::int64_t last_gamma) {
  const auto table = [&](const std::shared_ptr<const estimate::AcceptanceCurve>& curve) {
    return curve ? std::optional<Table>(planning::tabulated(*curve, last_gamma)) : std::nullopt;
  };
  Writer members;
  Acceptance copy = acceptance;
  list_members(members, copy);
  members("by_gamma", table(acceptance.curve));
  return std::move(members.object);
}

KnownAcceptance known_acceptance(const ordered_json& document) {
  Acceptance acceptance;
  Reader members(document, Place{"known"});
  list_members(members, acceptance);
  Table table;
  members("by_gamma", table);
  members.finish();
  const auto last_gamma = static_cast<std::int64_t>(table.size()) - 1;
  acceptance.curve = curve_from(std::move(table), "by_gamma");
  return {std::make_shared<const Acceptance>(std::move(acceptance)), last_gamma};
}

ordered_json known_json(const NamedSpecs& specs) {
  return {{"hardware", Writer::written(specs.hardware)},
          {"models", Writer::written(specs.models)},
          {"kernels", Writer::written(specs.kernels)}};
}

NamedSpecs known_specs(const ordered_json& document) {
  NamedSpecs specs;
  Reader members(document, Place{"specs"});
  members("hardware", specs.hardware);
  members("models", specs.models);
  members("kernels", specs.kernels);
  members.finish();
  return specs;
}

}  // namespace specdec::planner
