#include "analysis/cost/roofline_cost.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "analysis/cost/replicate_draws.hpp"
#include "analysis/cost/roofline_parts.hpp"
#include "analysis/cost/stored_weights.hpp"

namespace specdec::cost {
namespace {

constexpr std::uint32_t loss_stream = 48, shape_stream = 50, deployment_stream = 51;

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

/// The same sequences beside no prompt.
Iteration without_prompts(Iteration iteration) {
  iteration.prompt_tokens = iteration.prompts = iteration.prompt_pairs = 0;
  return iteration;
}

/// True if an iteration has nothing that another one of the same gamma has not.
bool holds_no_more(const Iteration& fewer, const Iteration& more) {
  return fewer.sequences <= more.sequences && fewer.decoded_positions() <= more.decoded_positions() &&
         fewer.context_tokens <= more.context_tokens && fewer.prompt_tokens <= more.prompt_tokens;
}

}  // namespace

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
  if (options_.kernels) {
    require_ideal_shares(options_.losses);
    options_.deployment_error = options_.kernels->deployment_error;
    options_.point_error = options_.kernels->point_error;
    options_.prompt_error = options_.kernels->prompt_error;
    find_unmeasured(options_.target);
    if (options_.draft) find_unmeasured(*options_.draft);
  }
  if (options_.kernels || replicates() > 0) draw_deployments();
  find_uncalibrated();
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

Iteration iteration_of(const RoundPoint& point) {
  require_legal(point);
  Iteration iteration;
  iteration.sequences = point.batch;
  iteration.gamma = point.gamma;
  iteration.context_tokens = point.batch * point.context;
  iteration.full_accepts = point.full_accepts;
  return iteration;
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

  RoundTime round(std::size_t version) {
    const RoundTime time = seconds_of(work_, cost_.losses_[version]);
    return time.times(seconds(version) / time.total());
  }

  /// Held against no other iteration.
  double alone(std::size_t version) const { return priced(work_, version, place_, iteration_.gamma); }
  double least_draft() const { return work_.least_draft(); }

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
    const double seconds = seconds_of_pass(version);
    if (!cost_.has_errors(version)) return seconds;
    const double least = work_.target.least + work_.least_draft();
    if (iteration_.prompt_tokens == 0) return std::max(seconds, least);
    const Iteration decoding = without_prompts(iteration_);
    const double without = is_empty(decoding) ? 0 : AllVersions(cost_, decoding).seconds_of_pass(version);
    return std::max(without + (seconds - without) * std::exp(cost_.errors_of(version)->prompts), least);
  }

  double seconds_of_pass(std::size_t version) {
    const double round = cost_.between_timed(version, iteration_, alone(version));
    if (iteration_.gamma == 0 || !cost_.has_errors(version)) return round;
    if (!plain_work_) plain_work_ = cost_.work_of(plain_);
    const double step = priced(*plain_work_, version, plain_place_, 0);
    return std::max(round, cost_.between_timed(version, plain_, step) + work_.least_draft());
  }

