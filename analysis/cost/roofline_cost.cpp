#include "analysis/cost/roofline_cost.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <boost/math/distributions/chi_squared.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/core/quantile.hpp"
#include "analysis/cost/kernel_products.hpp"
#include "analysis/cost/replicate_draws.hpp"
#include "analysis/cost/stored_weights.hpp"

namespace specdec::cost {
namespace {

constexpr double least_normal = std::numeric_limits<double>::min();
constexpr double all_reduces_per_layer = 2, all_to_alls_per_layer = 2;

constexpr std::uint32_t loss_stream = 48, calibration_error_stream = 49, shape_stream = 50, deployment_stream = 51;

/// Places in RooflineCost::Losses.
enum LossPlace : std::size_t { bandwidth, compute, latency, launch, scheduling, draft_launch, layer, link };
constexpr std::array<std::string_view, 8> loss_names = {
    "bandwidth_efficiency", "compute_efficiency", "all_reduce_latency_seconds",
    "launch_seconds",       "scheduling_seconds", "draft_launch_seconds",
    "layer_seconds",        "link_efficiency"};

bool is_efficiency(std::size_t place) { return place <= compute || place == link; }

/// Null for a draft_launch that is the launch of every pass. Either const or not, as the losses are.
template <class AnyLosses>
auto loss_at(AnyLosses& losses, std::size_t place) -> decltype(&losses.launch_seconds) {
  switch (place) {
    case bandwidth:
      return &losses.bandwidth_efficiency;
    case compute:
      return &losses.compute_efficiency;
    case latency:
      return &losses.all_reduce_latency_seconds;
    case launch:
      return &losses.launch_seconds;
    case scheduling:
      return &losses.scheduling_seconds;
    case layer:
      return &losses.layer_seconds;
    case link:
      return &losses.link_efficiency;
    default:
      return losses.draft_launch_seconds ? &*losses.draft_launch_seconds : nullptr;
  }
}

bool is_range(const UncertainValue* loss) { return loss != nullptr && loss->low < loss->high; }

void require_legal_losses(const RooflineLosses& losses) {
  for (std::size_t place = 0; place < loss_names.size(); ++place) {
    const UncertainValue* const loss = loss_at(losses, place);
    if (loss == nullptr) continue;
    const double lowest = is_efficiency(place) ? least_normal : 0;
    const double highest = is_efficiency(place) ? 1 : core::largest_double;
    core::require_in("RooflineCost", loss_names[place], loss->value, lowest, highest);
    core::require_in("RooflineCost", fmt::format("low of {}", loss_names[place]), loss->low, lowest, loss->value);
    core::require_in("RooflineCost", fmt::format("high of {}", loss_names[place]), loss->high, loss->value, highest);
  }
}

void require_ideal_shares(const RooflineLosses& losses) {
  constexpr std::array<std::pair<LossPlace, double>, 4> ideal = {
      {{bandwidth, 1.0}, {compute, 1.0}, {link, 1.0}, {latency, 0.0}}};
  for (const auto& [place, value] : ideal) {
    const UncertainValue& loss = *loss_at(losses, place);
    if (loss.low == value && loss.high == value) continue;
    throw std::invalid_argument(fmt::format("RooflineCost: {} is {}, but must be {} beside measured kernels",
                                            loss_names[place], loss.value, value));
  }
}

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

/// The value and the central 95% of its replicates, which holds it.
UncertainValue spread(double value, std::vector<double> replicates) {
  if (replicates.empty()) return {value, value, value};
  std::sort(replicates.begin(), replicates.end());
  return {std::min(value, core::sorted_quantile(replicates, 0.025)), value,
          std::max(value, core::sorted_quantile(replicates, 0.975))};
}

/// A loss that is fitted: y, its standard deviation before, and its bounds.
struct FreeLoss {
  std::size_t place = 0;
  double deviation = 1, lowest = 0, highest = core::largest_double;

