#include "planner/load/layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
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
/// Requests that the formulas know.
constexpr std::int64_t sampled_requests = 250;
constexpr std::int64_t sampled_replications = 2;
/// Relative error of the formulas' loads and times per token against the simulated ones that the search allows for.
constexpr double formula_error = 0.25;
/// Accelerators within which every legal load finds those that it needs; doubles tell their numbers apart.
constexpr std::int64_t no_bound = std::int64_t{1} << 50U;

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
  PricedLayout(sim::CapacityQuestion asked, std::int64_t budget)
      : question_(sampled(std::move(asked))),
        most_replicas_(budget / question_.gpus_per_replica),
        formulas_(sim::scenario_formulas(question_)) {}

  /// [scenario], by rising batch; empty where the formulas do not apply.
  std::vector<std::vector<LayoutPoint>> over_batches() const {
    std::vector<std::vector<LayoutPoint>> found(formulas_.size());
    for (std::size_t s = 0; s < formulas_.size(); ++s) {
      if (formulas_[s].saturation) found[s] = at_batches(s);
    }
    return found;
  }

  /// Where a load is asked for those that share it, else those over batches.
  std::vector<LayoutPoint> points(const std::vector<std::vector<LayoutPoint>>& over_batches) const {
    const std::optional<double>& load = question_.workload.requests_per_second;
    std::vector<LayoutPoint> found;
    for (std::size_t s = 0; s < formulas_.size(); ++s) {
      const std::vector<LayoutPoint> of_one = load ? at_load(*load, over_batches[s], s) : over_batches[s];
      found.insert(found.end(), of_one.begin(), of_one.end());
    }
    return found;
  }

 private:
  static sim::CapacityQuestion sampled(sim::CapacityQuestion question) {
    question.workload.requests = sampled_requests;
    question.replications = sampled_replications;
    question.threads = 1;
    return question;
  }

  /// By rising batch, on as many replicas as there are accelerators for.
  std::vector<LayoutPoint> at_batches(std::size_t s) const {
    const sim::ScenarioFormulas& formulas = formulas_[s];
    const double largest = formulas.saturation->state.largest_batch;
    std::vector<LayoutPoint> found;
    for (double batch = std::min(1.0, largest);; batch = std::min(batch * batch_step, largest)) {
      const auto state = planning::balanced_load(*question_.cost, formulas, batch);
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
    if (const auto& price = question_.price_per_gpu_hour)
      point.cost_per_million_tokens = *price / 3600 * point.gpu_seconds_per_token * 1e6;
    return point;
  }

  sim::CapacityQuestion question_;
  std::int64_t most_replicas_;
  std::vector<sim::ScenarioFormulas> formulas_;
};

auto by_cost(const LayoutPoint& point) { return std::tuple(point.gpu_seconds_per_token, point.tpot_seconds); }
auto by_time(const LayoutPoint& point) { return std::tuple(point.tpot_seconds, point.gpu_seconds_per_token); }

bool is_within(const CapacityQuestion& q, const LayoutPoint& point) {
  return !q.tpot_ms || 1000 * point.tpot_seconds <= *q.tpot_ms;
}

/// A layout as it is searched: what capacity simulates in it, and its scenarios' points by formulas.
struct SearchedLayout {
  /// Empty if it is refused.
  std::optional<sim::CapacityQuestion> simulation;
  /// [scenario], over batches.
  std::vector<std::vector<LayoutPoint>> over_batches;
  std::vector<LayoutPoint> points;
};

std::vector<LayoutPoint> frontier_of(const std::vector<SearchedLayout>& layouts) {
  std::vector<LayoutPoint> all, frontier;
  for (const SearchedLayout& layout : layouts) all.insert(all.end(), layout.points.begin(), layout.points.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return by_cost(a) < by_cost(b); });
  for (const LayoutPoint& point : all) {
    if (frontier.empty() || point.tpot_seconds < frontier.back().tpot_seconds) frontier.push_back(point);
  }
  return frontier;
}

