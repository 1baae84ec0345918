#include "sim/serving/capacity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "sim/serving/capacity_runs.hpp"
#include "sim/serving/load_search.hpp"
#include "sim/serving/request_percentiles.hpp"
#include "sim/serving/serving_run.hpp"
#include "sim/serving/simulated_workload.hpp"

namespace specdec::sim {
namespace {

constexpr std::string_view capacity_function = "plan_capacity";
using planning::CapacityLimit;

/// Share of the saturated rate below which a load counts as zero.
constexpr double least_load = 1.0 / 1024;
/// Without limits and a load, figures are for this share of the saturated rate.
constexpr double relaxed_load = 0.9;
/// Sequences that decode on average fill up while so many times as many requests arrive, which are not counted; a run
/// has so many times as many, up to a number, where nobody says how many.
constexpr double warm_up_per_sequence = 1.5;
constexpr double requests_per_sequence = 10;
constexpr std::int64_t most_requests = 8000;
/// Of ln(load), beside ln(time per output token), in the scale of a search.
constexpr double weight_of_load = 0.1;
/// A percentile of the time per output token / its mean, before a run has told.
constexpr double usual_percentile = 1.25;
/// Requests that arrive in this share of a run, at either end, are not counted.
constexpr double warm_up = 0.1;
/// At most this share is left out at either end.
constexpr double most_warm_up = 0.4;
/// Requests that benchmark clients send for each one that they keep in flight.
constexpr std::int64_t requests_per_client = 10;
/// Ratio of the loads between which the slope of an excess is computed.
constexpr double slope_span = 1.05;

void require_positive(std::string_view name, const std::optional<double>& value) {
  if (value) core::require_in(capacity_function, name, *value, std::numeric_limits<double>::min(), 1e12);
}

void require_law(std::string_view name, const LengthLaw& law) {
  core::require_in(capacity_function, fmt::format("mean of {}", name), law.mean, 1, 1e7);
  core::require_in(capacity_function, fmt::format("variation of {}", name), law.variation, 0, 10);
  if (law.at_most) core::require_in(capacity_function, fmt::format("at_most of {}", name), *law.at_most, 1, 1 << 30);
}

void require_workload(const Workload& workload) {
  require_positive("requests_per_second", workload.requests_per_second);
  if (workload.clients) {
    core::require_in(capacity_function, "clients", *workload.clients, std::int64_t{1}, std::int64_t{1} << 30U);
    if (workload.requests_per_second)
      throw std::invalid_argument("plan_capacity: clients are given beside requests_per_second, but must be alone");
  }
  core::require_in(capacity_function, "outside_seconds", workload.outside_seconds, 0, 1e12);
  core::require_in(capacity_function, "requests", workload.open_requests(), std::int64_t{100}, std::int64_t{1'000'000});
  if (workload.recorded.empty()) {
    require_law("prompt_tokens", workload.prompt_tokens);
    require_law("output_tokens", workload.output_tokens);
    return;
  }
  const std::vector<SimulatedRequest>& recorded = workload.recorded;
  core::require_in(capacity_function, "recorded requests", static_cast<std::int64_t>(recorded.size()), std::int64_t{2},
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
  core::require_in(capacity_function, "percentile", question.limits.percentile, std::nextafter(0.0, 1.0),
                   std::nextafter(100.0, 0.0));
  core::require_in(capacity_function, "gpus_per_replica", question.gpus_per_replica, std::int64_t{1},
                   std::int64_t{1} << 20U);
  if (question.replicas)
    core::require_in(capacity_function, "replicas", *question.replicas, std::int64_t{1}, std::int64_t{1} << 30U);
  core::require_in(capacity_function, "prefer_measured", question.prefer_measured, 0.0, 1 - 1e-9);
  core::require_in(capacity_function, "replications", question.replications, std::int64_t{2}, std::int64_t{1000});
  core::require_in(capacity_function, "threads", question.threads, std::int64_t{1}, std::int64_t{1024});
}

/// 0.975 quantile of Student's t times the standard error of a mean, from the values' deviations from it.
double half_width_of(const std::vector<double>& deviations) {
  const auto count = static_cast<double>(deviations.size());
  double squares = 0;
  for (const double deviation : deviations) squares += deviation * deviation;
  return boost::math::quantile(boost::math::students_t(count - 1), 0.975) * std::sqrt(squares / (count - 1) / count);
}

/// A value over all runs together, with an interval from the runs' own values (sectioning).
SimulatedValue sectioned(double value, std::vector<double> of_runs) {
  for (double& of_run : of_runs) of_run -= value;
  const double half = half_width_of(of_runs);
  return {value, std::max(0.0, value - half), value + half};
}

SimulatedValue mean_of(const std::vector<double>& values) {
  return sectioned(std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()), values);
}

/// The values of all runs.
std::vector<double> pooled(const std::vector<std::vector<double>>& of_runs) {
  std::vector<double> all;
  for (const std::vector<double>& of_run : of_runs) all.insert(all.end(), of_run.begin(), of_run.end());
  return all;
}

/// The distance of requests from their limits.
struct JudgedRequests {
  /// ln(value / limit), the larger of the two; lowest if nothing is limited.
  double excess = -20;
  CapacityLimit by = CapacityLimit::none;
};

/// Reorders the values.
JudgedRequests judge(std::vector<double>& ttft, std::vector<double>& tpot, const CapacityLimits& limits) {
  JudgedRequests judged;
  const auto judge_one = [&](std::vector<double>& values, const std::optional<double>& limit, CapacityLimit by) {
    if (!limit || values.empty()) return;
    const double value = percentile_of(values, limits.percentile);
    const double excess = value > 0 ? std::max(-20.0, std::log(value / *limit)) : -20;
    if (judged.by == CapacityLimit::none || excess > judged.excess) judged = {excess, by};
  };
  judge_one(ttft, limits.ttft_seconds, CapacityLimit::ttft);
  judge_one(tpot, limits.tpot_seconds, CapacityLimit::tpot);
  return judged;
}

/// A load at which all replications were run.
struct JudgedLoad {
  JudgedRequests together;
  /// [replication]
  std::vector<JudgedRequests> each;
};

/// The sustainable load of a scenario.
struct FoundLoad {
  SimulatedValue load;
  /// `none` if the queue is the limiting factor.
  CapacityLimit by = CapacityLimit::none;
  std::optional<RateSearchEnd> end = {};
};

/// A replication's figures at one load.
struct RunFigures {
  std::vector<double> ttft, tpot;
  /// Over all requests.
  double mean_ttft = 0;
  std::vector<GapCount> gaps;
  double requests_per_second = 0;
  double mean_batch = 0;
  double output_tokens_per_second = 0;
  double preemptions_per_request = 0;
};

double mean_first_token_seconds(const ServingResult& run) {
  double sum = 0;
  for (const ServedRequest& request : run.requests) sum += request.first_token_seconds;
  return sum / static_cast<double>(run.requests.size());
}

/// Ends the simulations of a scenario that is not finished.
struct Interrupted : std::exception {};

/// A scenario with the predictions of the formulas.
struct PlannedScenario : ScenarioFormulas {
  const CapacityScenario* scenario = nullptr;
  LoadScale scale = {};
  /// [replication]: of its requests; empty before it is simulated.
  std::vector<std::shared_ptr<RequestRounds>> request_rounds = {};
};

class CapacityPlanner {
 public:
  /// @param like  of the only scenario under another cost or acceptance: where to look first; may be null
  CapacityPlanner(const CapacityQuestion& question, const core::RunHooks& hooks, RequestSets& requests,
                  const ScenarioCapacity* like)
      : question_(question), hooks_(hooks), requests_(requests), like_(like) {
    const Workload& workload = question.workload;
    requests_.extend_to(workload.open_requests());
    const std::vector<SimulatedRequest> all = counted_requests();
    double outputs = 0;
    for (const SimulatedRequest& request : all) outputs += static_cast<double>(request.output_tokens);
    output_tokens_ = outputs / static_cast<double>(all.size());
    const bool drafts = !question.acceptance.empty();
    const RoundsToCover rounds(all, drafts ? contexts_of(question.acceptance.front()) : std::vector<std::int64_t>());
    std::int64_t longest = workload.clients ? requests_of(*workload.clients) : 0;
    for (const CapacityScenario& scenario : question.scenarios) {
      scenarios_.push_back(planned(scenario, all, rounds));
      longest = std::max({longest, requests_to_saturate(scenarios_.back()), most_requests_of(scenarios_.back())});
    }
    requests_.extend_to(longest);
  }

