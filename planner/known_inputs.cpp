#include "planner/known_inputs.hpp"

#include <fmt/format.h>
#include <boost/preprocessor/seq/for_each.hpp>
#include <boost/preprocessor/stringize.hpp>
#include <boost/preprocessor/variadic/to_seq.hpp>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analysis/planning/tabulated_curve.hpp"
#include "planner/json_members.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner::json {

/// The members of a structure are listed once, for writing and for reading, each under its own name.
#define SPECDEC_MEMBER(r, value, name) members(BOOST_PP_STRINGIZE(name), value.name);
#define SPECDEC_MEMBERS(Type, ...)                                                      \
  template <class Members>                                                              \
  void list_members(Members& members, Type& value) {                                    \
    BOOST_PP_SEQ_FOR_EACH(SPECDEC_MEMBER, value, BOOST_PP_VARIADIC_TO_SEQ(__VA_ARGS__)) \
  }

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

SPECDEC_MEMBERS(Note, code, message, explains_null)
SPECDEC_MEMBERS(cost::SourcedNumber, value)
SPECDEC_MEMBERS(cost::HardwareSpec, name, vendor, memory_bytes, memory_bandwidth_bytes_per_second, peak_flops,
                link_bytes_per_second, watts, gpus_per_node, point_error)
SPECDEC_MEMBERS(cost::LayerGroup, count, dense_parameters, other_parameters, experts, experts_per_token,
                parameters_per_expert, cached_values_per_token, attention_flops_per_pair, window, selected,
                index_values_per_token, index_flops_per_pair, state_values_per_sequence, state_flops_per_token,
                cache_shards, query_heads, latent, unquantized_parameters)
SPECDEC_MEMBERS(cost::ModelSpec, name, model_type, width, vocabulary, max_context, layers, embedding_parameters,
                head_parameters, tied_head, shared_embedding, shared_head, target_width, drafts_in_parallel, target,
                extra_dense_parameters, extra_other_parameters, idle_parameters, weight_bytes, weight_type,
                expert_weight_type, unquantized_type, quantized_head, quantized_bits, next_token_layers,
                next_token_extra_parameters)
SPECDEC_MEMBERS(cost::ProductTimes, bandwidth_share, peak_share, corner, call_seconds)
SPECDEC_MEMBERS(cost::ExpertTimes, products, routing)
SPECDEC_MEMBERS(cost::VerificationTimes, floor_seconds, position_seconds, tile_seconds, each_head_bandwidth_share)
SPECDEC_MEMBERS(cost::AttentionTimes, floor_seconds, sequence_seconds, bandwidth_share, peak_share, verification)
SPECDEC_MEMBERS(cost::CollectiveTimes, accelerators, bytes, seconds)
SPECDEC_MEMBERS(cost::KernelTimes, device, engine, version, products, attention, experts, all_reduces, all_to_alls,
                layer_seconds, iteration_seconds, sequence_seconds, prompt_layer_seconds, prompt_experts,
                deployment_error, point_error)
/// The parts of an Acceptance that are no pointers.
SPECDEC_MEMBERS(Acceptance, rule, clusters, text, alpha, alpha_ci95, engine, method, warnings)

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
    return curve ? std::optional<Table>(estimate::tabulated(*curve, last_gamma)) : std::nullopt;
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