/// By formulas: the layout of the cheapest point within the limit on the time per token, else of the fastest one.
std::size_t likeliest_layout(const CapacityQuestion& q, const LayoutSearch& search) {
  for (const LayoutPoint& point : search.frontier) {
    if (is_within(q, point)) return point.layout;
  }
  return search.frontier.back().layout;
}

/// Requests/s of a replica at a time per token, between the points, which rise in both; 0 if it is below all of them.
double rate_within(const std::vector<LayoutPoint>& points, double tpot_seconds) {
  double rate = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    const LayoutPoint& here = points[i];
    if (here.tpot_seconds <= tpot_seconds) {
      rate = std::max(rate, here.requests_per_second_per_replica);
    } else if (i > 0 && points[i - 1].tpot_seconds <= tpot_seconds) {
      const LayoutPoint& before = points[i - 1];
      const double share =
          std::log(tpot_seconds / before.tpot_seconds) / std::log(here.tpot_seconds / before.tpot_seconds);
      rate = std::max(
          rate, before.requests_per_second_per_replica *
                    std::pow(here.requests_per_second_per_replica / before.requests_per_second_per_replica, share));
    }
  }
  return rate;
}

/// A scenario of a layout that may be simulated.
struct Candidate {
  std::size_t layout = 0, scenario = 0;
  /// The largest load of a replica within the limit on the time per token, and the least GPU-seconds per request, by
  /// the formulas and their error.
  double rate = 0, least = 0;
};

/// What was simulated of a candidate. Requests, of which all candidates have the same, are not of equally many tokens
/// in the formulas' sample of them.
struct Simulated {
  std::size_t layout = 0;
  std::int64_t gpus = 0;
  double gpu_seconds_per_request = 0, median_tpot_seconds = 0;
};

/// Simulates scenarios of layouts, and keeps the best with and without speculation.
class LayoutSimulation {
 public:
  LayoutSimulation(const std::vector<SearchedLayout>& layouts, LayoutSearch& search, const core::RunHooks& hooks)
      : layouts_(layouts), search_(search), hooks_(hooks) {}

  /// @return the accelerators that the best one takes, or plain decoding if it takes more; empty if none is within the
  ///   limits and the accelerators
  std::optional<std::int64_t> run() {
    for (const Candidate& candidate : candidates()) {
      if (!can_be_best(candidate)) continue;
      simulate(candidate);
    }
    search_.is_within_limits = best_.has_value();
    if (plain_) search_.plain = plain_->layout;
    if (!best_) return std::nullopt;
    search_.chosen = best_->layout;
    return plain_ ? std::max(best_->gpus, plain_->gpus) : best_->gpus;
  }