  /// [load]
  std::vector<ReplicaAtLoad> first_scenario_at(std::span<const double> loads) const {
    std::vector<ReplicaAtLoad> found;
    const PlannedScenario planned = with_rounds(scenarios_.front());
    for (const double load : loads) found.push_back(replica_at(planned, {load}));
    return found;
  }

  std::vector<ScenarioFormulas> formulas() const { return {scenarios_.begin(), scenarios_.end()}; }

  CapacityAnswer answer() const {
    CapacityAnswer answer;
    try {
      for (const PlannedScenario& planned : scenarios_) {
        answer.scenarios.push_back(simulated(with_rounds(planned)));
        hooks_.tell(static_cast<double>(answer.scenarios.size()) / static_cast<double>(scenarios_.size()));
      }
    } catch (const Interrupted&) {
      answer.interrupted = true;
    }
    compare(answer);
    return answer;
  }

 private:
  ScenarioCapacity simulated(const PlannedScenario& planned) const {
    const SimulatedValue saturated =
        mean_of(of_replications<double>([&](std::int64_t r) { return saturated_rate(planned, r); }));
    return question_.workload.clients ? closed_capacity(planned, saturated)
                                      : capacity(planned, saturated, find_load(planned, saturated));
  }

  /// The first ones of every replication, whose statistics the formulas are given.
  std::vector<SimulatedRequest> counted_requests() const {
    std::vector<SimulatedRequest> all;
    for (std::size_t r = 0; r < requests_.replications(); ++r) {
      const auto& requests = requests_.requests(r);
      all.insert(all.end(), requests.begin(), requests.begin() + question_.workload.open_requests());
    }
    return all;
  }

