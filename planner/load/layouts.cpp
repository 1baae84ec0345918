#include "planner/load/layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <tuple>
#include <utility>

#include "analysis/core/parallel.hpp"
#include "analysis/planning/steady_state.hpp"
#include "planner/load/capacity.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

/// Ratio of the batches at which a layout is priced, from 1 on.
constexpr double batch_step = std::numbers::sqrt2;
/// Numbers of replicas that are tried for a load, in equal ratios.
constexpr int most_replica_counts = 8;
/// Requests that the formulas and the short simulations know.
constexpr std::int64_t sampled_requests = 250;
constexpr std::int64_t sampled_replications = 2;
/// Layouts that are simulated.
constexpr std::size_t most_simulated = 8;

bool divides_experts(const cost::ModelSpec& model, std::int64_t parts) {
  return std::all_of(model.layers.begin(), model.layers.end(),
                     [&](const cost::LayerGroup& group) { return group.experts % parts == 0; });
}

/// 1, 2, 4, ... up to `most`, or the given one alone.
std::vector<std::int64_t> sizes(const std::optional<std::int64_t>& given, std::int64_t most) {
  if (given) return {*given};
  std::vector<std::int64_t> all;
  for (std::int64_t size = 1; size <= most; size *= 2) all.push_back(size);
  return all;
}

/// Fewest to most, each once.
std::vector<std::int64_t> replica_counts(std::int64_t fewest, std::int64_t most) {
  std::vector<std::int64_t> counts;
  for (int step = 0; step < most_replica_counts && fewest <= most; ++step) {
    const double share = static_cast<double>(step) / (most_replica_counts - 1);
    const double ratio = static_cast<double>(most) / static_cast<double>(fewest);
    const auto count = static_cast<std::int64_t>(std::lround(static_cast<double>(fewest) * std::pow(ratio, share)));
    if (counts.empty() || count > counts.back()) counts.push_back(count);
  }
  return counts;
}

/// One layout under the question's scenarios.
class PricedLayout {
 public:
  PricedLayout(const Capacity& asked, std::int64_t budget)
      : question_(asked.simulation),
        price_(asked.question.price),
        most_replicas_(budget / asked.simulation.gpus_per_replica),
        formulas_(sim::scenario_formulas(question_)) {}

  std::vector<LayoutPoint> points() const {
    std::vector<LayoutPoint> found;
    for (std::size_t s = 0; s < formulas_.size(); ++s) {
      if (!formulas_[s].saturation) continue;
      const std::vector<LayoutPoint> over_batches = at_batches(s);
      if (!question_.workload.requests_per_second) {
        found.insert(found.end(), over_batches.begin(), over_batches.end());
        continue;
      }
      for (const LayoutPoint& point : at_load(*question_.workload.requests_per_second, over_batches, s))
        found.push_back(point);
    }
    return found;
  }

 private:
  /// By rising batch, on as many replicas as there are accelerators for.
  std::vector<LayoutPoint> at_batches(std::size_t s) const {
    const sim::ScenarioFormulas& formulas = formulas_[s];
    const double largest = formulas.saturation->state.largest_batch;
    std::vector<LayoutPoint> found;
    for (double batch = std::min(1.0, largest);; batch = std::min(batch * batch_step, largest)) {
      const auto state =
          planning::balanced_load(*question_.cost, formulas.load, formulas.limits, formulas.rounds, batch);
      if (state) found.push_back(point_of(s, most_replicas_, state->requests_per_second, batch, state->tpot_seconds));
      if (batch >= largest) break;
    }
    return found;
  }

  /// At numbers of replicas that share the load, between the batches.
  std::vector<LayoutPoint> at_load(double requests_per_second, const std::vector<LayoutPoint>& batches,
                                   std::size_t s) const {
    if (batches.empty()) return {};
    double most = 0;
    for (const LayoutPoint& point : batches) most = std::max(most, point.requests_per_second_per_replica);
    const double fewest = std::max(1.0, std::ceil(requests_per_second / most * (1 - 1e-12)));
    if (fewest > static_cast<double>(most_replicas_)) return {};
    std::vector<LayoutPoint> found;
    for (const std::int64_t count : replica_counts(static_cast<std::int64_t>(fewest), most_replicas_)) {
      const double load = requests_per_second / static_cast<double>(count);
      const auto above = std::find_if(batches.begin(), batches.end(), [&](const LayoutPoint& point) {
        return point.requests_per_second_per_replica >= load;
      });
      if (above == batches.end()) continue;
      const LayoutPoint& right = *above;
      const LayoutPoint& left = above == batches.begin() ? right : *(above - 1);
      const double span = std::log(right.requests_per_second_per_replica / left.requests_per_second_per_replica);
      const double share = span > 0 ? std::log(load / left.requests_per_second_per_replica) / span : 0;
      const double seconds = left.tpot_seconds * std::pow(right.tpot_seconds / left.tpot_seconds, share);
      found.push_back(point_of(s, count, load, load * seconds * (formulas_[s].load.output_tokens - 1), seconds));
    }
    return found;
  }