  double of(double loss) const { return is_efficiency(place) ? std::log(loss) : loss; }
  /// At the bound rounding may leave y a little below 0.
  double loss(double y) const { return is_efficiency(place) ? std::exp(y) : std::max(y, 0.0); }
};

std::vector<FreeLoss> free_losses(const RooflineLosses& losses) {
  std::vector<FreeLoss> found;
  for (std::size_t place = 0; place < loss_names.size(); ++place) {
    const UncertainValue* const loss = loss_at(losses, place);
    if (!is_range(loss)) continue;
    FreeLoss& free = found.emplace_back();
    free.place = place;
    free.deviation = (free.of(loss->high) - free.of(loss->low)) / std::sqrt(12.0);
    free.lowest = free.of(loss->low);
    free.highest = free.of(loss->high);
  }
  return found;
}

/// Minimises |residuals(z)|^2 + |z|^2 within bounds by Levenberg and Marquardt's method, bounds by projection.
template <class Residuals>
std::vector<double> least_moved(std::size_t size, const std::vector<double>& lowest, const std::vector<double>& highest,
                                const Residuals& residuals) {
  constexpr int most_steps = 200;
  constexpr double difference = 1e-6, least_decrease = 1e-13;
  using Matrix = Eigen::MatrixXd;
  using Vector = Eigen::VectorXd;
  const auto n = static_cast<Eigen::Index>(size);
  const auto objective = [](const Vector& r, const std::vector<double>& z) {
    double sum = r.squaredNorm();
    for (const double one : z) sum += one * one;
    return sum;
  };
  std::vector<double> z(size, 0.0);
  Vector r = residuals(z);
  double value = objective(r, z), damping = 1e-3;
  for (int step = 0; step < most_steps && damping < 1e12; ++step) {
    Matrix slopes(r.size(), n);
    for (std::size_t k = 0; k < size; ++k) {
      std::vector<double> moved = z;
      // Backwards where the bound lies in front.
      const double h = z[k] + difference <= highest[k] ? difference : -difference;
      moved[k] += h;
      slopes.col(static_cast<Eigen::Index>(k)) = (residuals(moved) - r) / h;
    }
    Vector gradient = slopes.transpose() * r;
    Matrix normal = slopes.transpose() * slopes;
    for (std::size_t k = 0; k < size; ++k) {
      const auto i = static_cast<Eigen::Index>(k);
      gradient(i) += z[k];
      normal(i, i) += 1;
      const bool held = (z[k] <= lowest[k] && gradient(i) > 0) || (z[k] >= highest[k] && gradient(i) < 0);
      if (!held) continue;
      gradient(i) = 0;
      normal.row(i).setZero();
      normal.col(i).setZero();
      normal(i, i) = 1;
    }
    normal.diagonal() *= 1 + damping;
    const Vector move = normal.ldlt().solve(gradient);
    std::vector<double> next = z;
    for (std::size_t k = 0; k < size; ++k)
      next[k] = std::clamp(z[k] - move(static_cast<Eigen::Index>(k)), lowest[k], highest[k]);
    const Vector next_r = residuals(next);
    const double next_value = objective(next_r, next);
    if (next_value < value) {
      const bool done = value - next_value <= least_decrease * (1 + value);
      z = next;
      r = next_r;
      value = next_value;
      damping = std::max(damping / 10, 1e-9);
      if (done) break;
    } else {
      damping *= 10;
    }
  }
  return z;
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

RooflineCost::RooflineCost(RooflineOptions options) : options_(std::move(options)) {
  require_legal_losses(options_.losses);
  core::require_in("RooflineCost", "deployment_error", options_.deployment_error, 0, 3);
  core::require_in("RooflineCost", "point_error", options_.point_error, 0, 3);
  if (looks_up(options_.kind) && options_.draft)
    throw std::invalid_argument("RooflineCost: n-gram drafts need no draft model, but one is given");
  if (!looks_up(options_.kind) && !options_.draft)
    throw std::invalid_argument("RooflineCost: the draft model is missing, but must be given unless n-grams draft");
  target_ = priced(options_.target, "target");
  if (options_.draft) draft_ = priced(*options_.draft, "draft");
  const auto travels = [](const PricedModel& model) { return model.all_reduces + model.all_to_alls > 0; };
  const bool reduces = travels(target_) || (draft_ && travels(*draft_));
  UncertainValue& latency_loss = options_.losses.all_reduce_latency_seconds;
  if (!reduces) latency_loss = {latency_loss.value, latency_loss.value, latency_loss.value};
  draw_losses();
  if (!options_.kernels && replicates() > 0) draw_deployments(options_.deployment_error, options_.point_error);
  if (options_.kernels) {
    require_ideal_shares(options_.losses);
    draw_deployments(options_.kernels->deployment_error, options_.kernels->point_error);
    find_unmeasured(options_.target);
    if (options_.draft) find_unmeasured(*options_.draft);
  }
  find_uncalibrated();
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

void RooflineCost::find_unmeasured(const PlacedModel& placed) {
  const KernelTimes& kernels = *options_.kernels;
  const StoredWeights types = stored_weights(placed);
  std::vector<std::string> missing;
  const auto look = [&](const auto& measured, NumberType type, std::string_view what) {
    // The same kernels as bf16.
    if (type == NumberType::fp16) return;
    const std::string text = fmt::format("{} in {}", what, name_of(type));
    const bool known = std::find(missing.begin(), missing.end(), text) != missing.end();
    if (measured.count(name_of(type)) == 0 && !known) missing.push_back(text);
  };
  const auto say_once = [&](Note note) {
    const bool said = std::any_of(findings_.begin(), findings_.end(),
                                  [&](const Note& other) { return other.message == note.message; });
    if (!said) findings_.push_back(std::move(note));
  };
  look(kernels.products, types.dense, "products");
  look(kernels.products, types.unquantized, "products");
  const bool has_routed = has_experts(placed.model);
  if (has_routed && kernels.experts.empty()) {
    say_once({"kernel_times_without_experts",
              fmt::format("{} on {} measured no experts: priced as products of uniformly chosen ones", kernels.engine,
                          kernels.device)});
    look(kernels.products, types.expert, "products");
  } else if (has_routed) {
    look(kernels.experts, types.expert, "experts");
  }
  look(kernels.attention, placed.cache_type, "attention");
  const CollectiveTimes* const exchanged = kernels.all_to_all_over(placed.accelerators());
  if (placed.data_parallel > 1 && (exchanged == nullptr || exchanged->accelerators != placed.accelerators())) {
    say_once({"all_to_alls_of_others",
              fmt::format("{} on {} measured no all-to-alls over {} accelerators: priced {}", kernels.engine,
                          kernels.device, placed.accelerators(),
                          exchanged == nullptr ? "by the bytes and the bandwidth of the link alone"
                                               : fmt::format("as those over {}", exchanged->accelerators))});
  }
  if (missing.empty()) return;
  say_once({"kernel_times_of_bf16",
            fmt::format("{} on {} measured no {}: priced with the shares of the peaks that bf16 reaches there",
                        kernels.engine, kernels.device, fmt::join(missing, ", "))});
}

void RooflineCost::draw_losses() {
  Losses estimate{};
  bool ranges = false;
  for (std::size_t place = 0; place < loss_count; ++place) {
    const UncertainValue* const loss = loss_at(options_.losses, place);
    estimate[place] = loss != nullptr ? loss->value : estimate[launch];
    ranges = ranges || is_range(loss);
  }
  losses_.assign(1, estimate);
  if (!ranges) return;
  for (std::size_t r = 0; r < options_.replicates; ++r) {
    const ReplicateDraws draws(options_.seed, loss_stream, static_cast<std::uint32_t>(r));
    Losses& drawn = losses_.emplace_back(estimate);
    for (std::size_t place = 0; place < loss_count; ++place) {
      const UncertainValue* const loss = loss_at(options_.losses, place);
      if (is_range(loss)) drawn[place] = loss->low + draws.uniform(place) * (loss->high - loss->low);
      if (loss == nullptr) drawn[place] = drawn[launch];
    }
  }
}

void RooflineCost::find_uncalibrated() {
  const double joined = options_.hardware.gpus_per_node ? options_.hardware.gpus_per_node->value : core::largest_double;
  const std::int64_t shared_by =
      std::max(options_.target.accelerators(), options_.draft ? options_.draft->accelerators() : 1);
  if (static_cast<double>(shared_by) > joined) {
    findings_.push_back({"tensor_parallel_beyond_link",
                         fmt::format("{} accelerators share a model, but the link of {} joins {}: all-reduces are "
                                     "priced as if it joined all of them",
                                     shared_by, options_.hardware.name, joined)});
  }
  std::vector<PlacedModel> placed = {options_.target};
  if (options_.draft) placed.push_back(*options_.draft);
  for (const PlacedModel& model : placed) {
    if (const std::string uneven = uneven_heads(model); !uneven.empty()) {
      findings_.push_back(
          {"tensor_parallel_uneven", fmt::format("{}, which engines refuse: priced as if they could", uneven)});
    }
  }
  if (options_.kernels) {
    if (options_.kernels->deployment_error > 0) {
      findings_.push_back(
          {"roofline_uncalibrated",
           fmt::format("times come from measured kernels and from constants of the engine, which no timed iteration of "
                       "this deployment has corrected: deployments differ from them by a standard deviation of {:.0f}%",
                       100 * options_.kernels->deployment_error)});
    }
    return;
  }
  bool ranges = false;
  for (std::size_t place = 0; place < loss_count; ++place) ranges = ranges || is_range(loss_at(options_.losses, place));
  if (!ranges) {
    findings_.push_back({"losses_taken_as_exact",
                         "every loss is stated as one number and taken as exact, so that times have no interval: "
                         "LOW:HIGH gives them one"});
    return;
  }
  findings_.push_back(
      {"roofline_uncalibrated",
       fmt::format(
           "times come from peaks and from ranges of what passes lose against them, which no timed iteration of "
           "this deployment has corrected: where no kernels were measured, deployments differ from them by a "
           "standard deviation of {:.0f}%, which one time of --calibrate halves",
           100 * options_.deployment_error)});
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
  work.weights = model.weights;
  for (const ExpertPart& part : model.experts) work.weights -= part.weights * std::expm1(routed * part.log_missed);
  work.weight_products = positions * model.products_per_position + routed * model.routed_products_per_position +
                         (decoding.headed + prompts.headed) * model.products_per_headed_position;
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
    work.kernels += part.calls + its_positions * part.moved_per_position + headed * part.moved_per_headed_position;
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

void RooflineCost::require_replicate(std::size_t index) const {
  if (index < replicates()) return;
  throw std::out_of_range(
      fmt::format("RooflineCost: the index of a replicate is {}, but must be below {}", index, replicates()));
}

namespace {

/// Point errors are drawn at 1, r, r^2, ... positions, ln r being this, up to 2^17.
constexpr std::size_t point_nodes_per_octave = 8, point_nodes = 17 * point_nodes_per_octave + 1;
constexpr double point_step = std::numbers::ln2 / point_nodes_per_octave;

/// Decoded in an iteration, at least 1.
double positions_of(const Iteration& iteration) { return std::max(1.0, iteration.decoded_positions()); }

double context_of(const Iteration& iteration) {
  return iteration.sequences > 0 ? iteration.context_tokens / iteration.sequences : 0;
}

bool is_empty(const Iteration& iteration) { return iteration.sequences == 0 && iteration.prompt_tokens == 0; }

/// The same sequences without drafts.
Iteration plain_of(Iteration iteration) {
  iteration.gamma = 0;
  iteration.verified.reset();
  iteration.full_accepts = 0;
  return iteration;
}

Iteration iteration_of(const RoundPoint& point) {
  require_legal(point);
  Iteration iteration;
  iteration.sequences = point.batch;
  iteration.gamma = point.gamma;
  iteration.context_tokens = point.batch * point.context;
  iteration.full_accepts = point.full_accepts;
  return iteration;
}

/// True if an iteration has nothing that another one of the same gamma has not.
bool holds_no_more(const Iteration& fewer, const Iteration& more) {
  return fewer.sequences <= more.sequences && fewer.decoded_positions() <= more.decoded_positions() &&
         fewer.context_tokens <= more.context_tokens && fewer.prompt_tokens <= more.prompt_tokens;
}

}  // namespace

RoundTime RooflineCost::round(const RoundPoint& point) const { return round_of_version(0, iteration_of(point)); }

double RooflineCost::measured_share(const RoundPoint& point) const {
  if (!options_.kernels) return 0;
  const RoundTime time = seconds_of(work_of(plain_of(iteration_of(point))), losses_.front());
  return time.target / time.total();
}

RoundTime RooflineCost::round_of_replicate(std::size_t index, const RoundPoint& point) const {
  require_replicate(index);
  return round_of_version(1 + index, iteration_of(point));
}

/// An iteration with what all versions of its time share.
class RooflineCost::AllVersions {
 public:
  AllVersions(const RooflineCost& cost, const Iteration& iteration)
      : cost_(cost), iteration_(iteration), plain_(plain_of(iteration)), work_(cost.work_of(iteration)) {
    if (!cost.has_errors(0) && !cost.has_errors(1)) return;
    place_ = cost.place_of(iteration);
    plain_place_ = iteration.gamma > 0 ? cost.place_of(plain_) : place_;
  }

  RoundTime without_errors(std::size_t version) const { return seconds_of(work_, cost_.losses_[version]); }

  /// The estimate lies within what the contexts of a calibration make of it: their errors fade with the distance, and a
  /// longer context takes no less. Replicates err at each context by themselves.
  double seconds(std::size_t version) {
    const double seconds = seconds_by_itself(version);
    if (version > 0 || iteration_.sequences == 0) return seconds;
    double least = 0, most = std::numeric_limits<double>::infinity();
    for (const double context : cost_.timed_contexts_) {
      Iteration moved = iteration_;
      moved.context_tokens = context * iteration_.sequences;
      const double there = AllVersions(cost_, moved).seconds_by_itself(version);
      if (moved.context_tokens < iteration_.context_tokens) least = std::max(least, there);
      if (moved.context_tokens > iteration_.context_tokens) most = std::min(most, there);
    }
    return least <= most ? std::clamp(seconds, least, most) : seconds;
  }

 private:
  double seconds_by_itself(std::size_t version) {
    const double factor = cost_.error_factor(version, place_, iteration_.gamma);
    const double round = cost_.between_timed(version, iteration_, factor * without_errors(version).total());
    if (iteration_.gamma == 0 || !cost_.has_errors(version)) return round;
    const double plain_factor = cost_.error_factor(version, plain_place_, 0);
    // Without errors no round is shorter than a plain step.
    if (factor >= plain_factor && cost_.timed_seconds_.empty()) return round;
    if (!plain_work_) plain_work_ = cost_.work_of(plain_);
    const double step = plain_factor * seconds_of(*plain_work_, cost_.losses_[version]).total();
    return std::max(round, cost_.between_timed(version, plain_, step));
  }

  const RooflineCost& cost_;
  Iteration iteration_, plain_;
  IterationWork work_;
  std::optional<IterationWork> plain_work_;
  PointPlace place_, plain_place_;
};

void RooflineCost::totals_of_replicates(const RoundPoint& point, std::span<double> totals) const {
  core::require_same_size("totals_of_replicates", "totals", totals.size(), "the replicates", replicates());
  AllVersions versions(*this, iteration_of(point));
  for (std::size_t i = 0; i < totals.size(); ++i) totals[i] = versions.seconds(1 + i);
}

double RooflineCost::seconds(const Iteration& iteration) const {
  require_legal(iteration);
  return is_empty(iteration) ? 0 : round_of_version(0, iteration).total();
}

double RooflineCost::seconds_of_replicate(std::size_t index, const Iteration& iteration) const {
  require_legal(iteration);
  require_replicate(index);
  return is_empty(iteration) ? 0 : AllVersions(*this, iteration).seconds(1 + index);
}

RoundTime RooflineCost::round_of_version(std::size_t version, const Iteration& iteration) const {
  AllVersions versions(*this, iteration);
  const RoundTime time = versions.without_errors(version);
  const double factor = versions.seconds(version) / time.total();
  return {.target = factor * time.target, .draft = factor * time.draft, .overhead = factor * time.overhead};
}

double RooflineCost::between_timed(std::size_t version, const Iteration& iteration, double seconds) const {
  double least = 0, most = std::numeric_limits<double>::infinity();
  for (const TimedSeconds& timed : timed_seconds_) {
    if (timed.iteration.gamma != iteration.gamma) continue;
    if (holds_no_more(timed.iteration, iteration)) least = std::max(least, timed.by_version[version]);
    if (holds_no_more(iteration, timed.iteration)) most = std::min(most, timed.by_version[version]);
  }
  return least <= most ? std::clamp(seconds, least, most) : seconds;
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

RooflineCost::Losses RooflineCost::fitted(const Losses& start, std::span<const IterationWork> works,
                                          std::span<const double> log_seconds, double relative_error) const {
  const std::vector<FreeLoss> free = free_losses(options_.losses);
  if (free.empty()) return start;
  std::vector<double> lowest, highest;
  for (const FreeLoss& one : free) {
    const double y = one.of(start[one.place]);
    lowest.push_back((one.lowest - y) / one.deviation);
    highest.push_back((one.highest - y) / one.deviation);
  }
  const auto moved = [&](const std::vector<double>& z) {
    Losses losses = start;
    for (std::size_t k = 0; k < free.size(); ++k) {
      if (z[k] == 0) continue;
      losses[free[k].place] = free[k].loss(free[k].of(start[free[k].place]) + z[k] * free[k].deviation);
    }
    if (!options_.losses.draft_launch_seconds) losses[draft_launch] = losses[launch];
    return losses;
  };
  const auto residuals = [&](const std::vector<double>& z) {
    const Losses losses = moved(z);
    Eigen::VectorXd r(static_cast<Eigen::Index>(works.size()));
    for (std::size_t j = 0; j < works.size(); ++j) {
      const double seconds = seconds_of(works[j], losses).total();
      r(static_cast<Eigen::Index>(j)) = (std::log(seconds) - log_seconds[j]) / relative_error;
    }
    return r;
  };
  return moved(least_moved(free.size(), lowest, highest, residuals));
}

RooflineCost RooflineCost::at_peaks() const {
  RooflineOptions ideal = options_;
  ideal.kernels.reset();
  ideal.losses = {};
  ideal.replicates = 0;
  return RooflineCost(std::move(ideal));
}

void RooflineCost::require_below_peaks(const CalibrationPoint& point, double relative_error) const {
  const Iteration iteration = iteration_of({.gamma = point.gamma, .batch = point.batch, .context = point.context});
  const double seconds_at_peaks = at_peaks().seconds(iteration);
  if (point.round_seconds >= seconds_at_peaks * std::exp(-3 * relative_error)) return;
  throw std::domain_error(fmt::format(
      "an iteration at gamma {}, batch {:g} and context {:g} takes {:.4g} ms by what was measured, but at least "
      "{:.4g} ms at the peaks of the hardware; are model, types of its weights and number of accelerators those that "
      "were timed?",
      point.gamma, point.batch, point.context, 1e3 * point.round_seconds, 1e3 * seconds_at_peaks));
}

RooflineCost RooflineCost::calibrated(std::span<const CalibrationPoint> points, double relative_error) const {
  if (points.empty()) throw std::invalid_argument("RooflineCost::calibrated: points has 0 entries, but must have some");
  core::require_in("RooflineCost::calibrated", "relative_error", relative_error, least_normal, 1);
  for (const CalibrationPoint& point : points) {
    core::require_in("RooflineCost::calibrated", "round_seconds", point.round_seconds, least_normal,
                     core::largest_double);
    require_below_peaks(point, relative_error);
  }
  RooflineCost result = *this;
  result.calibrated_ = true;
  const double shown_error = result.checked_error(points, relative_error);
  if (options_.kernels) return result.conditioned(points, shown_error);
  result.fit_losses(points, relative_error);
  return result.conditioned(points, relative_error);
}

void RooflineCost::fit_losses(std::span<const CalibrationPoint> points, double relative_error) {
  std::vector<IterationWork> works;
  std::vector<double> logs;
  for (const CalibrationPoint& point : points) {
    works.push_back(work_of(iteration_of({.gamma = point.gamma, .batch = point.batch, .context = point.context})));
    logs.push_back(std::log(point.round_seconds));
  }
  losses_.front() = fitted(losses_.front(), works, logs, relative_error);
  for (std::size_t r = 0; r < replicates(); ++r) {
    const ReplicateDraws draws(options_.seed, calibration_error_stream, static_cast<std::uint32_t>(r));
    std::vector<double> drawn = logs;
    for (std::size_t j = 0; j < drawn.size(); ++j) drawn[j] += relative_error * draws.standard_normal(j);
    losses_[1 + r] = fitted(losses_[1 + r], works, drawn, relative_error);
  }
  for (const FreeLoss& one : free_losses(options_.losses)) {
    std::vector<double> values;
    for (std::size_t r = 0; r < replicates(); ++r) values.push_back(losses_[1 + r][one.place]);
    *loss_at(options_.losses, one.place) = spread(losses_.front()[one.place], std::move(values));
  }
}

namespace {

/// Covariances of as many measured times, each with an error of its own; `covariance` is that of two places.
template <class Covariance>
Eigen::MatrixXd covariances_of(std::size_t places, double relative_error, Covariance covariance) {
  const auto count = static_cast<Eigen::Index>(places);
  Eigen::MatrixXd all = relative_error * relative_error * Eigen::MatrixXd::Identity(count, count);
  for (Eigen::Index a = 0; a < count; ++a) {
    for (Eigen::Index b = 0; b < count; ++b)
      all(a, b) += covariance(static_cast<std::size_t>(a), static_cast<std::size_t>(b));
  }
  return all;
}

std::span<const double> span_of(const Eigen::VectorXd& values) {
  return {values.data(), static_cast<std::size_t>(values.size())};
}

}  // namespace

double RooflineCost::checked_error(std::span<const CalibrationPoint> points, double relative_error) {
  constexpr double same_place = 0.05, noticed = 3 * std::numbers::sqrt2;
  const auto same = [](double a, double b) { return std::abs(a - b) <= same_place * std::max(a, b); };
  double error = relative_error;
  for (const CalibrationPoint& a : points) {
    for (const CalibrationPoint& b : points) {
      if (!same(a.context, b.context) || a.round_seconds <= b.round_seconds) continue;
      if (a.gamma == b.gamma && a.batch < b.batch && !same(a.batch, b.batch) &&
          a.round_seconds > rounds_agree * b.round_seconds) {
        const std::string text = fmt::format(
            "at context {:g} {} sequences took {:.4g} ms, less than the {:.4g} ms of {}; more sequences take no less",
            a.context, b.batch, 1e3 * b.round_seconds, 1e3 * a.round_seconds, a.batch);
        findings_.push_back({"calibration_contradicts_itself", text});
        if (impossible_.empty()) impossible_ = text;
      }
      if (!same(a.batch, b.batch)) continue;
      const auto report = [&](std::string_view code, std::string text) {
        findings_.push_back(
            {std::string(code), fmt::format("at batch {:g} and context {:g} {}", a.batch, a.context, text)});
      };
      const double apart = std::log(a.round_seconds / b.round_seconds);
      if (a.gamma == b.gamma && apart > noticed * relative_error) {
        error = std::max(error, apart / 2);
        report("calibration_contradicts_itself",
               fmt::format("two iterations of gamma {} took {:.4g} and {:.4g} ms; each is taken to be off by half of "
                           "that, and which of them is right is to be measured",
                           a.gamma, 1e3 * a.round_seconds, 1e3 * b.round_seconds));
      }
      if (a.gamma > 0 || b.gamma == 0) continue;
      const std::string text = fmt::format(
          "a round with {} drafts took {:.4g} ms, less than the {:.4g} ms of a plain "
          "step; a round holds a pass of the target",
          b.gamma, 1e3 * b.round_seconds, 1e3 * a.round_seconds);
      report("round_below_target_pass", text);
      if (a.round_seconds > rounds_agree * b.round_seconds && impossible_.empty()) impossible_ = text;
    }
  }
  return error;
}

std::vector<RooflineCost::TimedPlace> RooflineCost::timed_places(std::span<const CalibrationPoint> points) {
  std::vector<TimedPlace> places;
  for (const CalibrationPoint& point : points)
    places.push_back({point_place(positions_of({.sequences = point.batch, .gamma = point.gamma})), point.gamma > 0});
  return places;
}

RooflineCost RooflineCost::conditioned(std::span<const CalibrationPoint> points, double relative_error) const {
  RooflineCost result = *this;
  result.calibrated_ = true;
  result.expected_errors_.reset();
  result.timed_contexts_.clear();
  ErrorDeviations deviations{options_.deployment_error, options_.point_error, 0};
  if (options_.kernels) deviations = {options_.kernels->deployment_error, options_.kernels->point_error, 0};
  result.draw_deployments(deviations.deployments, deviations.points);
  const auto count = static_cast<Eigen::Index>(points.size());
  std::vector<IterationWork> works;
  const std::vector<TimedPlace> places = timed_places(points);
  Eigen::VectorXd misses(count);
  for (const CalibrationPoint& point : points) {
    const RoundPoint where{.gamma = point.gamma, .batch = point.batch, .context = point.context};
    works.push_back(work_of(iteration_of(where)));
    const auto j = static_cast<Eigen::Index>(works.size()) - 1;
    std::vector<double>& contexts = result.timed_contexts_;
    if (std::find(contexts.begin(), contexts.end(), point.context) == contexts.end()) contexts.push_back(point.context);
    misses[j] = std::log(point.round_seconds / seconds_of(works.back(), losses_.front()).total());
    if (point.gamma > 0) deviations.drafting = std::max(deviations.drafting, result.deviation_by_losses(works.back()));
  }
  const auto of_two = [&](std::size_t a, std::size_t b) { return covariance(places[a], places[b], deviations); };
  Eigen::LLT<Eigen::MatrixXd> solver(covariances_of(places.size(), relative_error, of_two));
  const double scale = std::sqrt(misses.dot(solver.solve(misses)) / static_cast<double>(count));
  const boost::math::chi_squared law(static_cast<double>(count));
  constexpr double strange = 1e-3;
  const bool unlike_others = scale * scale * static_cast<double>(count) > quantile(complement(law, strange));
  if (unlike_others) {
    deviations = {scale * deviations.deployments, scale * deviations.points, scale * deviations.drafting};
    solver.compute(covariances_of(places.size(), relative_error, of_two));
  }

  const std::vector<double> nothing(point_nodes, 0);
  result.expected_errors_ = DeploymentErrors{0, 0, nothing, nothing};
  const Eigen::VectorXd expected = solver.solve(misses);
  add_expected(places, span_of(expected), deviations, *result.expected_errors_);
  const std::optional<Rise> rise = rise_of(points, span_of(misses));
  const double log_rise = rise ? rise->log_ratio / std::log(rise->last_batch / rise->first_batch) : 0;
  carry_on(places, nothing, log_rise, result.expected_errors_->points);
  for (std::size_t r = 0; r < result.deployment_errors_.size(); ++r) {
    DeploymentErrors& errors = result.deployment_errors_[r];
    if (unlike_others) {
      errors.all *= scale;
      for (double& error : errors.points) error *= scale;
      for (double& error : errors.elsewhere) error *= scale;
    }
    const std::vector<double> before = errors.points;
    const ReplicateDraws draws(options_.seed, calibration_error_stream, static_cast<std::uint32_t>(r));
    Eigen::VectorXd left(count);
    for (Eigen::Index j = 0; j < count; ++j) {
      const auto place = static_cast<std::size_t>(j);
      const double drawn = std::log(seconds_of(works[place], result.losses_[1 + r]).total()) +
                           errors.at(places[place].positions, places[place].drafts);
      left[j] = std::log(points[place].round_seconds) + relative_error * draws.standard_normal(place) - drawn;
    }
    const Eigen::VectorXd weights = solver.solve(left);
    add_expected(places, span_of(weights), deviations, errors);
    carry_on(places, before, 2 * draws.uniform(points.size()) * log_rise, errors.points);
  }
  result.report_misfit(points, places, span_of(misses), unlike_others, relative_error);
  if (rise) result.report_rise(*rise);
  result.remember(points);
  return result;
}

void RooflineCost::remember(std::span<const CalibrationPoint> points) {
  timed_seconds_.clear();
  std::vector<TimedSeconds> timed;
  for (const CalibrationPoint& point : points) {
    const Iteration iteration = iteration_of({.gamma = point.gamma, .batch = point.batch, .context = point.context});
    AllVersions versions(*this, iteration);
    TimedSeconds& one = timed.emplace_back(TimedSeconds{iteration, {}});
    for (std::size_t version = 0; version < losses_.size(); ++version)
      one.by_version.push_back(versions.seconds(version));
  }
  timed_seconds_ = std::move(timed);
}

void RooflineCost::report_misfit(std::span<const CalibrationPoint> points, std::span<const TimedPlace> places,
                                 std::span<const double> misses, bool unlike_others, double relative_error) {
  std::erase_if(findings_, [](const Note& finding) {
    return finding.code == "roofline_uncalibrated" || finding.code == "losses_taken_as_exact";
  });
  double largest_miss = 0, sum = 0, furthest = 0;
  std::size_t worst = 0;
  for (std::size_t j = 0; j < points.size(); ++j) {
    const double expected = expected_errors_->at(places[j].positions, places[j].drafts);
    const double missed = misses[j];
    sum += expected;
    if (std::abs(missed) > furthest) furthest = std::abs(missed), worst = j;
    const double miss = std::abs(missed - expected);
    if (miss <= 3 * relative_error) continue;
    largest_miss = std::max(largest_miss, miss);
    findings_.push_back({"roofline_misfit",
                         fmt::format("at gamma {}, batch {:g} and context {:g} an iteration took {:.4g} ms, but with "
                                     "what the times together say of this deployment it takes {:.4g} ms; intervals "
                                     "allow for rounds that are missed by as much",
                                     points[j].gamma, points[j].batch, points[j].context, 1e3 * points[j].round_seconds,
                                     1e3 * points[j].round_seconds * std::exp(expected - missed))});
  }
  factor_ = std::exp(sum / static_cast<double>(points.size()));
  if (unlike_others) {
    findings_.push_back(
        {"roofline_misfit",
         fmt::format("the times given differ from those of {} by more than those of 999 in 1000 deployments, "
                     "most at gamma {}, batch {:g} and context {:g}: {:.3g} times as long; the plan follows them with "
                     "intervals that are as much wider, and model, types of its weights, layout and tokens per step "
                     "are to be checked",
                     options_.kernels ? "the kernels" : "the losses that fit best", points[worst].gamma,
                     points[worst].batch, points[worst].context, std::exp(misses[worst]))});
  }
  if (largest_miss > 0) draw_shape_factors(largest_miss);
}

std::optional<RooflineCost::Rise> RooflineCost::rise_of(std::span<const CalibrationPoint> points,
                                                        std::span<const double> misses) {
  const auto drafts = [](const CalibrationPoint& point) { return point.gamma > 0; };
  if (std::any_of(points.begin(), points.end(), drafts)) return std::nullopt;
  const auto fewer = [](const CalibrationPoint& a, const CalibrationPoint& b) { return a.batch < b.batch; };
  const auto [first, last] = std::minmax_element(points.begin(), points.end(), fewer);
  const double rise = misses[static_cast<std::size_t>(last - points.begin())] -
                      misses[static_cast<std::size_t>(first - points.begin())];
  constexpr double as_priced = 1.1;
  if (first->batch == last->batch || rise <= std::log(as_priced)) return std::nullopt;
  return Rise{first->batch, last->batch, rise};
}

void RooflineCost::report_rise(const Rise& rise) {
  findings_.push_back(
      {"calibration_rises",
       fmt::format(
           "from batch {:g} to {:g} the times given rise {:.2g} times as much as {}: beyond what was timed they "
           "are taken to rise on, between not at all and twice as fast, so that rounds at large batches "
           "are little known; a time with drafts tells",
           rise.first_batch, rise.last_batch, std::exp(rise.log_ratio),
           options_.kernels ? "those of the kernels" : "the losses explain")});
}

double RooflineCost::deviation_by_losses(const IterationWork& work) const {
  double sum = 0, squares = 0;
  for (std::size_t r = 0; r < replicates(); ++r) {
    const double ratio = std::log(seconds_of(work, losses_[1 + r]).total() / seconds_of(work, losses_.front()).total());
    sum += ratio;
    squares += ratio * ratio;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(1, replicates()));
  return std::sqrt(std::max(0.0, squares / count - sum / count * sum / count));
}

double RooflineCost::covariance(const TimedPlace& a, const TimedPlace& b, const ErrorDeviations& deviations) {
  const auto squared = [](double value) { return value * value; };
  double alike = 0;
  for (const auto& [at_a, of_a] : a.positions.nodes()) {
    for (const auto& [at_b, of_b] : b.positions.nodes()) alike += of_a * of_b * node_correlation(at_a, at_b);
  }
  return squared(deviations.deployments) + squared(deviations.points) * alike +
         (a.drafts && b.drafts ? squared(deviations.drafting) : 0);
}

double RooflineCost::node_correlation(std::size_t a, std::size_t b) {
  const double apart = static_cast<double>(a > b ? a - b : b - a);
  return std::exp(-apart * point_step / point_error_reach);
}

void RooflineCost::add_expected(std::span<const TimedPlace> places, std::span<const double> weights,
                                const ErrorDeviations& deviations, DeploymentErrors& errors) {
  for (std::size_t j = 0; j < places.size(); ++j) {
    const double weight = weights[j];
    errors.all += deviations.deployments * deviations.deployments * weight;
    if (places[j].drafts) errors.drafting += deviations.drafting * deviations.drafting * weight;
    for (std::size_t node = 0; node < errors.points.size(); ++node) {
      for (const auto& [at, of] : places[j].positions.nodes()) {
        errors.points[node] += deviations.points * deviations.points * weight * of * node_correlation(node, at);
      }
    }
  }
}

void RooflineCost::carry_on(std::span<const TimedPlace> places, std::span<const double> before, double log_rise,
                            std::vector<double>& after) {
  std::size_t last = 0;
  for (const TimedPlace& place : places) last = std::max(last, place.positions.left + 1);
  for (std::size_t node = last + 1; node < after.size(); ++node) {
    after[node] = after[last] + before[node] - node_correlation(node, last) * before[last] +
                  log_rise * point_step * static_cast<double>(node - last);
  }
}

void RooflineCost::draw_deployments(double deviation, double around) {
  const double next = std::exp(-point_step / point_error_reach), new_part = std::sqrt(1 - next * next);
  deployment_errors_.clear();
  if (deviation == 0 && around == 0 && replicates() == 0) return;
  if (replicates() == 0) losses_.resize(1 + options_.replicates, Losses(losses_.front()));
  for (std::size_t r = 0; r < replicates(); ++r) {
    const ReplicateDraws draws(options_.seed, deployment_stream, static_cast<std::uint32_t>(r));
    DeploymentErrors& errors = deployment_errors_.emplace_back();
    errors.all = deviation * draws.standard_normal(0);
    const auto draw = [&](std::size_t first, std::vector<double>& points) {
      double point = draws.standard_normal(first);
      for (std::size_t node = 0; node < point_nodes; ++node) {
        points.push_back(around * point);
        point = next * point + new_part * draws.standard_normal(first + 1 + node);
      }
    };
    draw(1, errors.points);
    draw(2 + point_nodes, errors.elsewhere);
  }
}

RooflineCost::PointPlace RooflineCost::point_place(double positions) {
  const double node = std::min(std::log(positions) / point_step, static_cast<double>(point_nodes - 1));
  PointPlace place;
  place.left = std::min(static_cast<std::size_t>(node), point_nodes - 2);
  place.of_right = node - static_cast<double>(place.left);
  place.of_left = 1 - place.of_right;
  // The sum has the deviation of the nodes.
  const double alike = std::exp(-point_step / point_error_reach);
  const double scale = 1 / std::sqrt(1 - 2 * (1 - alike) * place.of_left * place.of_right);
  place.of_left *= scale;
  place.of_right *= scale;
  return place;
}

double RooflineCost::DeploymentErrors::at(const PointPlace& place, bool drafts) const {
  double error = all + (drafts ? drafting : 0);
  for (const auto& [node, weight] : place.nodes()) {
    error += weight * place.likeness * points[node];
    if (place.likeness < 1) error += weight * std::sqrt(1 - place.likeness * place.likeness) * elsewhere[node];
  }
  return error;
}

RooflineCost::PointPlace RooflineCost::place_of(double positions, double context) const {
  // Contexts that are short beside this are alike.
  constexpr double empty_cache = 500;
  PointPlace place = point_place(positions);
  if (timed_contexts_.empty()) return place;
  double apart = std::numeric_limits<double>::infinity();
  for (const double timed : timed_contexts_) {
    apart = std::min(apart, std::abs(std::log((context + empty_cache) / (timed + empty_cache))));
  }
  place.likeness = std::exp(-apart / point_error_context_reach);
  return place;
}

RooflineCost::PointPlace RooflineCost::place_of(const Iteration& iteration) const {
  return place_of(positions_of(iteration), context_of(iteration));
}

double RooflineCost::error_factor(std::size_t version, const PointPlace& place, std::int64_t gamma) const {
  if (version == 0) return expected_errors_ ? std::exp(expected_errors_->at(place, gamma > 0)) : 1;
  const double shape = shape_factors_.empty() ? 1 : shape_factors_[version - 1][gamma > 0 ? 1 : 0];
  return deployment_errors_.empty() ? shape : shape * std::exp(deployment_errors_[version - 1].at(place, gamma > 0));
}

bool RooflineCost::has_errors(std::size_t version) const {
  return version == 0 ? expected_errors_.has_value() : !shape_factors_.empty() || !deployment_errors_.empty();
}

void RooflineCost::draw_shape_factors(double largest_miss) {
  // Losses without ranges have no replicates yet.
  if (replicates() == 0) losses_.resize(1 + options_.replicates, Losses(losses_.front()));
  shape_factors_.clear();
  const double deviation = largest_miss / core::normal_half_width_95;
  for (std::size_t r = 0; r < replicates(); ++r) {
    const ReplicateDraws draws(options_.seed, shape_stream, static_cast<std::uint32_t>(r));
    shape_factors_.push_back(
        {std::exp(deviation * draws.standard_normal(0)), std::exp(deviation * draws.standard_normal(1))});
  }
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