  PlannedScenario with_rounds(PlannedScenario planned) const {
    for (std::size_t r = 0; r < requests_.replications(); ++r) {
      planned.request_rounds.push_back(
          std::make_shared<RequestRounds>(requests_.rounds(r, question_.acceptance, planned.scenario->engine)));
    }
    return planned;
  }

  /// [replication]
  template <class Value>
  std::vector<Value> of_replications(const std::function<Value(std::int64_t replication)>& value_of) const {
    std::vector<Value> values(static_cast<std::size_t>(question_.replications));
    core::for_each_index(question_.replications, question_.threads, [&](std::int64_t index, std::int64_t) {
      values[static_cast<std::size_t>(index)] = value_of(index);
    });
    return values;
  }

  PlannedScenario planned(const CapacityScenario& scenario, const std::vector<SimulatedRequest>& all,
                          const RoundsToCover& rounds) const {
    PlannedScenario result;
    result.scenario = &scenario;
    const ServingEngine& engine = scenario.engine;
    result.load = offered_load(all, engine);
    result.limits.max_num_seqs = std::min(engine.max_num_seqs, std::int64_t{1} << 20U);
    result.limits.max_num_batched_tokens = std::min(engine.max_num_batched_tokens, std::int64_t{1} << 31U);
    result.limits.prefill_first = engine.prefill_first;
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
    result.scale = load_scale(result);
    return result;
  }

  /// Of a run at any load.
  std::int64_t most_requests_of(const PlannedScenario& planned) const {
    return planned.saturation ? open_requests(planned.saturation->state.largest_batch) : open_requests(0);
  }

  /// Enough for a few generations of the largest batch and a hundred iterations, as long as that is not
  /// excessive.
  std::int64_t requests_to_saturate(const PlannedScenario& planned) const {
    const std::int64_t asked = question_.workload.open_requests();
    if (!planned.saturation) return asked;
    const planning::SteadyState& full = planned.saturation->state;
    const double wanted =
        std::max(8 * full.largest_batch, 100 * planned.saturation->requests_per_second * full.iteration_seconds);
    return std::max(asked, static_cast<std::int64_t>(std::min(wanted, 4 * static_cast<double>(asked))));
  }

  /// Requests of a run with so many clients.
  std::int64_t requests_of(std::int64_t clients) const {
    return question_.workload.requests.value_or(std::min<std::int64_t>(requests_per_client * clients, 1'000'000));
  }

  /// The requests of a run, and the share of them at either end that is not counted.
  struct RunLength {
    std::int64_t requests = 0;
    double warm_up = 0;
  };

  RunLength run_length(const PlannedScenario& planned, const ReplicaLoad& load) const {
    if (load.clients > 0) {
      // The first request of each, which all come at once, is among those left out; half a request more, since the
      // product is rounded down.
      const auto requests = static_cast<double>(requests_of(load.clients));
      const double first_ones = (static_cast<double>(load.clients) + 0.5) / requests;
      return {requests_of(load.clients), std::clamp(first_ones, warm_up, most_warm_up)};
    }
    const double decoding = decoding_at(planned, load.requests_per_second);
    const std::int64_t requests = open_requests(decoding);
    return {requests,
            std::clamp(warm_up_per_sequence * decoding / static_cast<double>(requests), warm_up, most_warm_up)};
  }

  /// Of a run in which so many sequences decode on average.
  std::int64_t open_requests(double decoding) const {
    const Workload& workload = question_.workload;
    if (workload.requests) return *workload.requests;
    const double wanted = std::min(requests_per_sequence * decoding, static_cast<double>(most_requests));
    return std::max(workload.open_requests(), static_cast<std::int64_t>(wanted));
  }

  /// By Little's law from the formulas' time per output token, 0 where they do not apply.
  static double decoding_at(const PlannedScenario& planned, double requests_per_second) {
    if (!planned.saturation) return 0;
    const double load = std::log(std::min(requests_per_second, planned.saturation->requests_per_second));
    const double log_tpot = planned.scale.value_at(load) - weight_of_load * load;
    const double decoding = std::exp(load + log_tpot) * (planned.load.output_tokens - 1);
    return std::min(decoding, planned.saturation->state.largest_batch);
  }