  LayoutPoint point_of(std::size_t s, std::int64_t replicas, double load, double batch, double tpot_seconds) const {
    const sim::CapacityScenario& scenario = question_.scenarios[s];
    LayoutPoint point{.scenario = scenario.name,
                      .max_num_seqs = scenario.engine.max_num_seqs,
                      .replicas = replicas,
                      .requests_per_second_per_replica = load,
                      .mean_batch = batch,
                      .tpot_seconds = tpot_seconds,
                      .gpu_seconds_per_token =
                          static_cast<double>(question_.gpus_per_replica) / (load * formulas_[s].load.output_tokens),
                      .cost_per_million_tokens = {}};
    if (price_) point.cost_per_million_tokens = *price_ / 3600 * point.gpu_seconds_per_token * 1e6;
    return point;
  }

  const sim::CapacityQuestion& question_;
  std::optional<double> price_;
  std::int64_t most_replicas_;
  std::vector<sim::ScenarioFormulas> formulas_;
};

auto by_cost(const LayoutPoint& point) { return std::tuple(point.gpu_seconds_per_token, point.tpot_seconds); }
auto by_time(const LayoutPoint& point) { return std::tuple(point.tpot_seconds, point.gpu_seconds_per_token); }

bool is_within(const CapacityQuestion& q, const LayoutPoint& point) {
  return !q.tpot_ms || 1000 * point.tpot_seconds <= *q.tpot_ms;
}

/// A question with fewer requests and replications about one layout, for the search.
CapacityQuestion brief_question(const CapacityQuestion& asked) {
  CapacityQuestion q = asked;
  q.gpus.reset();
  q.prefill.reset();
  if (asked.prefill) q.decode_only = true;
  q.replications = sampled_replications;
  q.workload.requests = sampled_requests;
  q.threads = 1;
  return q;
}

/// Whether the point's scenario meets the limits at its load in a short simulation.
bool meets_limits(const std::optional<Acceptance>& acceptance, const Cost& cost, const CapacityQuestion& q,
                  const LayoutPoint& point) {
  sim::CapacityQuestion simulation = asked_capacity(acceptance, cost, brief_question(q)).simulation;
  std::erase_if(simulation.scenarios, [&](const sim::CapacityScenario& scenario) {
    return scenario.name != point.scenario || scenario.engine.max_num_seqs != point.max_num_seqs;
  });
  // A pool of its own computes prompts.
  if (q.prefill) simulation.limits.ttft_seconds.reset();
  simulation.threads = q.threads;
  const sim::ScenarioCapacity found = sim::plan_capacity(simulation).scenarios.front();
  return found.meets_load && (!found.gpus || *found.gpus <= *q.gpus);
}

/// The cheapest point of each layout within the limit, cheapest first.
std::vector<LayoutPoint> candidates(const CapacityQuestion& q, const std::vector<std::vector<LayoutPoint>>& points) {
  std::vector<LayoutPoint> best;
  for (const std::vector<LayoutPoint>& of_layout : points) {
    std::vector<LayoutPoint> within;
    std::copy_if(of_layout.begin(), of_layout.end(), std::back_inserter(within),
                 [&](const LayoutPoint& point) { return is_within(q, point); });
    if (within.empty()) continue;
    best.push_back(*std::min_element(within.begin(), within.end(),
                                     [](const auto& a, const auto& b) { return by_cost(a) < by_cost(b); }));
  }
  std::stable_sort(best.begin(), best.end(), [](const auto& a, const auto& b) { return by_cost(a) < by_cost(b); });
  return best;
}

std::vector<LayoutPoint> frontier_of(const std::vector<std::vector<LayoutPoint>>& points) {
  std::vector<LayoutPoint> all, frontier;
  for (const std::vector<LayoutPoint>& of_layout : points) all.insert(all.end(), of_layout.begin(), of_layout.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return by_cost(a) < by_cost(b); });
  for (const LayoutPoint& point : all) {
    if (frontier.empty() || point.tpot_seconds < frontier.back().tpot_seconds) frontier.push_back(point);
  }
  return frontier;
}

void choose(const std::optional<Acceptance>& acceptance, const Cost& cost, const CapacityQuestion& q,
            const std::vector<std::vector<LayoutPoint>>& points, LayoutSearch& search) {
  const std::vector<LayoutPoint> best = candidates(q, points);
  search.chosen = best.empty() ? search.frontier.back().layout : best.front().layout;
  for (std::size_t i = 0; i < std::min(best.size(), most_simulated); ++i) {
    const std::size_t layout = best[i].layout;
    if (!meets_limits(acceptance, in_layout(cost, search.layouts[layout].layout), q, best[i])) continue;
    search.chosen = layout;
    search.is_within_limits = true;
    return;
  }
}

}  // namespace

Layout layout_of(const cost::PlacedModel& placed) {
  return {placed.tensor_parallel, placed.data_parallel, placed.expert_parallel};
}

std::string text_of(const Layout& layout) {
  std::string text = fmt::format("tp {}", layout.tensor_parallel);
  if (layout.data_parallel > 1) text += fmt::format(", dp {}", layout.data_parallel);
  if (layout.expert_parallel > 1) text += fmt::format(", ep {}", layout.expert_parallel);
  return text;
}