  double priced(const IterationWork& work, std::size_t version, const PointPlace& place, std::int64_t gamma) const {
    const double factor = cost_.error_factor(version, place, gamma);
    const RoundTime time = seconds_of(work, cost_.losses_[version]);
    // What the host takes to launch layers is not what calibration timed, and errs as much as the rest.
    const double least = work.least_pass * factor / cost_.error_factor(0, place, gamma);
    return factor * time.total() + std::max(0.0, least - factor * (time.target + time.overhead));
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

RoundTime RooflineCost::price(std::size_t version, const RoundPoint& point) const {
  return AllVersions(*this, iteration_of(point)).round(version);
}

double RooflineCost::price(std::size_t version, const Iteration& iteration) const {
  require_legal(iteration);
  if (is_empty(iteration)) return 0;
  AllVersions versions(*this, iteration);
  return version == 0 ? versions.round(0).total() : versions.seconds(version);
}

double RooflineCost::between_timed(std::size_t version, const Iteration& iteration, double seconds) const {
  double least = 0, most = std::numeric_limits<double>::infinity();
  for (const TimedSeconds& timed : timed_seconds_) {
    if (iteration.gamma == 0 && timed.iteration.gamma > 0 && holds_no_more(iteration, timed.iteration))
      most = std::min(most, timed.by_version[version] - timed.least_draft);
    if (timed.iteration.gamma != iteration.gamma) continue;
    if (holds_no_more(timed.iteration, iteration)) least = std::max(least, timed.by_version[version]);
    if (holds_no_more(iteration, timed.iteration)) most = std::min(most, timed.by_version[version]);
  }
  return least <= most ? std::clamp(seconds, least, most) : seconds;
}

RooflineCost RooflineCost::at_peaks() const {
  RooflineOptions ideal = options_;
  ideal.kernels.reset();
  ideal.losses = {};
  ideal.replicates = 0;
  return RooflineCost(std::move(ideal));
}

void RooflineCost::remember(std::span<const CalibrationPoint> points) {
  timed_seconds_.clear();
  std::vector<TimedSeconds> timed;
  for (const CalibrationPoint& point : points) {
    const Iteration iteration = iteration_of({.gamma = point.gamma, .batch = point.batch, .context = point.context});
    AllVersions versions(*this, iteration);
    TimedSeconds& one = timed.emplace_back(TimedSeconds{iteration, {}, versions.least_draft()});
    for (std::size_t version = 0; version < losses_.size(); ++version)
      one.by_version.push_back(versions.alone(version));
  }
  timed_seconds_ = std::move(timed);
}

void RooflineCost::draw_deployments() {
  const double next = std::exp(-point_step / point_error_reach), new_part = std::sqrt(1 - next * next);
  deployment_errors_.clear();
  if (replicates() == 0 && std::max({options_.deployment_error, options_.point_error, options_.prompt_error}) == 0)
    return;
  if (replicates() == 0) losses_.resize(1 + options_.replicates, Losses(losses_.front()));
  // None beats the peaks.
  const IterationWork step_work = work_of(Iteration{.sequences = 1});
  const PointPlace step_place = point_place(1);
  for (std::size_t r = 0; r < replicates(); ++r) {
    const ReplicateDraws draws(options_.seed, deployment_stream, static_cast<std::uint32_t>(r));
    DeploymentErrors& errors = deployment_errors_.emplace_back();
    errors.all = options_.deployment_error * draws.standard_normal(0);
    errors.prompts = options_.prompt_error * draws.standard_normal(3 + 2 * point_nodes);
    const auto draw = [&](std::size_t first, std::vector<double>& points) {
      double point = draws.standard_normal(first);
      for (std::size_t node = 0; node < point_nodes; ++node) {
        points[node] = options_.point_error * point;
        point = next * point + new_part * draws.standard_normal(first + 1 + node);
      }
    };
    draw(1, errors.points);
    draw(2 + point_nodes, errors.elsewhere);
    const double step = seconds_of(step_work, losses_[1 + r]).total() * std::exp(errors.at(step_place, false));
    if (step < step_work.target.least) errors.all += std::log(step_work.target.least / step);
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

RooflineCost::DeploymentErrors::DeploymentErrors() : points(point_nodes), elsewhere(point_nodes) {}

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
  return has_errors(version) ? std::exp(errors_of(version)->at(place, gamma > 0)) : 1;
}

const RooflineCost::DeploymentErrors* RooflineCost::errors_of(std::size_t version) const {
  if (version == 0) return expected_errors_ ? &*expected_errors_ : nullptr;
  return deployment_errors_.empty() ? nullptr : &deployment_errors_[version - 1];
}

bool RooflineCost::has_errors(std::size_t version) const { return errors_of(version) != nullptr; }

void RooflineCost::widen_by(double largest_miss) {
  // Without ranges and errors there are no replicates yet.
  if (replicates() == 0) losses_.resize(1 + options_.replicates, Losses(losses_.front()));
  deployment_errors_.resize(replicates());
  const double deviation = largest_miss / core::normal_half_width_95;
  for (std::size_t r = 0; r < replicates(); ++r) {
    const ReplicateDraws draws(options_.seed, shape_stream, static_cast<std::uint32_t>(r));
    const double plain = deviation * draws.standard_normal(0);
    deployment_errors_[r].all += plain;
    deployment_errors_[r].drafting += deviation * draws.standard_normal(1) - plain;
  }
}

}  // namespace specdec::cost