  ServingResult serve(const PlannedScenario& planned, std::int64_t replication, const ReplicaLoad& load,
                      std::int64_t count, double warm_up_share, bool finds_gaps = false) const {
    if (hooks_.interrupted()) throw Interrupted();
    const auto place = static_cast<std::size_t>(replication);
    const auto& unit = requests_.requests(place);
    ServingQuestion serving;
    serving.requests.assign(unit.begin(), unit.begin() + static_cast<std::ptrdiff_t>(count));
    if (load.clients > 0) {
      serving.clients = load.clients;
    } else {
      for (SimulatedRequest& request : serving.requests) request.arrival_seconds /= load.requests_per_second;
    }
    serving.outside_seconds = question_.workload.outside_seconds;
    serving.engine = planned.scenario->engine;
    serving.cost = question_.cost;
    serving.acceptance = question_.acceptance;
    serving.seed = seed_of_replication(question_.seed, replication);
    serving.warm_up_share = warm_up_share;
    const SharedByRuns shared = {&requests_.draws(place), planned.request_rounds[place].get()};
    return serve_requests(serving, {.finds_gaps = finds_gaps, .shared = shared});
  }

  /// Requests served per second while some are always waiting.
  double saturated_rate(const PlannedScenario& planned, std::int64_t replication) const {
    const std::int64_t count = requests_to_saturate(planned);
    // A little more than the replica can take, so that its batch has requests of all ages; all at once if
    // nothing decodes.
    double offered =
        planned.saturation ? 1.5 * planned.saturation->requests_per_second : std::numeric_limits<double>::infinity();
    for (;;) {
      const ServingResult run = serve(planned, replication, {offered}, count, 0.3);
      const double rate = run.output_tokens_per_second / mean_output(replication, count);
      if (!planned.saturation || rate < 0.9 * offered) return rate;
      offered *= 2;
    }
  }

  double mean_output(std::int64_t replication, std::int64_t count) const {
    const auto& unit = requests_.requests(static_cast<std::size_t>(replication));
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i)
      sum += static_cast<double>(unit[static_cast<std::size_t>(i)].output_tokens);
    return sum / static_cast<double>(count);
  }

  JudgedLoad judged_at(const PlannedScenario& planned, const ReplicaLoad& load) const {
    const RunLength length = run_length(planned, load);
    const std::size_t runs = requests_.replications();
    std::vector<std::vector<double>> ttft(runs), tpot(runs);
    JudgedLoad judged;
    judged.each = of_replications<JudgedRequests>([&](std::int64_t r) {
      const ServingResult run = serve(planned, r, load, length.requests, length.warm_up);
      const auto place = static_cast<std::size_t>(r);
      if (question_.limits.ttft_seconds) ttft[place] = first_token_seconds(run);
      if (question_.limits.tpot_seconds) tpot[place] = seconds_per_token(run);
      return judge(ttft[place], tpot[place], question_.limits);
    });
    std::vector<double> all_ttft = pooled(ttft);
    std::vector<double> all_tpot = pooled(tpot);
    judged.together = judge(all_ttft, all_tpot, question_.limits);
    return judged;
  }

  FoundLoad find_load(const PlannedScenario& planned, const SimulatedValue& saturated) const {
    FoundLoad found;
    found.load = saturated;
    if (!is_limited()) return found;
    LoadSearch search;
    search.lowest = least_load * saturated.value;
    search.highest = saturated.value;
    JudgedLoad last;
    begin_search(planned, saturated.value, search);
    const auto crossing = find_crossing(search, [&](double load) {
      last = judged_at(planned, {load});
      return last.together.excess;
    });
    if (crossing && crossing->load >= search.highest) return found;
    found.by = last.together.by;
    if (!crossing) {
      found.load = {};
      return found;
    }
    found.end = {search.scale.value_at(std::log(crossing->load)), crossing->slope};
    if (question_.finds_rate_intervals) {
      found.load = around(planned, crossing->load, last, saturated);
    } else {
      found.load = {crossing->load, crossing->load, crossing->load};
    }
    return found;
  }

  /// Where the formulas expect the limit on the time per output token, or where a like scenario met its limit.
  void begin_search(const PlannedScenario& planned, double saturated, LoadSearch& search) const {
    search.scale = planned.scale;
    search.guess = {0.8 * saturated, 1};
    if (like_ != nullptr) return begin_search_like(saturated, search);
    if (!question_.limits.tpot_seconds || !planned.saturation) return;
    const double expected =
        std::log(*question_.limits.tpot_seconds / usual_percentile) + weight_of_load * std::log(search.guess.load);
    search.guess.load = std::min(std::exp(search.scale.log_load_at(expected)), 0.9 * saturated);
  }

  void begin_search_like(double saturated, LoadSearch& search) const {
    const double most = like_->requests_per_second_per_replica.value;
    if (!like_->search_end) {
      search.guess.load = most > 0 ? saturated : search.lowest;
      return;
    }
    search.slope_is_known = true;
    search.guess.slope = like_->search_end->slope;
    const double same_share = most / like_->saturated_requests_per_second_per_replica.value * saturated;
    const double same_time = std::exp(search.scale.log_load_at(like_->search_end->expected));
    // At a lower share of what saturates, requests differ less in their times.
    search.guess.load = std::max(same_time, std::sqrt(same_time * same_share));
  }