std::vector<Layout> layouts_within(std::int64_t gpus, const cost::RooflineCost& cost, const HardwareOptions& options) {
  const cost::RooflineOptions& placed = cost.options();
  const cost::ModelSpec& model = placed.target.model;
  const auto& joined = placed.hardware.gpus_per_node;
  const bool has_link = placed.hardware.link_bytes_per_second.has_value();
  const std::int64_t most = !has_link ? 1 : std::min(gpus, joined ? static_cast<std::int64_t>(joined->value) : gpus);
  const bool routed = has_experts(model) && has_link;
  std::vector<Layout> layouts;
  for (const std::int64_t tensor : sizes(options.tensor_parallel, most)) {
    cost::PlacedModel target = placed.target;
    target.tensor_parallel = tensor;
    if (!options.tensor_parallel && !cost::uneven_heads(target).empty()) continue;
    for (const std::int64_t data : sizes(options.data_parallel, routed ? most / tensor : 1)) {
      if (tensor * data > gpus) continue;
      for (const std::int64_t parts : sizes(options.expert_parallel, routed ? tensor * data : 1)) {
        if (tensor * data % parts == 0 && divides_experts(model, parts)) layouts.push_back({tensor, data, parts});
      }
    }
  }
  return layouts;
}

Cost in_layout(const Cost& cost, const Layout& layout) {
  CostWords words = *cost.words;
  HardwareOptions& o = words.options;
  o.tensor_parallel = layout.tensor_parallel;
  o.data_parallel = layout.data_parallel > 1 ? std::optional(layout.data_parallel) : std::nullopt;
  o.expert_parallel = layout.expert_parallel > 1 ? std::optional(layout.expert_parallel) : std::nullopt;
  if (o.draft.tensor_parallel) o.draft.tensor_parallel = std::min(*o.draft.tensor_parallel, layout.tensor_parallel);
  // Times of one layout say nothing of another.
  if (layout != layout_of(cost.roofline->options().target)) o.calibrate.clear();
  Cost placed = Cost::of(words);
  const HardwareOptions& asked = cost.words->options;
  for (Assumption& one : placed.assumptions) {
    const bool is_found = (one.name == "tensor_parallel" && !asked.tensor_parallel) ||
                          (one.name == "data_parallel" && !asked.data_parallel) ||
                          (one.name == "expert_parallel" && !asked.expert_parallel);
    if (is_found) one.source = "found";
  }
  return placed;
}

LayoutSearch search_layouts(const std::optional<Acceptance>& acceptance, const Cost& cost,
                            const CapacityQuestion& question) {
  if (!cost.roofline || !cost.words) throw QuestionError("--gpus is given, but needs --hardware beside it");
  if (question.concurrency) throw QuestionError("--gpus is given, but must not be beside --concurrency");
  if (question.replicas) throw QuestionError("--gpus is given, but must not be beside --replicas, which it finds");
  if (!cost.words->options.calibrate.empty())
    throw QuestionError(
        "--calibrate is given beside --gpus, but was timed in one layout, which --tp, --dp and --ep state");
  require_in("--gpus", question.gpus, capacity_ranges.gpus);
  LayoutSearch search;
  search.gpus = *question.gpus;
  for (const Layout& layout : layouts_within(search.gpus, *cost.roofline, cost.words->options))
    search.layouts.push_back({layout, {}, {}, {}});
  if (search.layouts.empty())
    throw QuestionError(fmt::format("--gpus is {}, but no layout that is asked for has so few", search.gpus));
  const CapacityQuestion asked = brief_question(question);
  std::vector<std::vector<LayoutPoint>> points(search.layouts.size());
  core::for_each_index(static_cast<std::int64_t>(points.size()), question.threads, [&](std::int64_t i, std::int64_t) {
    const auto place = static_cast<std::size_t>(i);
    TriedLayout& tried = search.layouts[place];
    try {
      const Capacity capacity = asked_capacity(acceptance, in_layout(cost, tried.layout), asked);
      points[place] = PricedLayout(capacity, search.gpus).points();
    } catch (const QuestionError& error) {
      tried.refusal = error.with_options();
      return;
    }
    for (LayoutPoint& point : points[place]) point.layout = place;
    if (points[place].empty()) {
      tried.refusal = fmt::format("{} GPUs do not take the load", search.gpus);
      return;
    }
    const auto least = [&](auto key) {
      return *std::min_element(points[place].begin(), points[place].end(),
                               [&](const auto& a, const auto& b) { return key(a) < key(b); });
    };
    tried.cheapest = least([](const LayoutPoint& point) { return by_cost(point); });
    tried.fastest = least([](const LayoutPoint& point) { return by_time(point); });
  });
  search.frontier = frontier_of(points);
  if (search.frontier.empty()) {
    throw QuestionError(fmt::format("--gpus is {}, but no layout serves; {}: {}", search.gpus,
                                    text_of(search.layouts.back().layout), search.layouts.back().refusal));
  }
  choose(acceptance, cost, question, points, search);
  return search;
}

}  // namespace specdec::planner
