#include "sim/serving/capacity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "sim/serving/load_search.hpp"
#include "sim/serving/simulated_workload.hpp"

namespace specdec::sim {
namespace {

constexpr std::string_view function = "plan_capacity";
using planning::CapacityLimit;

/// Of the saturated rate: a load below this is none.
constexpr double least_load = 1.0 / 1024;
/// Without limits and a load, figures are for this share of the saturated rate.
constexpr double relaxed_load = 0.9;
/// A run that says where to look has this share of the requests.
constexpr std::int64_t scouts = 8;

void require_positive(std::string_view name, const std::optional<double>& value) {
  if (value) core::require_in(function, name, *value, std::numeric_limits<double>::min(), 1e12);
}

void require_law(std::string_view name, const LengthLaw& law) {
  core::require_in(function, fmt::format("mean of {}", name), law.mean, 1, 1e7);
  core::require_in(function, fmt::format("variation of {}", name), law.variation, 0, 10);
  if (law.at_most) core::require_in(function, fmt::format("at_most of {}", name), *law.at_most, 1, 1 << 30);
}

void require_workload(const Workload& workload) {
  require_positive("requests_per_second", workload.requests_per_second);
  core::require_in(function, "requests", workload.requests, std::int64_t{100}, std::int64_t{1'000'000});
  if (workload.recorded.empty()) {
    require_law("prompt_tokens", workload.prompt_tokens);
    require_law("output_tokens", workload.output_tokens);
    return;
  }
  const std::vector<SimulatedRequest>& recorded = workload.recorded;
  core::require_in(function, "recorded requests", static_cast<std::int64_t>(recorded.size()), std::int64_t{2},
                   std::numeric_limits<std::int64_t>::max());
  if (!(recorded.back().arrival_seconds > recorded.front().arrival_seconds)) {
    throw std::invalid_argument(
        "plan_capacity: recorded requests all arrive at one time, which gives no gaps to scale");
  }
}

void require_legal(const CapacityQuestion& question) {
  require_workload(question.workload);
  if (!question.cost) throw std::invalid_argument("plan_capacity: cost is null");
  if (question.scenarios.empty())
    throw std::invalid_argument("plan_capacity: scenarios are none, but must be one or more");
  require_positive("ttft_seconds", question.limits.ttft_seconds);
  require_positive("tpot_seconds", question.limits.tpot_seconds);
  require_positive("price_per_gpu_hour", question.price_per_gpu_hour);
  require_positive("watts_per_gpu", question.watts_per_gpu);
  core::require_in(function, "percentile", question.limits.percentile, std::nextafter(0.0, 1.0),
                   std::nextafter(100.0, 0.0));
  core::require_in(function, "gpus_per_replica", question.gpus_per_replica, std::int64_t{1}, std::int64_t{1} << 20U);
  if (question.replicas)
    core::require_in(function, "replicas", *question.replicas, std::int64_t{1}, std::int64_t{1} << 30U);
  core::require_in(function, "replications", question.replications, std::int64_t{2}, std::int64_t{1000});
  core::require_in(function, "threads", question.threads, std::int64_t{1}, std::int64_t{1024});
}

SimulatedValue mean_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  const double half =
      boost::math::quantile(boost::math::students_t(count - 1), 0.975) * std::sqrt(squares / (count - 1) / count);
  return {mean, std::max(0.0, mean - half), mean + half};
}

/// The smallest value with at least this percentage at or below it; reorders the values.
double percentile_of(std::vector<double>& values, double percent) {
  const double rank = std::ceil(percent / 100 * static_cast<double>(values.size()) * (1 - 1e-12));
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(std::max(1.0, rank)) - 1;
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

/// How far a run is from its limits.
struct JudgedRun {
  /// ln(value / limit), the larger one; lowest where nothing is limited.
  double excess = -20;
  CapacityLimit by = CapacityLimit::none;
};

JudgedRun judge(const ServingResult& run, const CapacityLimits& limits) {
  JudgedRun judged;
  std::vector<double> values;
  const auto judge_one = [&](double limit, CapacityLimit by) {
    if (values.empty()) return;
    const double value = percentile_of(values, limits.percentile);
    const double excess = value > 0 ? std::max(-20.0, std::log(value / limit)) : -20;
    if (judged.by == CapacityLimit::none || excess > judged.excess) judged = {excess, by};
  };
  const std::size_t end = run.first_counted + run.counted_requests;
  if (limits.ttft_seconds) {
    for (std::size_t i = run.first_counted; i < end; ++i) values.push_back(run.requests[i].first_token_seconds);
    judge_one(*limits.ttft_seconds, CapacityLimit::ttft);
  }
  if (limits.tpot_seconds) {
    values.clear();
    for (std::size_t i = run.first_counted; i < end; ++i) {
      const ServedRequest& request = run.requests[i];
      if (request.output_tokens < 2) continue;
      values.push_back((request.last_token_seconds - request.first_token_seconds) /
                       static_cast<double>(request.output_tokens - 1));
    }
    judge_one(*limits.tpot_seconds, CapacityLimit::tpot);
  }
  return judged;
}

/// What one replication says of a scenario.
struct FoundLoad {
  double saturated = 0;
  /// 0 where none meets the limits.
  double sustainable = 0;
  double slope = 1;
  /// `none` where the queue is what holds it back.
  CapacityLimit by = CapacityLimit::none;
};

/// A replication's figures at one load.
struct RunFigures {
  std::optional<RequestPercentiles> ttft, tpot;
  double mean_batch = 0;
  double output_tokens_per_second = 0;
  double preemptions_per_request = 0;
};

/// A scenario with what the formulas say of it.
struct PlannedScenario {
  const CapacityScenario* scenario;
  planning::OfferedLoad load;
  planning::ReplicaLimits limits;
  std::vector<planning::RoundsFrom> rounds;
  /// Nothing where the formulas do not apply.
  std::optional<planning::SustainableLoad> saturation;
};

class CapacityPlanner {
 public:
  explicit CapacityPlanner(const CapacityQuestion& question) : question_(question) {
    const Workload& workload = question.workload;
    std::int64_t longest = workload.requests;
    requests_.resize(static_cast<std::size_t>(question.replications));
    make_requests(longest);
    std::vector<SimulatedRequest> all;
    for (const auto& requests : requests_) all.insert(all.end(), requests.begin(), requests.end());
    double outputs = 0;
    for (const SimulatedRequest& request : all) outputs += static_cast<double>(request.output_tokens);
    output_tokens_ = outputs / static_cast<double>(all.size());
    const RoundsToCover rounds(all);
    for (const CapacityScenario& scenario : question.scenarios) {
      scenarios_.push_back(planned(scenario, all, rounds));
      longest = std::max(longest, requests_to_saturate(scenarios_.back()));
    }
    if (longest > workload.requests) make_requests(longest);
  }

  CapacityAnswer answer() {
    const auto scenarios = static_cast<std::int64_t>(scenarios_.size());
    const std::int64_t replications = question_.replications;
    // The first replication shows the others where to look.
    std::vector<std::vector<FoundLoad>> found(scenarios_.size(),
                                              std::vector<FoundLoad>(static_cast<std::size_t>(replications)));
    core::for_each_index(scenarios, question_.threads, [&](std::int64_t index, std::int64_t) {
      const auto s = static_cast<std::size_t>(index);
      found[s][0] = find_load(scenarios_[s], 0, std::nullopt);
    });
    core::for_each_index(scenarios * (replications - 1), question_.threads, [&](std::int64_t index, std::int64_t) {
      const auto s = static_cast<std::size_t>(index / (replications - 1));
      const std::int64_t r = 1 + index % (replications - 1);
      found[s][static_cast<std::size_t>(r)] = find_load(scenarios_[s], r, found[s][0]);
    });

    CapacityAnswer answer;
    for (std::size_t s = 0; s < scenarios_.size(); ++s) answer.scenarios.push_back(capacity(scenarios_[s], found[s]));

    std::vector<std::vector<RunFigures>> figures(scenarios_.size(),
                                                 std::vector<RunFigures>(static_cast<std::size_t>(replications)));
    core::for_each_index(scenarios * replications, question_.threads, [&](std::int64_t index, std::int64_t) {
      const auto s = static_cast<std::size_t>(index / replications);
      const double at = answer.scenarios[s].at_requests_per_second;
      if (at > 0)
        figures[s][static_cast<std::size_t>(index % replications)] =
            figures_at(scenarios_[s], index % replications, at);
    });
    for (std::size_t s = 0; s < scenarios_.size(); ++s) fill_figures(scenarios_[s], figures[s], answer.scenarios[s]);
    compare(answer);
    return answer;
  }

 private:
  void make_requests(std::int64_t count) {
    for (std::int64_t r = 0; r < question_.replications; ++r) {
      requests_[static_cast<std::size_t>(r)] =
          requests_at_unit_rate(question_.workload, question_.seed, r, question_.replications, count);
    }
  }

  PlannedScenario planned(const CapacityScenario& scenario, const std::vector<SimulatedRequest>& all,
                          const RoundsToCover& rounds) const {
    PlannedScenario result;
    result.scenario = &scenario;
    const ServingEngine& engine = scenario.engine;
    result.load = offered_load(all, engine);
    result.limits.max_num_seqs = std::min(engine.max_num_seqs, std::int64_t{1} << 20U);
    result.limits.max_num_batched_tokens = std::min(engine.max_num_batched_tokens, std::int64_t{1} << 31U);
    // The last block of a sequence is half empty.
    const double context = result.load.mean_context;
    const double slack = 0.5 * static_cast<double>(engine.block_size - 1);
    result.limits.cache_tokens =
        static_cast<double>(engine.cache_blocks) * static_cast<double>(engine.block_size) * context / (context + slack);
    for (const GammaFrom& stretch : engine.schedule) {
      if (stretch.gamma > 0 && question_.acceptance.empty()) {
        throw std::invalid_argument(
            fmt::format("plan_capacity: acceptance is empty, but scenario '{}' drafts", scenario.name));
      }
      result.rounds.push_back(rounds.rounds(question_.acceptance, stretch.batch_low, stretch.gamma));
    }
    if (result.load.output_tokens > 1)
      result.saturation =
          planning::sustainable_load(*question_.cost, result.load, result.limits, result.rounds, std::nullopt);
    return result;
  }

  /// Enough for a few generations of the largest batch and a hundred iterations, as far as that is not out of all
  /// proportion.
  std::int64_t requests_to_saturate(const PlannedScenario& planned) const {
    const std::int64_t asked = question_.workload.requests;
    if (!planned.saturation) return asked;
    const planning::SteadyState& full = planned.saturation->state;
    const double wanted =
        std::max(8 * full.largest_batch, 100 * planned.saturation->requests_per_second * full.iteration_seconds);
    return std::max(asked, static_cast<std::int64_t>(std::min(wanted, 4 * static_cast<double>(asked))));
  }

  ServingResult serve(const PlannedScenario& planned, std::int64_t replication, double requests_per_second,
                      std::int64_t count, double warm_up_share) const {
    const auto& unit = requests_[static_cast<std::size_t>(replication)];
    ServingQuestion serving;
    serving.requests.assign(unit.begin(), unit.begin() + static_cast<std::ptrdiff_t>(count));
    for (SimulatedRequest& request : serving.requests) request.arrival_seconds /= requests_per_second;
    serving.engine = planned.scenario->engine;
    serving.cost = question_.cost;
    serving.acceptance = question_.acceptance;
    serving.seed = seed_of_replication(question_.seed, replication);
    serving.warm_up_share = warm_up_share;
    return simulate_serving(serving);
  }

  /// Requests served per second while there are always some that wait.
  double saturated_rate(const PlannedScenario& planned, std::int64_t replication) const {
    const std::int64_t count = requests_to_saturate(planned);
    // A little more than the replica takes, so that its batch is made of requests of all ages; all at once where
    // nothing decodes.
    double offered =
        planned.saturation ? 1.5 * planned.saturation->requests_per_second : std::numeric_limits<double>::infinity();
    for (;;) {
      const ServingResult run = serve(planned, replication, offered, count, 0.3);
      const double rate = run.output_tokens_per_second / mean_output(replication, count);
      if (!planned.saturation || rate < 0.9 * offered) return rate;
      offered *= 2;
    }
  }

  double mean_output(std::int64_t replication, std::int64_t count) const {
    const auto& unit = requests_[static_cast<std::size_t>(replication)];
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i)
      sum += static_cast<double>(unit[static_cast<std::size_t>(i)].output_tokens);
    return sum / static_cast<double>(count);
  }

  FoundLoad find_load(const PlannedScenario& planned, std::int64_t replication,
                      const std::optional<FoundLoad>& shown) const {
    FoundLoad found;
    found.saturated = saturated_rate(planned, replication);
    if (!question_.limits.ttft_seconds && !question_.limits.tpot_seconds) {
      found.sustainable = found.saturated;
      return found;
    }
    LoadSearch search;
    search.lowest = least_load * found.saturated;
    search.highest = found.saturated;
    search.guess = {0.8 * found.saturated, 4};
    const auto search_with = [&](std::int64_t requests) {
      return find_crossing(search, [&](double load) {
        const JudgedRun judged = judge(serve(planned, replication, load, requests, 0.1), question_.limits);
        if (judged.excess > 0 || found.by == CapacityLimit::none) found.by = judged.by;
        return judged.excess;
      });
    };
    if (shown) {
      search.guess = {shown->sustainable > 0 ? shown->sustainable : search.lowest, shown->slope};
    } else {
      search.tolerance = 0.1;
      const auto scouted = search_with(std::max<std::int64_t>(100, question_.workload.requests / scouts));
      search.guess = scouted.value_or(LoadCrossing{search.lowest, 1});
    }
    search.tolerance = 0.01;
    found.by = CapacityLimit::none;
    const auto crossing = search_with(question_.workload.requests);
    if (!crossing) return found;
    found.sustainable = crossing->load;
    found.slope = crossing->slope;
    if (crossing->load >= search.highest) found.by = CapacityLimit::none;
    return found;
  }

  ScenarioCapacity capacity(const PlannedScenario& planned, const std::vector<FoundLoad>& found) const {
    ScenarioCapacity result;
    result.scenario = *planned.scenario;
    std::vector<double> sustainable, saturated;
    for (const FoundLoad& one : found) {
      sustainable.push_back(one.sustainable);
      saturated.push_back(one.saturated);
    }
    result.requests_per_second_per_replica = mean_of(sustainable);
    result.saturated_requests_per_second_per_replica = mean_of(saturated);
    result.limited_by = most_frequent_limit(found);
    if (result.limited_by == CapacityLimit::none) {
      result.limited_by = planned.saturation ? planned.saturation->limited_by : CapacityLimit::compute;
    }
    const double most = result.requests_per_second_per_replica.value;
    if (most <= 0) return result;

    const std::optional<double> asked = question_.workload.requests_per_second;
    std::int64_t replicas = question_.replicas.value_or(1);
    if (asked && !question_.replicas) replicas = static_cast<std::int64_t>(std::ceil(*asked / most * (1 - 1e-12)));
    result.replicas = replicas;
    result.gpus = replicas * question_.gpus_per_replica;
    const double share = asked ? *asked / static_cast<double>(replicas) : 0;
    result.meets_load = share <= most * (1 + 1e-12);
    const bool limited = question_.limits.ttft_seconds || question_.limits.tpot_seconds;
    result.at_requests_per_second = asked && result.meets_load ? share : limited ? most : relaxed_load * most;
    const double seconds_per_token = gpu_seconds_per_token(result);
    if (question_.price_per_gpu_hour)
      result.cost_per_million_tokens = *question_.price_per_gpu_hour / 3600 * seconds_per_token * 1e6;
    if (question_.watts_per_gpu) result.joules_per_token = *question_.watts_per_gpu * seconds_per_token;
    return result;
  }

  double gpu_seconds_per_token(const ScenarioCapacity& capacity) const {
    return static_cast<double>(question_.gpus_per_replica) / (capacity.at_requests_per_second * output_tokens_);
  }

  static CapacityLimit most_frequent_limit(const std::vector<FoundLoad>& found) {
    CapacityLimit most = found.front().by;
    std::ptrdiff_t most_often = 0;
    for (const CapacityLimit limit : {CapacityLimit::none, CapacityLimit::ttft, CapacityLimit::tpot}) {
      const auto often = std::count_if(found.begin(), found.end(), [&](const FoundLoad& f) { return f.by == limit; });
      if (often > most_often) {
        most = limit;
        most_often = often;
      }
    }
    return most;
  }

  RunFigures figures_at(const PlannedScenario& planned, std::int64_t replication, double load) const {
    const ServingResult run = serve(planned, replication, load, question_.workload.requests, 0.1);
    RunFigures figures;
    figures.ttft = run.ttft_seconds;
    figures.tpot = run.tpot_seconds;
    figures.mean_batch = run.mean_batch;
    figures.output_tokens_per_second = run.output_tokens_per_second;
    figures.preemptions_per_request = static_cast<double>(run.preemptions) / static_cast<double>(run.requests.size());
    return figures;
  }

  void fill_figures(const PlannedScenario& planned, const std::vector<RunFigures>& figures,
                    ScenarioCapacity& result) const {
    if (result.at_requests_per_second <= 0) return;
    const auto over_runs = [&](const auto& value_of) {
      std::vector<double> values;
      for (const RunFigures& run : figures) values.push_back(value_of(run));
      return mean_of(values);
    };
    const auto percentiles = [&](std::optional<RequestPercentiles> RunFigures::*of) {
      std::optional<SimulatedPercentiles> found;
      if (!std::all_of(figures.begin(), figures.end(), [&](const RunFigures& run) { return (run.*of).has_value(); }))
        return found;
      const auto value = [&](double RequestPercentiles::*place) {
        return over_runs([&](const RunFigures& run) { return (*(run.*of)).*place; });
      };
      found = SimulatedPercentiles{value(&RequestPercentiles::p50), value(&RequestPercentiles::p90),
                                   value(&RequestPercentiles::p99), value(&RequestPercentiles::mean)};
      return found;
    };
    result.ttft_seconds = percentiles(&RunFigures::ttft);
    result.tpot_seconds = percentiles(&RunFigures::tpot);
    result.mean_batch = over_runs([](const RunFigures& run) { return run.mean_batch; });
    result.output_tokens_per_second_per_replica =
        over_runs([](const RunFigures& run) { return run.output_tokens_per_second; });
    result.preemptions_per_request = over_runs([](const RunFigures& run) { return run.preemptions_per_request; }).value;
    if (!planned.saturation) return;
    planning::OfferedLoad load = planned.load;
    load.requests_per_second = result.at_requests_per_second;
    result.steady = planning::steady_state(*question_.cost, load, planned.limits, planned.rounds);
    if (result.steady && result.tpot_seconds)
      result.engines_relative_difference = result.steady->tpot_seconds / result.tpot_seconds->mean.value - 1;
  }

  void compare(CapacityAnswer& answer) const {
    std::vector<std::size_t> order;
    for (std::size_t s = 0; s < answer.scenarios.size(); ++s) {
      if (answer.scenarios[s].meets_load) order.push_back(s);
    }
    const auto seconds = [&](std::size_t s) { return gpu_seconds_per_token(answer.scenarios[s]); };
    const auto median = [&](std::size_t s) {
      const auto& tpot = answer.scenarios[s].tpot_seconds;
      return tpot ? tpot->p50.value : 0;
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(seconds(a), median(a)) < std::pair(seconds(b), median(b));
    });
    if (!order.empty()) answer.recommended = order.front();
    for (const std::size_t s : order) {
      if (answer.frontier.empty() || median(s) < median(answer.frontier.back())) answer.frontier.push_back(s);
    }
  }

  const CapacityQuestion& question_;
  /// [replication][request], one per second
  std::vector<std::vector<SimulatedRequest>> requests_;
  double output_tokens_ = 1;
  std::vector<PlannedScenario> scenarios_;
};

}  // namespace

CapacityAnswer plan_capacity(const CapacityQuestion& question) {
  require_legal(question);
  return CapacityPlanner(question).answer();
}

}  // namespace specdec::sim