  /// What the formulas expect of a batch that does not vary; the load counts a little, since there are loads at which
  /// the time per output token hardly changes.
  LoadScale load_scale(const PlannedScenario& planned) const {
    constexpr int points = 32;
    LoadScale scale;
    if (!planned.saturation) return scale;
    const double most = std::log(std::max(1.0, planned.saturation->state.largest_batch));
    const auto add = [&](double load, double tpot) {
      scale.add(load, std::log(tpot) + weight_of_load * std::log(load));
    };
    for (int i = 0; i <= points; ++i) {
      const cost::Iteration iteration = iteration_of(planned, std::exp(most * i / points));
      const double tokens = rounds_at(planned, iteration.sequences).tokens_per_step;
      const double seconds = question_.cost->seconds(iteration);
      const double load = iteration.sequences * tokens / ((planned.load.output_tokens - 1) * seconds);
      if (i == 0) add(least_load * load, seconds / tokens);
      add(load, seconds / tokens);
    }
    return scale;
  }

  bool is_limited() const { return question_.limits.ttft_seconds || question_.limits.tpot_seconds; }

  /// Clients of one replica.
  struct FoundClients {
    /// The most within the limits, up to all; 0 if not even one is.
    std::int64_t most = 0;
    CapacityLimit by = CapacityLimit::none;
  };

  FoundClients find_clients(const PlannedScenario& planned) const {
    const std::int64_t all = *question_.workload.clients;
    if (!is_limited()) return {all, CapacityLimit::none};
    FoundClients found;
    std::int64_t too_many = all + 1, at = likely_clients(planned);
    for (std::int64_t step = std::max<std::int64_t>(1, at / 16); too_many - found.most > 1; step *= 2) {
      const JudgedRequests here = judged_at(planned, {.clients = at}).together;
      if (here.excess <= 0) {
        found.most = at;
      } else {
        too_many = at;
        found.by = here.by;
      }
      at = too_many > all    ? std::min(all, found.most + step)
           : found.most == 0 ? std::max<std::int64_t>(1, too_many - step)
                             : found.most + (too_many - found.most) / 2;
    }
    return found;
  }

  /// Those of a like scenario, else those that the formulas expect within the limit on the time per output token, else
  /// all.
  std::int64_t likely_clients(const PlannedScenario& planned) const {
    const std::int64_t all = *question_.workload.clients;
    if (like_ != nullptr) return std::clamp<std::int64_t>(like_->clients_within_limits, 1, all);
    if (!question_.limits.tpot_seconds || !planned.saturation) return all;
    const double tpot = *question_.limits.tpot_seconds / usual_percentile;
    const double saturated = planned.saturation->requests_per_second;
    const double expected = std::log(tpot) + weight_of_load * std::log(saturated);
    const double load = std::min(saturated, std::exp(planned.scale.log_load_at(expected)));
    return std::clamp<std::int64_t>(std::llround(load * tpot * planned.load.output_tokens), 1, all);
  }

  ScenarioCapacity closed_capacity(const PlannedScenario& planned, const SimulatedValue& saturated) const {
    const FoundClients found = find_clients(planned);
    ScenarioCapacity result = limited_capacity(planned, saturated, found.by);
    result.clients_within_limits = found.most;
    if (found.most == 0 && !question_.replicas) return without_load(planned, std::move(result));
    const std::int64_t all = *question_.workload.clients;
    const auto shared_by = [all](std::int64_t many) { return (all + many - 1) / many; };
    place(result, question_.replicas ? *question_.replicas : shared_by(found.most));
    const std::int64_t each = shared_by(*result.replicas);
    result.meets_load = each <= found.most;
    result.at_clients = question_.figures_at ? question_.figures_at->clients : each;
    const ReplicaAtLoad there = replica_at(planned, {.clients = result.at_clients});
    // Replicas with fewer clients than the fullest, or with none, serve less and cost as much.
    const double idle_factor =
        static_cast<double>(*result.replicas) * static_cast<double>(result.at_clients) / static_cast<double>(all);
    fill_figures(there, result, idle_factor);
    result.requests_per_second_per_replica = saturated;
    if (found.most == 0) {
      result.requests_per_second_per_replica = {};
    } else if (is_limited()) {
      result.requests_per_second_per_replica = result.at_clients == found.most
                                                   ? there.requests_per_second
                                                   : replica_at(planned, {.clients = found.most}).requests_per_second;
    }
    if (found.most > 0) result.largest_iteration = mean_iteration(planned, {.clients = found.most});
    return result;
  }

  /// With the figures of figures_at, if given, at a replica that meets the limits at no load.
  ScenarioCapacity without_load(const PlannedScenario& planned, ScenarioCapacity result) const {
    if (question_.figures_at) {
      result.at_clients = question_.figures_at->clients;
      fill_figures_at(planned, *question_.figures_at, result);
    }
    return result;
  }

  cost::Iteration mean_iteration(const PlannedScenario& planned, const ReplicaLoad& load) const {
    if (!planned.saturation) return {.sequences = 1};
    const auto state = steady_at(planned, load);
    return iteration_of(planned, state ? state->mean_batch : planned.saturation->state.mean_batch);
  }

