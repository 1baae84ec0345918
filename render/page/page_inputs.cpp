#include "render/page/page_inputs.hpp"

#include <fmt/format.h>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "analysis/planning/tabulated_curve.hpp"
#include "traces/acceptance_rules.hpp"

namespace specdec::render {
namespace {

using planner::Acceptance;
using planner::NamedSpecs;

using nlohmann::ordered_json;

// The members of a structure, with their keys, are listed once, for writing and for reading.

template <class Members>
void list_members(Members& members, estimate::Interval& interval) {
  members("low", interval.lo);
  members("high", interval.hi);
}

template <class Members>
void list_members(Members& members, estimate::TokensPerStep& tokens) {
  members("value", tokens.value);
  members("readings", tokens.readings);
  members("ci95", tokens.ci95);
  members("full_accepts", tokens.full_accepts);
  members("extrapolated", tokens.extrapolated);
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
  members("state_values_per_sequence", layers.state_values_per_sequence);
  members("state_flops_per_token", layers.state_flops_per_token);
  members("cache_shards", layers.cache_shards);
  members("query_heads", layers.query_heads);
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
void list_members(Members& members, NamedSpecs& specs) {
  members("hardware", specs.hardware);
  members("models", specs.models);
}

/// The parts of a Acceptance that are no pointers.
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

template <class Value>
inline constexpr bool is_plain = std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>;
template <class Value>
inline constexpr bool is_named =
    std::is_same_v<Value, cost::NumberType> || std::is_same_v<Value, traces::AcceptanceRule>;

class MemberWriter {
 public:
  template <class Member>
  void operator()(const char* key, const Member& member) {
    object[key] = written(member);
  }

  template <class Value>
  static ordered_json written(const Value& value) {
    if constexpr (is_plain<Value>) {
      return value;
    } else if constexpr (is_named<Value>) {
      return name_of(value);
    } else {
      MemberWriter members;
      // Members are listed of what can be changed, for the reader.
      Value copy = value;
      list_members(members, copy);
      return std::move(members.object);
    }
  }
  template <class Value>
  static ordered_json written(const std::optional<Value>& value) {
    return value ? written(*value) : ordered_json();
  }
  template <class Value>
  static ordered_json written(const std::vector<Value>& values) {
    ordered_json list = ordered_json::array();
    for (const Value& value : values) list.push_back(written(value));
    return list;
  }
  template <class Value, class Order>
  static ordered_json written(const std::map<std::string, Value, Order>& values) {
    ordered_json by_name = ordered_json::object();
    for (const auto& [name, value] : values) by_name[name] = written(value);
    return by_name;
  }

  ordered_json object = ordered_json::object();
};

class MemberReader {
 public:
  explicit MemberReader(const ordered_json& object) : object_(object) {}

  template <class Member>
  void operator()(const char* key, Member& member) {
    read(object_.at(key), member);
  }

  template <class Value>
  static void read(const ordered_json& from, Value& value) {
    if constexpr (is_plain<Value>) {
      value = from.get<Value>();
    } else if constexpr (is_named<Value>) {
      value = named<Value>(from.get<std::string>());
    } else {
      MemberReader members(from);
      list_members(members, value);
    }
  }
  template <class Value>
  static void read(const ordered_json& from, std::optional<Value>& value) {
    value.reset();
    if (!from.is_null()) read(from, value.emplace());
  }
  template <class Value>
  static void read(const ordered_json& from, std::vector<Value>& values) {
    values.clear();
    for (const ordered_json& one : from) read(one, values.emplace_back());
  }
  template <class Value, class Order>
  static void read(const ordered_json& from, std::map<std::string, Value, Order>& values) {
    values.clear();
    for (const auto& [name, one] : from.items()) read(one, values[name]);
  }

 private:
  template <class Value>
  static Value named(const std::string& name) {
    std::optional<Value> value;
    if constexpr (std::is_same_v<Value, cost::NumberType>) {
      value = cost::number_type_named(name);
    } else {
      value = traces::acceptance_rule_named(name);
    }
    if (!value) throw std::invalid_argument(fmt::format("page_inputs: {} is no name that is known", name));
    return *value;
  }

  const ordered_json& object_;
};

std::shared_ptr<const estimate::AcceptanceCurve> curve_from(const ordered_json& table) {
  std::vector<estimate::TokensPerStep> by_gamma;
  MemberReader::read(table, by_gamma);
  return std::make_shared<planning::TabulatedCurve>(std::move(by_gamma));
}

}  // namespace

ordered_json page_input(const Acceptance& acceptance, std::int64_t last_gamma) {
  ordered_json document = MemberWriter::written(acceptance);
  document["by_gamma"] = MemberWriter::written(planning::tabulated(*acceptance.curve, last_gamma));
  document["by_gamma_at_design_effect_3"] = nullptr;
  if (acceptance.curve_at_design_effect_3) {
    document["by_gamma_at_design_effect_3"] =
        MemberWriter::written(planning::tabulated(*acceptance.curve_at_design_effect_3, last_gamma));
  }
  return document;
}

Acceptance page_acceptance(const ordered_json& document) {
  Acceptance acceptance;
  MemberReader::read(document, acceptance);
  acceptance.curve = curve_from(document.at("by_gamma"));
  const ordered_json& wider = document.at("by_gamma_at_design_effect_3");
  if (!wider.is_null()) acceptance.curve_at_design_effect_3 = curve_from(wider);
  return acceptance;
}

ordered_json page_input(const NamedSpecs& specs) { return MemberWriter::written(specs); }

NamedSpecs page_specs(const ordered_json& document) {
  NamedSpecs specs;
  MemberReader::read(document, specs);
  return specs;
}

}  // namespace specdec::render