 private:
  /// Those that may be within the limit on the time per token and the accelerators, cheapest first: of each layout
  /// plain decoding and the drafts that take most, since formulas err alike in all of its drafts.
  std::vector<Candidate> candidates() const {
    std::vector<Candidate> all;
    for (std::size_t i = 0; i < layouts_.size(); ++i) {
      std::optional<Candidate> plain, drafting;
      for (std::size_t s = 0; layouts_[i].simulation && s < layouts_[i].over_batches.size(); ++s) {
        const std::optional<Candidate> one = candidate(i, s);
        if (!one) continue;
        std::optional<Candidate>& kept = is_plain(*one) ? plain : drafting;
        if (!kept || one->rate > kept->rate) kept = one;
      }
      for (const std::optional<Candidate>& kept : {plain, drafting})
        if (kept) all.push_back(*kept);
    }
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.least < b.least; });
    return all;
  }

  /// With loads that are larger and times that are shorter than the formulas' by their error; empty if not even then
  /// the limit or the accelerators suffice.
  std::optional<Candidate> candidate(std::size_t layout, std::size_t scenario) const {
    const sim::CapacityQuestion& question = *layouts_[layout].simulation;
    const std::optional<double>& limit = question.limits.tpot_seconds;
    const double longest = limit ? *limit / (1 - formula_error) : std::numeric_limits<double>::infinity();
    const double rate = rate_within(layouts_[layout].over_batches[scenario], longest) / (1 - formula_error);
    if (!(rate > 0)) return std::nullopt;
    const auto each = static_cast<double>(question.gpus_per_replica);
    const std::optional<double>& load = question.workload.requests_per_second;
    if (!load) return Candidate{layout, scenario, rate, each / rate};
    const double gpus = each * std::ceil(*load / rate * (1 - 1e-12));
    if (gpus > static_cast<double>(search_.gpus)) return std::nullopt;
    return Candidate{layout, scenario, rate, gpus / *load};
  }

  bool is_plain(const Candidate& candidate) const {
    return sim::is_plain(layouts_[candidate.layout].simulation->scenarios[candidate.scenario]);
  }

  bool can_be_best(const Candidate& candidate) const {
    const std::optional<Simulated>& best = is_plain(candidate) ? plain_ : best_;
    return !best || candidate.least <= best->gpu_seconds_per_request;
  }

  void simulate(const Candidate& candidate) {
    sim::CapacityQuestion question = *layouts_[candidate.layout].simulation;
    question.scenarios = {question.scenarios[candidate.scenario]};
    question.finds_rate_intervals = false;
    TriedLayout& tried = search_.layouts[candidate.layout];
    std::optional<Simulated> found;
    try {
      found = question.workload.requests_per_second ? at_load(question, candidate) : at_most(question);
    } catch (const sim::CacheTooSmall& error) {
      tried.refusal = fmt::format("{} needs {} tokens of cache, and these GPUs leave {}", error.request,
                                  error.needed_tokens, error.cache_tokens);
      return;
    }
    if (hooks_.interrupted()) throw QuestionError("interrupted before the layouts were simulated");
    ++tried.simulated;
    if (!found) return;
    found->layout = candidate.layout;
    tried.refusal.clear();
    keep_better(*found, best_);
    if (is_plain(candidate)) keep_better(*found, plain_);
  }

  /// On no more accelerators than the best takes.
  std::optional<Simulated> at_load(const sim::CapacityQuestion& question, const Candidate& candidate) const {
    const std::optional<Simulated>& best = is_plain(candidate) ? plain_ : best_;
    const std::int64_t most = (best ? best->gpus : search_.gpus) / question.gpus_per_replica;
    const auto shared = sim::fewest_replicas(question, most, {{}, hooks_.interrupt});
    if (!shared) return std::nullopt;
    const std::int64_t gpus = shared->replicas * question.gpus_per_replica;
    return Simulated{0, gpus, static_cast<double>(gpus) / *question.workload.requests_per_second,
                     shared->median_tpot_seconds};
  }

  /// At the largest load of as many replicas as there are accelerators for.
  std::optional<Simulated> at_most(const sim::CapacityQuestion& question) const {
    const sim::CapacityAnswer answer = sim::plan_capacity(question, {{}, hooks_.interrupt});
    if (answer.interrupted) return std::nullopt;
    const sim::ScenarioCapacity& found = answer.scenarios.front();
    if (!found.meets_load || *found.gpus > search_.gpus) return std::nullopt;
    return Simulated{0, *found.gpus, static_cast<double>(*found.gpus) / found.at_requests_per_second.value,
                     found.tpot_seconds ? found.tpot_seconds->p50.value : 0};
  }

  static void keep_better(const Simulated& one, std::optional<Simulated>& best) {
    const auto key = [](const Simulated& of) { return std::pair(of.gpu_seconds_per_request, of.median_tpot_seconds); };
    if (!best || key(one) < key(*best)) best = one;
  }

  const std::vector<SearchedLayout>& layouts_;
  LayoutSearch& search_;
  const core::RunHooks& hooks_;
  /// Within the limits and the accelerators.
  std::optional<Simulated> best_, plain_;
};

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

std::size_t LayoutSearch::simulated() const {
  return static_cast<std::size_t>(
      std::count_if(layouts.begin(), layouts.end(), [](const TriedLayout& tried) { return tried.simulated > 0; }));
}