  static const planning::RoundsFrom& rounds_at(const PlannedScenario& planned, double sequences) {
    const planning::RoundsFrom* rounds = &planned.rounds.front();
    for (const planning::RoundsFrom& stretch : planned.rounds) {
      if (static_cast<double>(stretch.batch_low) <= sequences) rounds = &stretch;
    }
    return *rounds;
  }

  /// With so many sequences, at least one. Each takes part in (output - 1) / E iterations, and a prompt comes for each
  /// that ends.
  static cost::Iteration iteration_of(const PlannedScenario& planned, double sequences) {
    const planning::OfferedLoad& offered = planned.load;
    cost::Iteration iteration;
    iteration.sequences = std::max(1.0, sequences);
    const planning::RoundsFrom& rounds = rounds_at(planned, iteration.sequences);
    iteration.gamma = rounds.gamma;
    iteration.full_accepts = rounds.full_accepts;
    iteration.context_tokens = iteration.sequences * offered.mean_context;
    iteration.prompts = iteration.sequences * rounds.tokens_per_step / (offered.output_tokens - 1);
    const double computed =
        offered.decode_only ? 1 : std::max(1.0, offered.prompt_tokens * (1 - offered.prefix_cache_hit_rate));
    iteration.prompt_tokens = iteration.prompts * computed;
    iteration.prompt_pairs = iteration.prompts * offered.prompt_pairs;
    return iteration;
  }

  /// Nothing where the formulas do not apply.
  std::optional<planning::SteadyState> steady_at(const PlannedScenario& planned, const ReplicaLoad& load) const {
    if (!planned.saturation || planned.scenario->engine.verification_budget) return std::nullopt;
    planning::OfferedLoad offered = planned.load;
    offered.requests_per_second = load.requests_per_second;
    if (load.clients > 0) {
      return planning::closed_steady_state(*question_.cost, offered, planned.limits, planned.rounds, load.clients,
                                           question_.workload.outside_seconds);
    }
    return planning::steady_state(*question_.cost, offered, planned.limits, planned.rounds);
  }

  /// The runs' own excesses show how far each by itself would have moved the crossing.
  SimulatedValue around(const PlannedScenario& planned, double load, const JudgedLoad& there,
                        const SimulatedValue& saturated) const {
    std::vector<double> deviations;
    for (const JudgedRequests& run : there.each) {
      if (run.by != CapacityLimit::none) deviations.push_back(run.excess - there.together.excess);
    }
    // The last loads that were tried are too close to each other for a slope.
    const double below = judged_at(planned, {load / slope_span}).together.excess;
    const double slope = (there.together.excess - below) / std::log(slope_span);
    if (deviations.size() < 2 || slope <= 0) return {load, 0, saturated.hi};
    const double half = half_width_of(deviations) / slope;
    return {load, load * std::exp(-half), std::min(load * std::exp(half), std::max(load, saturated.hi))};
  }

  static ScenarioCapacity limited_capacity(const PlannedScenario& planned, const SimulatedValue& saturated,
                                           CapacityLimit by) {
    ScenarioCapacity result;
    result.scenario = *planned.scenario;
    result.saturated_requests_per_second_per_replica = saturated;
    result.limited_by = by;
    if (result.limited_by == CapacityLimit::none)
      result.limited_by = planned.saturation ? planned.saturation->limited_by : CapacityLimit::compute;
    return result;
  }

  void place(ScenarioCapacity& result, std::int64_t replicas) const {
    result.replicas = replicas;
    result.gpus = replicas * question_.gpus_per_replica;
  }

  ScenarioCapacity capacity(const PlannedScenario& planned, const SimulatedValue& saturated,
                            const FoundLoad& found) const {
    ScenarioCapacity result = limited_capacity(planned, saturated, found.by);
    result.requests_per_second_per_replica = found.load;
    result.search_end = found.end;
    const double most = result.requests_per_second_per_replica.value;
    if (most <= 0) return without_load(planned, std::move(result));
    result.largest_iteration = mean_iteration(planned, {most});

    const std::optional<double> asked = question_.workload.requests_per_second;
    std::int64_t replicas = question_.replicas.value_or(1);
    if (asked && !question_.replicas) replicas = static_cast<std::int64_t>(std::ceil(*asked / most * (1 - 1e-12)));
    place(result, replicas);
    const double share = asked ? *asked / static_cast<double>(replicas) : 0;
    result.meets_load = share <= most * (1 + 1e-12);
    const double at = asked && result.meets_load ? share : is_limited() ? most : relaxed_load * most;
    fill_figures_at(planned, question_.figures_at.value_or(ReplicaLoad{at}), result);
    return result;
  }

  void fill_figures_at(const PlannedScenario& planned, const ReplicaLoad& load, ScenarioCapacity& result) const {
    result.overloaded = load.requests_per_second > result.saturated_requests_per_second_per_replica.value * (1 + 1e-12);
    if (!result.overloaded) fill_figures(replica_at(planned, load), result);
  }

  double gpu_seconds_per_token(double requests_per_second) const {
    return static_cast<double>(question_.gpus_per_replica) / (requests_per_second * output_tokens_);
  }

