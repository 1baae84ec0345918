#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/cost/kernel_products.hpp"
#include "analysis/cost/roofline_parts.hpp"
#include "analysis/cost/stored_weights.hpp"

namespace specdec::cost {
namespace {

constexpr double all_reduces_per_layer = 2, all_to_alls_per_layer = 2;

/// Share of a layer's cache that one of the accelerators holds.
double cache_share(const LayerGroup& group, std::int64_t tensor_parallel) {
  const std::int64_t shards = std::max<std::int64_t>(group.cache_shards, 1);
  const std::int64_t held = (shards + tensor_parallel - 1) / tensor_parallel;
  return static_cast<double>(held) / static_cast<double>(shards);
}

void require_legal_placement(const PlacedModel& placed, std::string_view role) {
  constexpr std::int64_t most = std::int64_t{1} << 20;
  core::require_in("RooflineCost", fmt::format("tensor_parallel of the {}", role), placed.tensor_parallel, 1, most);
  core::require_in("RooflineCost", fmt::format("data_parallel of the {}", role), placed.data_parallel, 1, most);
  core::require_in("RooflineCost", fmt::format("expert_parallel of the {}", role), placed.expert_parallel, 1, most);
  if (placed.accelerators() % placed.expert_parallel != 0) {
    throw std::invalid_argument(
        fmt::format("RooflineCost: expert_parallel of the {} is {}, but must divide its {} accelerators", role,
                    placed.expert_parallel, placed.accelerators()));
  }
  if (placed.model.layers.empty())
    throw std::invalid_argument(fmt::format("RooflineCost: the {} has no layers, but must have some", role));
}

double hardware_figure(const HardwareSpec& hardware, std::string_view name, double value) {
  if (least_normal <= value && value <= core::largest_double) return value;
  throw std::invalid_argument(fmt::format("RooflineCost: {} of {} is {}, but must be above 0", name,
                                          hardware.name.empty() ? "the hardware" : hardware.name, value));
}

/// sum_{i=1..n} min(x + i, w)
double pairs_of(double tokens, double context, double window) {
  const double below = std::clamp(window - context, 0.0, tokens);
  return below * context + below * (below + 1) / 2 + (below < tokens ? (tokens - below) * window : 0.0);
}

}  // namespace

std::string_view name_of(PassBound bound) {
  constexpr std::array<std::string_view, 6> names = {"weights",   "weight_products", "cache",
                                                     "attention", "communication",   "overhead"};
  return names.at(static_cast<std::size_t>(bound));
}

double PassSeconds::total() const {
  return std::max(weights, weight_products) + std::max(cache, attention) + communication + overhead + kernels;
}

PassBound PassSeconds::bound() const {
  PassBound largest_yet = weights >= weight_products ? PassBound::weights : PassBound::weight_products;
  double most = std::max(weights, weight_products);
  const auto consider = [&](double seconds, PassBound bound) {
    if (seconds <= most) return;
    most = seconds;
    largest_yet = bound;
  };
  consider(std::max(cache, attention), cache >= attention ? PassBound::cache : PassBound::attention);
  consider(communication, PassBound::communication);
  consider(overhead, PassBound::overhead);
  return largest_yet;
}

void RooflineCost::PricedModel::add(const AttentionPart& part) {
  if (part.cache == 0 && part.attention == 0) return;
  const auto alike = std::find_if(attention.begin(), attention.end(), [&](const AttentionPart& other) {
    return other.window == part.window && other.selects == part.selects;
  });
  if (alike == attention.end()) {
    attention.push_back(part);
  } else {
    alike->cache += part.cache;
    alike->attention += part.attention;
  }
}

RooflineCost::PricedModel RooflineCost::priced(const PlacedModel& placed, std::string_view role) const {
  require_legal_placement(placed, role);
  const HardwareSpec& hardware = options_.hardware;
  const ModelSpec& model = placed.model;
  const auto shared_by = static_cast<double>(placed.tensor_parallel);
  const double one_bandwidth =
      hardware_figure(hardware, "memory_bandwidth_bytes_per_second", hardware.memory_bandwidth_bytes_per_second.value);
  const auto peak = [&](NumberType type) {
    return shared_by * hardware_figure(hardware, "peak_flops", peak_flops_for(hardware, type));
  };
  const StoredWeights types = stored_weights(placed);
  const double bytes_per_second = shared_by * one_bandwidth;
  const auto accelerators = static_cast<double>(placed.accelerators());
  const double most_routed =
      std::pow(static_cast<double>(placed.expert_parallel), expert_load_exponent) * shared_by / accelerators;
  const double attention_peak = peak(placed.cache_type == NumberType::fp32 ? NumberType::fp32 : NumberType::bf16);
  const double cached_bytes = stored_bits(placed.cache_type) / 8;

  PricedModel priced;
  priced.groups = static_cast<double>(placed.data_parallel);
  double dense = 0, unquantized = static_cast<double>(model.extra_dense_parameters);
  for (const LayerGroup& group : model.layers) {
    const auto count = static_cast<double>(group.count);
    priced.layers += count;
    dense += count * static_cast<double>(group.dense_parameters - group.unquantized_parameters);
    unquantized += count * static_cast<double>(group.unquantized_parameters);
    const double share = cache_share(group, placed.tensor_parallel);
    constexpr double all = std::numeric_limits<double>::infinity();
    const auto attend = [&](double window, bool selects, std::int64_t values, std::int64_t flops) {
      priced.add({window, selects, count * static_cast<double>(values) * cached_bytes * share / one_bandwidth,
                  count * static_cast<double>(flops) / attention_peak});
    };
    const std::optional<std::int64_t> most = group.selected ? group.selected : group.window;
    attend(most ? static_cast<double>(*most) : all, group.selected.has_value(), group.cached_values_per_token,
           group.attention_flops_per_pair);
    attend(all, false, group.index_values_per_token, group.index_flops_per_pair);
    // Read and written.
    priced.states_per_sequence += 2 * count * static_cast<double>(group.state_values_per_sequence) *
                                  std::max(cached_bytes, activation_bytes) * share / one_bandwidth;
    priced.state_products_per_position += count * static_cast<double>(group.state_flops_per_token) / attention_peak;
    if (group.experts == 0) continue;
    const auto per_expert = static_cast<double>(group.parameters_per_expert);
    ExpertPart expert;
    expert.weights = count * static_cast<double>(group.experts) * per_expert * types.bytes_of(types.expert) /
                     (accelerators * one_bandwidth);
    expert.log_missed = log_share_passed_over(group.experts, group.experts_per_token);
    priced.experts.push_back(expert);
    priced.routed_products_per_position +=
        2 * count * static_cast<double>(group.experts_per_token) * per_expert / peak(types.expert) * most_routed;
  }
  const auto head = static_cast<double>(model.head_parameters);
  const NumberType head_type = model.quantized_head ? types.dense : types.unquantized;
  priced.weights = (dense * types.bytes_of(types.dense) + unquantized * types.bytes_of(types.unquantized) +
                    head * types.bytes_of(head_type)) /
                   bytes_per_second;
  priced.products_per_position += 2 * dense / peak(types.dense) + 2 * unquantized / peak(types.unquantized);
  priced.products_per_headed_position = 2 * head / peak(head_type);
  if (placed.accelerators() > 1) add_collectives(placed, role, priced);
  if (options_.kernels) add_kernels(placed, priced);
  return priced;
}

void RooflineCost::add_collectives(const PlacedModel& placed, std::string_view role, PricedModel& priced) const {
  const HardwareSpec& hardware = options_.hardware;
  if (!hardware.link_bytes_per_second) {
    throw std::invalid_argument(
        fmt::format("RooflineCost: {} names no link_bytes_per_second, which {} accelerators that share the {} need",
                    hardware.name.empty() ? "the hardware" : hardware.name, placed.accelerators(), role));
  }
  const double link_bytes = hardware_figure(hardware, "link_bytes_per_second", hardware.link_bytes_per_second->value);
  const auto shared_by = static_cast<double>(placed.tensor_parallel);
  const auto accelerators = static_cast<double>(placed.accelerators());
  const auto parts = static_cast<double>(placed.expert_parallel);
  const double bytes = activation_bytes * static_cast<double>(placed.model.width);
  double exchanged = 0;
  for (const LayerGroup& group : placed.model.layers) {
    if (placed.data_parallel == 1 || group.experts == 0) continue;
    const auto per_token = static_cast<double>(group.experts_per_token);
    const double reached = accelerators * (1 - std::pow(1 - 1 / parts, per_token));
    const double calls = all_to_alls_per_layer * static_cast<double>(group.count);
    priced.all_to_alls += calls;
    exchanged += calls * bytes / shared_by * reached;
  }
  if (placed.tensor_parallel > 1)
    priced.all_reduces = all_reduces_per_layer * priced.layers - priced.all_to_alls / all_to_alls_per_layer;
  priced.link_per_position =
      (priced.all_reduces * 2 * (shared_by - 1) / shared_by * bytes + exchanged * (accelerators - 1) / accelerators) /
      link_bytes;
  if (priced.all_to_alls > 0) priced.exchanged_bytes_per_position = exchanged / priced.all_to_alls;
}

void RooflineCost::add_attention_calls(const LayerGroup& group, const PlacedModel& placed, PricedModel& priced) const {
  const auto count = static_cast<double>(group.count);
  const auto shards = static_cast<double>(std::max<std::int64_t>(group.cache_shards, 1));
  const double share = cache_share(group, placed.tensor_parallel);
  priced.attention_layers += count;
  priced.cache_heads += count * shards * share;
  AttentionCalls calls;
  calls.layers = count;
  calls.query_heads = std::ceil(static_cast<double>(group.query_heads) / static_cast<double>(placed.tensor_parallel));
  calls.group = calls.query_heads / (shards * share);
  // These have other kernels.
  if (group.latent || group.selected || group.query_heads == 0) return;
  calls.window = group.window ? static_cast<double>(*group.window) : std::numeric_limits<double>::infinity();
  calls.cache = static_cast<double>(group.cached_values_per_token) * stored_bits(placed.cache_type) / 8 * share /
                options_.hardware.memory_bandwidth_bytes_per_second.value;
  priced.attention_calls.push_back(calls);
}

void RooflineCost::add_kernels(const PlacedModel& placed, PricedModel& priced) const {
  const KernelTimes& kernels = *options_.kernels;
  priced.products = KernelProducts(placed, options_).parts();
  for (const LayerGroup& group : placed.model.layers) {
    if (group.cached_values_per_token > 0) add_attention_calls(group, placed, priced);
  }
  priced.attention_times = kernels.attention_in(placed.cache_type);
  priced.prompt_experts = kernels.prompt_experts;
  priced.reduced_bytes_per_position = activation_bytes * static_cast<double>(placed.model.width);
  if (const CollectiveTimes* const found = kernels.all_to_all_over(placed.accelerators())) {
    priced.all_to_all_times = *found;
  }
  if (placed.tensor_parallel == 1) return;
  const CollectiveTimes* const found = kernels.all_reduce_over(placed.tensor_parallel);
  if (found == nullptr) {
    throw std::invalid_argument(
        fmt::format("RooflineCost: the kernels hold no all-reduce over {} accelerators, but over {}",
                    placed.tensor_parallel, kernels.measured_accelerators()));
  }
  priced.all_reduce_times = *found;
}

RooflineCost::PassPart RooflineCost::of_group(const PricedModel& model, PassPart part) {
  if (model.groups == 1 || part.count == 0) return part;
  const double share = std::max(part.count / model.groups, std::min(part.count, 1.0)) / part.count;
  part.count *= share;
  part.headed *= share;
  return part;
}

RooflineCost::PassWork RooflineCost::work_of(const PricedModel& model, const PassPart& all_decoding,
                                             const PassPart& all_prompts) {
  const double routed = all_decoding.count * all_decoding.tokens + all_prompts.count * all_prompts.tokens;
  const PassPart decoding = of_group(model, all_decoding), prompts = of_group(model, all_prompts);
  const double positions = decoding.count * decoding.tokens + prompts.count * prompts.tokens;
  PassWork work;
  double least_weights = work.weights = model.weights;
  for (const ExpertPart& part : model.experts) {
    work.weights -= part.weights * std::expm1(routed * part.log_missed);
    least_weights -= part.weights * std::expm1(std::min(routed, 1.0) * part.log_missed);
  }
  const double unrouted_products =
      positions * model.products_per_position + (decoding.headed + prompts.headed) * model.products_per_headed_position;
  work.weight_products = unrouted_products + routed * model.routed_products_per_position;
  work.link = positions * model.link_per_position;
  work.collectives = model.all_reduces + model.all_to_alls;
  work.layers = model.layers;
  work.attention = positions * model.state_products_per_position;
  for (const PassPart* part : {&decoding, &prompts}) {
    if (part->count == 0) continue;
    work.cache += part->count * model.states_per_sequence;
    for (const AttentionPart& layers : model.attention) {
      const double read = layers.selects ? part->tokens * layers.window : layers.window;
      work.cache += part->count * std::min(part->context + part->tokens, read) * layers.cache;
      work.attention += part->count * pairs_of(part->tokens, part->context, layers.window) * layers.attention;
    }
  }
  work.least = std::max(least_weights, unrouted_products) + std::max(work.cache, work.attention);
  if (!model.products.empty()) add_kernels(model, routed, decoding, prompts, work);
  return work;
}

void RooflineCost::add_kernels(const PricedModel& model, double routed, const PassPart& decoding,
                               const PassPart& prompts, PassWork& work) {
  const double positions = decoding.count * decoding.tokens + prompts.count * prompts.tokens;
  const double headed = decoding.headed + prompts.headed;
  work.weights = work.weight_products = 0;
  double rounded = 0;
  for (const ProductPart& part : model.products) {
    const double its_positions = part.log_missed ? routed : positions;
    const double weights =
        part.weights * (part.log_missed ? -std::expm1(std::pow(routed, part.routing) * *part.log_missed) : 1.0);
    const double operations = its_positions * part.per_position + headed * part.per_headed_position;
    work.weights += weights / part.times.bandwidth_share;
    work.weight_products += operations / part.times.peak_share;
    rounded += part.times.rounded(weights, operations);
    const double beside = part.calls + its_positions * part.moved_per_position;
    work.kernels += beside + headed * part.moved_per_headed_position;
    if (part.log_missed) {
      const double share_of_prompts = prompts.count * prompts.tokens / positions;
      work.kernels +=
          share_of_prompts * (model.prompt_experts - 1) * (part.times.rounded(weights, operations) + beside);
    }
  }
  // >= 0: each rounded maximum is at least its own maximum.
  work.kernels += rounded - std::max(work.weights, work.weight_products);
  const AttentionTimes& attention = model.attention_times;
  work.cache /= attention.bandwidth_share;
  work.attention /= attention.peak_share;
  for (const PassPart* part : {&decoding, &prompts}) {
    if (part->count == 0) continue;
    work.kernels +=
        model.attention_layers * attention.floor_seconds + part->count * model.cache_heads * attention.sequence_seconds;
  }
  if (attention.verification && decoding.count > 0 && decoding.tokens > 1) add_verification(model, decoding, work);
  const bool exchanges = model.all_to_alls > 0 && !model.all_to_all_times.bytes.empty();
  if (model.all_reduces == 0 && !exchanges) return;
  if (model.all_reduces > 0)
    work.reduced = model.all_reduces * model.all_reduce_times.at(positions * model.reduced_bytes_per_position);
  if (exchanges)
    work.reduced += model.all_to_alls * model.all_to_all_times.at(positions * model.exchanged_bytes_per_position);
  if (model.all_to_alls == 0 || exchanges) work.link = 0;
  work.collectives = 0;
}

void RooflineCost::add_verification(const PricedModel& model, const PassPart& decoding, PassWork& work) {
  const VerificationTimes& times = *model.attention_times.verification;
  for (const AttentionCalls& calls : model.attention_calls) {
    work.kernels += calls.layers * times.more_seconds(decoding.tokens, decoding.count, calls.query_heads, calls.group);
    if (!times.each_head_bandwidth_share) continue;
    const double read =
        calls.layers * decoding.count * std::min(decoding.context + decoding.tokens, calls.window) * calls.cache;
    work.cache += read * (calls.group / *times.each_head_bandwidth_share - 1 / model.attention_times.bandwidth_share);
  }
}

RooflineCost::IterationWork RooflineCost::work_of(const Iteration& iteration) const {
  const double sequences = iteration.sequences;
  const auto gamma = static_cast<double>(iteration.gamma);
  const double context = sequences > 0 ? iteration.context_tokens / sequences : 0;
  const auto decoding = [&](double tokens) { return PassPart{sequences, tokens, context, sequences * tokens}; };
  PassPart prompts;
  if (iteration.prompt_tokens > 0) {
    prompts = {iteration.prompts, iteration.prompt_tokens / iteration.prompts, 0, iteration.prompts};
    // For n positions behind x others, the mean pair count is x + (n + 1) / 2.
    prompts.context = std::max(0.0, iteration.prompt_pairs / iteration.prompt_tokens - (prompts.tokens + 1) / 2);
  }
  IterationWork work;
  if (options_.kernels) {
    work.sequences =
        (of_group(target_, decoding(1)).count + of_group(target_, prompts).count) * options_.kernels->sequence_seconds;
  }
  const double verified = iteration.verified && sequences > 0 ? *iteration.verified / sequences : gamma;
  // Engines capture graphs up to so many positions.
  constexpr double captured = 512;
  if (options_.kernels && iteration.prompt_tokens > 0 &&
      iteration.prompt_tokens + sequences * (verified + 1) > captured)
    work.least_pass = target_.layers * options_.kernels->prompt_layer_seconds;
  work.target = work_of(target_, decoding(verified + 1), prompts);
  if (!draft_ || iteration.gamma == 0) return work;
  // A prompt alone takes one pass of the draft.
  work.draft_passes = sequences > 0 ? draft_passes(options_.kind, gamma) : 1;
  const double longest = longest_draft_pass(options_.kind, gamma);
  const double tokens = options_.kind == DraftKind::parallel ? gamma : longest;
  work.first = work_of(*draft_, decoding(tokens), prompts);
  work.full_accepts = sequences > 0 && catches_up(options_.kind) ? iteration.full_accepts : 0;
  if (work.full_accepts > 0) work.caught_up = work_of(*draft_, decoding(tokens + 1), prompts);
  const bool alike = prompts.count == 0 && longest == 1;
  if (work.draft_passes > 1) work.other = alike ? work.first : work_of(*draft_, decoding(1), {});
  return work;
}

double RooflineCost::seconds_of(const PassWork& work, const Losses& losses) {
  return std::max(work.weights / losses[bandwidth], work.weight_products / losses[compute]) +
         std::max(work.cache / losses[bandwidth], work.attention / losses[compute]) + work.link / losses[link] +
         work.collectives * losses[latency] + work.kernels + work.reduced;
}

double RooflineCost::IterationWork::least_draft() const {
  return first.least + full_accepts * (caught_up.least - first.least) + std::max(0.0, draft_passes - 1) * other.least;
}

RoundTime RooflineCost::seconds_of(const IterationWork& work, const Losses& losses) {
  RoundTime time{.target = seconds_of(work.target, losses),
                 .overhead = losses[launch] + work.target.layers * losses[layer] + losses[scheduling] + work.sequences};
  if (work.draft_passes == 0) return time;
  time.draft = seconds_of(work.first, losses);
  if (work.full_accepts > 0) time.draft += work.full_accepts * (seconds_of(work.caught_up, losses) - time.draft);
  if (work.draft_passes > 1) time.draft += (work.draft_passes - 1) * seconds_of(work.other, losses);
  time.draft += work.draft_passes * (losses[draft_launch] + work.first.layers * losses[layer]);
  return time;
}

PassSeconds RooflineCost::pass_seconds(const PricedModel& model, double batch, double tokens, double context,
                                       double its_launch) const {
  core::require_in("RooflineCost", "batch", batch, least_normal, core::largest_double);
  core::require_in("RooflineCost", "tokens", tokens, least_normal, core::largest_double);
  core::require_in("RooflineCost", "context", context, 0, core::largest_double);
  const PassWork work = work_of(model, {batch, tokens, context, batch * tokens}, {});
  const Losses& losses = losses_.front();
  const double factor = error_factor(0, place_of(std::max(1.0, batch * tokens), context), 0);
  return {.weights = factor * work.weights / losses[bandwidth],
          .weight_products = factor * work.weight_products / losses[compute],
          .cache = factor * work.cache / losses[bandwidth],
          .attention = factor * work.attention / losses[compute],
          .communication = factor * (work.link / losses[link] + work.collectives * losses[latency] + work.reduced),
          .overhead = factor * (its_launch + work.layers * losses[layer]),
          .kernels = factor * work.kernels};
}

PassSeconds RooflineCost::target_pass(double batch, double tokens, double context) const {
  return pass_seconds(target_, batch, tokens, context, losses_.front()[launch]);
}

PassSeconds RooflineCost::draft_pass(double batch, double tokens, double context) const {
  if (!draft_) throw std::logic_error("RooflineCost::draft_pass: no model drafts");
  return pass_seconds(*draft_, batch, tokens, context, losses_.front()[draft_launch]);
}

double weight_bytes_per_gpu(const PlacedModel& placed) {
  require_legal_placement(placed, "model");
  const StoredWeights types = stored_weights(placed);
  ParametersByType own = all_parameters(placed.model), routed;
  routed.expert = std::exchange(own.expert, 0.0);
  return own.bytes(types) / static_cast<double>(placed.tensor_parallel) +
         routed.bytes(types) / static_cast<double>(placed.accelerators());
}

double cache_bytes_per_token_per_gpu(const PlacedModel& placed) {
  require_legal_placement(placed, "model");
  double values = 0;
  for (const LayerGroup& group : placed.model.layers)
    values += static_cast<double>(group.count * (group.cached_values_per_token + group.index_values_per_token)) *
              cache_share(group, placed.tensor_parallel);
  return values * stored_bits(placed.cache_type) / 8;
}

std::string uneven_heads(const PlacedModel& placed) {
  const std::int64_t among = placed.tensor_parallel;
  const std::string& name = placed.model.name;
  const auto cannot = [&](std::int64_t heads, std::string_view of_what) {
    return fmt::format("{} accelerators cannot evenly divide {} {}{}{}", among, heads, of_what,
                       name.empty() ? "" : " of ", name);
  };
  for (const LayerGroup& group : placed.model.layers) {
    if (group.query_heads % among != 0) return cannot(group.query_heads, "heads");
    const std::int64_t shards = group.cache_shards;
    if (shards > 1 && shards % among != 0 && among % shards != 0) return cannot(shards, "key/value heads");
  }
  return "";
}

}  // namespace specdec::cost