namespace {

void require_searchable(const Cost& cost, const CapacityQuestion& question) {
  if (!cost.roofline || !cost.words) throw QuestionError("--gpus is given, but needs --hardware beside it");
  if (question.concurrency) throw QuestionError("--gpus is given, but must not be beside --concurrency");
  if (question.replicas) throw QuestionError("--gpus is given, but must not be beside --replicas, which it finds");
  if (!cost.words->options.calibrate.empty())
    throw QuestionError(
        "--calibrate is given beside --gpus, but was timed in one layout, which --tp, --dp and --ep state");
  require_in("--gpus", question.gpus, capacity_ranges.gpus);
}

/// @param tried  is told why it is refused
SearchedLayout over_batches_of(const std::optional<Acceptance>& acceptance, const Cost& cost,
                               const CapacityQuestion& question, std::int64_t gpus, TriedLayout& tried) {
  SearchedLayout layout;
  try {
    layout.simulation = asked_capacity(acceptance, in_layout(cost, tried.layout), question).simulation;
  } catch (const QuestionError& error) {
    tried.refusal = error.with_options();
    return layout;
  }
  layout.over_batches = PricedLayout(*layout.simulation, gpus).over_batches();
  return layout;
}

/// @param place  index into search.layouts, which is told its cheapest and fastest points, or that it takes no load
void take_points(std::size_t place, SearchedLayout& layout, LayoutSearch& search) {
  TriedLayout& tried = search.layouts[place];
  if (!layout.simulation) return;
  layout.points = PricedLayout(*layout.simulation, search.gpus).points(layout.over_batches);
  for (LayoutPoint& point : layout.points) point.layout = place;
  if (layout.points.empty()) {
    tried.refusal = search.gpus == 1 ? std::string("1 GPU does not take the load")
                                     : fmt::format("{} GPUs do not take the load", search.gpus);
    return;
  }
  const auto least = [&](auto key) {
    return *std::min_element(layout.points.begin(), layout.points.end(),
                             [&](const auto& a, const auto& b) { return key(a) < key(b); });
  };
  tried.cheapest = least([](const LayoutPoint& point) { return by_cost(point); });
  tried.fastest = least([](const LayoutPoint& point) { return by_time(point); });
}

/// Fills the search, on so many accelerators, but for what is chosen; the frontier is empty if no layout serves.
/// @return [layout]
std::vector<SearchedLayout> priced_layouts(const std::optional<Acceptance>& acceptance, const Cost& cost,
                                           const CapacityQuestion& question, std::int64_t gpus, LayoutSearch& search) {
  require_searchable(cost, question);
  search.gpus = gpus;
  const auto largest = std::min(gpus, static_cast<std::int64_t>(capacity_ranges.gpus.hi));
  for (const Layout& layout : layouts_within(largest, *cost.roofline, cost.words->options))
    search.layouts.push_back({layout, {}, {}, {}});
  if (search.layouts.empty())
    throw QuestionError(fmt::format("--gpus is {}, but no layout that is asked for has so few", gpus));
  std::vector<SearchedLayout> layouts(search.layouts.size());
  core::for_each_index(static_cast<std::int64_t>(layouts.size()), question.threads, [&](std::int64_t i, std::int64_t) {
    const auto place = static_cast<std::size_t>(i);
    layouts[place] = over_batches_of(acceptance, cost, question, gpus, search.layouts[place]);
    take_points(place, layouts[place], search);
  });
  search.frontier = frontier_of(layouts);
  return layouts;
}

void require_serving(const LayoutSearch& search) {
  if (search.is_within_limits || !search.frontier.empty()) return;
  throw QuestionError(fmt::format("--gpus is {}, but no layout serves; {}: {}", search.gpus,
                                  text_of(search.layouts.back().layout), search.layouts.back().refusal));
}

/// Chooses a layout of those priced. @return as LayoutSimulation::run
std::optional<std::int64_t> choose(const CapacityQuestion& question, const std::vector<SearchedLayout>& layouts,
                                   const core::RunHooks& hooks, LayoutSearch& search) {
  if (!search.frontier.empty()) search.chosen = likeliest_layout(question, search);
  return LayoutSimulation(layouts, search, hooks).run();
}

/// The same choice among the layouts that have no more accelerators than these, which are priced on so many.
LayoutSearch narrowed(std::int64_t gpus, const LayoutSearch& search, std::vector<SearchedLayout> layouts) {
  LayoutSearch kept;
  kept.gpus = gpus;
  std::vector<SearchedLayout> kept_layouts;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    const TriedLayout& tried = search.layouts[i];
    if (tried.layout.accelerators() > gpus) continue;
    const std::size_t place = kept.layouts.size();
    if (i == search.chosen) kept.chosen = place;
    if (i == search.plain) kept.plain = place;
    kept.layouts.push_back({tried.layout, tried.refusal, {}, {}, tried.simulated});
    kept_layouts.push_back(std::move(layouts[i]));
    take_points(place, kept_layouts.back(), kept);
    // It was simulated on as many, whatever formulas say.
    if (i == search.chosen || i == search.plain) kept.layouts.back().refusal.clear();
  }
  kept.frontier = frontier_of(kept_layouts);
  return kept;
}