  std::optional<double> cost_of(double gpu_seconds_per_token) const {
    if (!question_.price_per_gpu_hour) return std::nullopt;
    return *question_.price_per_gpu_hour / 3600 * gpu_seconds_per_token * 1e6;
  }

  RunFigures figures_at(const PlannedScenario& planned, std::int64_t replication, const ReplicaLoad& load) const {
    const RunLength length = run_length(planned, load);
    const ServingResult run = serve(planned, replication, load, length.requests, length.warm_up, true);
    RunFigures figures;
    figures.gaps = run.gaps;
    figures.requests_per_second = run.output_tokens_per_second / mean_output(replication, length.requests);
    figures.ttft = first_token_seconds(run);
    figures.mean_ttft = mean_first_token_seconds(run);
    figures.tpot = seconds_per_token(run);
    figures.mean_batch = run.mean_batch;
    figures.output_tokens_per_second = run.output_tokens_per_second;
    figures.preemptions_per_request = static_cast<double>(run.preemptions) / static_cast<double>(run.requests.size());
    return figures;
  }

  std::optional<SimulatedPercentiles> percentiles(std::vector<std::vector<double>> of_runs) const {
    std::vector<double> all = pooled(of_runs);
    const std::optional<RequestPercentiles> together = percentiles_of(all, question_.limits.percentile);
    if (!together) return std::nullopt;
    std::vector<RequestPercentiles> each;
    for (std::vector<double>& values : of_runs)
      each.push_back(percentiles_of(values, question_.limits.percentile).value_or(*together));
    const auto value = [&](double RequestPercentiles::*place) {
      std::vector<double> values;
      for (const RequestPercentiles& run : each) values.push_back(run.*place);
      return sectioned((*together).*place, values);
    };
    return SimulatedPercentiles{value(&RequestPercentiles::p50), value(&RequestPercentiles::p90),
                                value(&RequestPercentiles::p99), value(&RequestPercentiles::mean),
                                value(&RequestPercentiles::asked)};
  }

  /// Of the gaps of all runs together.
  std::optional<SimulatedPercentiles> gap_percentiles(const std::vector<RunFigures>& runs) const {
    std::vector<GapCount> all;
    for (const RunFigures& run : runs) all.insert(all.end(), run.gaps.begin(), run.gaps.end());
    std::sort(all.begin(), all.end(), [](const GapCount& a, const GapCount& b) { return a.seconds < b.seconds; });
    const std::optional<RequestPercentiles> together =
        percentiles_of(std::span<const GapCount>(all), question_.limits.percentile);
    if (!together) return std::nullopt;
    const auto value = [&](double RequestPercentiles::*place) {
      std::vector<double> values;
      for (const RunFigures& run : runs)
        values.push_back(
            percentiles_of(std::span<const GapCount>(run.gaps), question_.limits.percentile).value_or(*together).*
            place);
      return sectioned((*together).*place, values);
    };
    return SimulatedPercentiles{value(&RequestPercentiles::p50), value(&RequestPercentiles::p90),
                                value(&RequestPercentiles::p99), value(&RequestPercentiles::mean),
                                value(&RequestPercentiles::asked)};
  }

  ReplicaAtLoad replica_at(const PlannedScenario& planned, const ReplicaLoad& load) const {
    const std::vector<RunFigures> figures =
        of_replications<RunFigures>([&](std::int64_t r) { return figures_at(planned, r, load); });
    const auto over_runs = [&](double RunFigures::*figure) {
      std::vector<double> values;
      for (const RunFigures& run : figures) values.push_back(run.*figure);
      return mean_of(values);
    };
    std::vector<std::vector<double>> ttft, tpot;
    for (const RunFigures& run : figures) {
      ttft.push_back(run.ttft);
      tpot.push_back(run.tpot);
    }
    ReplicaAtLoad result;
    const double rate = load.requests_per_second;
    result.requests_per_second =
        load.clients > 0 ? over_runs(&RunFigures::requests_per_second) : SimulatedValue{rate, rate, rate};
    result.ttft_seconds = percentiles(std::move(ttft));
    if (load.clients > 0 && result.ttft_seconds) result.ttft_seconds->mean = over_runs(&RunFigures::mean_ttft);
    result.tpot_seconds = percentiles(std::move(tpot));
    result.gap_seconds = gap_percentiles(figures);
    result.mean_batch = over_runs(&RunFigures::mean_batch);
    result.output_tokens_per_second = over_runs(&RunFigures::output_tokens_per_second);
    result.preemptions_per_request = over_runs(&RunFigures::preemptions_per_request).value;
    result.gpu_seconds_per_token = gpu_seconds_per_token(result.requests_per_second.value);
    result.cost_per_million_tokens = cost_of(result.gpu_seconds_per_token);
    result.steady = steady_at(planned, load);
    return result;
  }

  /// @param idle_factor  accelerators' time of all replicas / what it would be if each served as much as this one, >= 1
  void fill_figures(const ReplicaAtLoad& there, ScenarioCapacity& result, double idle_factor = 1) const {
    result.at_requests_per_second = there.requests_per_second.value;
    result.gpu_seconds_per_token = idle_factor * there.gpu_seconds_per_token;
    result.cost_per_million_tokens = cost_of(result.gpu_seconds_per_token);
    if (question_.watts_per_gpu) result.joules_per_token = *question_.watts_per_gpu * result.gpu_seconds_per_token;
    result.ttft_seconds = there.ttft_seconds;
    result.tpot_seconds = there.tpot_seconds;
    result.gap_seconds = there.gap_seconds;
    result.mean_batch = there.mean_batch;
    result.output_tokens_per_second_per_replica = there.output_tokens_per_second;
    result.preemptions_per_request = there.preemptions_per_request;
    result.steady = there.steady;
    if (result.steady && result.tpot_seconds)
      result.engines_relative_difference = result.steady->tpot_seconds / result.tpot_seconds->mean.value - 1;
  }

  void compare(CapacityAnswer& answer) const {
    std::vector<std::size_t> order;
    for (std::size_t s = 0; s < answer.scenarios.size(); ++s) {
      if (answer.scenarios[s].meets_load) order.push_back(s);
    }
    const auto seconds = [&](std::size_t s) { return answer.scenarios[s].gpu_seconds_per_token; };
    const auto median = [&](std::size_t s) {
      const auto& tpot = answer.scenarios[s].tpot_seconds;
      return tpot ? tpot->p50.value : 0;
    };
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(seconds(a), median(a)) < std::pair(seconds(b), median(b));
    });
    if (!order.empty()) answer.recommended = order.front();
    const auto loses_little = [&](std::size_t s) {
      const double most = 1 / (1 - question_.prefer_measured);
      return !answer.scenarios[s].scenario.extrapolated && seconds(s) <= most * seconds(order.front()) &&
             median(s) <= most * median(order.front());
    };
    if (!order.empty() && answer.scenarios[order.front()].scenario.extrapolated) {
      const auto measured = std::find_if(order.begin(), order.end(), loses_little);
      if (measured != order.end()) answer.passed_over = std::exchange(answer.recommended, *measured);
    }
    for (const std::size_t s : order) {
      if (answer.frontier.empty() || median(s) < median(answer.frontier.back())) answer.frontier.push_back(s);
    }
  }

  const CapacityQuestion& question_;
  const core::RunHooks& hooks_;
  RequestSets& requests_;
  const ScenarioCapacity* like_;
  double output_tokens_ = 1;
  std::vector<PlannedScenario> scenarios_;
};

}  // namespace

double Workload::middle_context() const {
  if (recorded.empty()) return prompt_tokens.mean + output_tokens.mean / 2;
  double sum = 0;
  for (const SimulatedRequest& request : recorded)
    sum += static_cast<double>(request.prompt_tokens) + static_cast<double>(request.output_tokens) / 2;
  return sum / static_cast<double>(recorded.size());
}

RequestSets requests_of(const CapacityQuestion& question) {
  require_legal(question);
  return {question.workload, question.seed, question.replications};
}

std::vector<ScenarioFormulas> scenario_formulas(const CapacityQuestion& question) {
  require_legal(question);
  RequestSets requests = requests_of(question);
  return CapacityPlanner(question, {}, requests, nullptr).formulas();
}

CapacityAnswer plan_capacity(const CapacityQuestion& question, const core::RunHooks& hooks) {
  RequestSets requests = requests_of(question);
  return plan_capacity(question, hooks, requests, nullptr);
}

CapacityAnswer plan_capacity(const CapacityQuestion& question, const core::RunHooks& hooks, RequestSets& requests,
                             const ScenarioCapacity* like) {
  require_legal(question);
  return CapacityPlanner(question, hooks, requests, like).answer();
}

std::vector<ReplicaAtLoad> replica_at_loads(const CapacityQuestion& question, std::size_t scenario,
                                            std::span<const double> loads) {
  RequestSets requests = requests_of(question);
  return replica_at_loads(question, scenario, loads, requests);
}

std::vector<ReplicaAtLoad> replica_at_loads(const CapacityQuestion& question, std::size_t scenario,
                                            std::span<const double> loads, RequestSets& requests) {
  CapacityQuestion alone = question;
  alone.scenarios = {question.scenarios.at(scenario)};
  require_legal(alone);
  for (const double load : loads)
    core::require_in("replica_at_loads", "load", load, std::numeric_limits<double>::min(), 1e12);
  return CapacityPlanner(alone, {}, requests, nullptr).first_scenario_at(loads);
}

double least_requests(double mean_batch) { return warm_up_per_sequence * mean_batch / most_warm_up; }

bool is_plain(const CapacityScenario& scenario) {
  const auto& schedule = scenario.engine.schedule;
  return std::all_of(schedule.begin(), schedule.end(), [](const GammaFrom& stretch) { return stretch.gamma == 0; });
}

}  // namespace specdec::sim