/// Takes as many accelerators as the load needs at least. Where no number of them keeps the limits, and those given
/// are too few by the formulas: as many as these say of the likeliest layout.
void search_without_bound(const std::optional<Acceptance>& acceptance, const Cost& cost,
                          const CapacityQuestion& question, const core::RunHooks& hooks, LayoutSearch& search) {
  LayoutSearch wide;
  std::vector<SearchedLayout> layouts = priced_layouts(acceptance, cost, question, no_bound, wide);
  std::optional<std::int64_t> needed = choose(question, layouts, hooks, wide);
  if (!needed && search.frontier.empty() && !wide.frontier.empty()) {
    const TriedLayout& likeliest = wide.layouts[wide.chosen];
    needed = likeliest.cheapest->replicas * likeliest.layout.accelerators();
  }
  if (!needed) return;
  const std::int64_t given = question.gpus.value_or(*needed);
  search = narrowed(std::max(*needed, given), wide, std::move(layouts));
  // Where the formulas err by more than is allowed for.
  search.is_within_limits = *needed <= given;
}

/// The layout in which plain decoding takes the load on the fewest accelerators, however many.
std::optional<Layout> plain_without_bound(const Cost& cost, const CapacityQuestion& question,
                                          const core::RunHooks& hooks) {
  const CapacityQuestion plain = without_drafts(question);
  LayoutSearch wide;
  const std::vector<SearchedLayout> layouts = priced_layouts({}, cost, plain, no_bound, wide);
  if (!choose(plain, layouts, hooks, wide)) return std::nullopt;
  return wide.layouts[wide.chosen].layout;
}

}  // namespace

CapacityQuestion without_drafts(CapacityQuestion question) {
  question.gamma = std::vector<std::int64_t>{};
  question.schedule.clear();
  question.verification_budget = false;
  question.alpha_spread.reset();
  return question;
}

LayoutSearch search_layouts(const std::optional<Acceptance>& acceptance, const Cost& cost,
                            const CapacityQuestion& question, const core::RunHooks& hooks) {
  LayoutSearch search;
  if (question.gpus) {
    const std::vector<SearchedLayout> layouts = priced_layouts(acceptance, cost, question, *question.gpus, search);
    choose(question, layouts, hooks, search);
  }
  const bool asks_for_load = question.arrival_rate || question.workload.requests_per_second;
  if (asks_for_load && !search.is_within_limits) search_without_bound(acceptance, cost, question, hooks, search);
  if (asks_for_load && search.is_within_limits && !search.plain)
    search.plain_beyond = plain_without_bound(cost, question, hooks);
  if (question.gpus) require_serving(search);
  return search;
}

}  // namespace specdec::planner
