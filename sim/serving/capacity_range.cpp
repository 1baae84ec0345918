#include "sim/serving/capacity_range.hpp"

#include <algorithm>
#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/normal_interval.hpp"
#include "sim/serving/capacity_runs.hpp"
#include "sim/serving/simulated_workload.hpp"

namespace specdec::sim {
namespace {

/// Beyond each end of an interval of 95%.
constexpr double tail = 0.025;

/// The mean of some replicates of a cost, as a cost of its own.
class MeanOfReplicates final : public cost::IterationCost {
 public:
  MeanOfReplicates(std::shared_ptr<const cost::IterationCost> cost, std::vector<std::size_t> indices)
      : cost_(std::move(cost)), indices_(std::move(indices)) {}

  double seconds(const cost::Iteration& iteration) const override {
    return cost_->mean_seconds_of_replicates(indices_, iteration);
  }
  double seconds_of_replicate(std::size_t, const cost::Iteration& iteration) const override {
    return seconds(iteration);
  }

 private:
  std::shared_ptr<const cost::IterationCost> cost_;
  std::vector<std::size_t> indices_;
};

std::int64_t gamma_at(const ServingEngine& engine, double batch) {
  std::int64_t gamma = 0;
  for (const GammaFrom& stretch : engine.schedule) {
    if (static_cast<double>(stretch.batch_low) <= std::max(1.0, batch)) gamma = stretch.gamma;
  }
  return gamma;
}

cost::Iteration iteration_at(double batch, const CapacityQuestion& question, const ScenarioCapacity& scenario) {
  cost::Iteration iteration;
  iteration.sequences = std::max(1.0, batch);
  iteration.gamma = gamma_at(scenario.scenario.engine, iteration.sequences);
  iteration.context_tokens = iteration.sequences * question.workload.middle_context();
  return iteration;
}

/// Replicates in the order of their seconds of one iteration, those that price it and one with a single sequence above
/// 0: a fit whose resampled runs leave nothing of a term may not. Empty if none does.
std::vector<std::size_t> by_seconds(const cost::IterationCost& cost, const cost::Iteration& iteration) {
  cost::Iteration alone;
  alone.sequences = 1;
  alone.gamma = iteration.gamma;
  alone.full_accepts = iteration.full_accepts;
  alone.context_tokens = iteration.context_tokens / iteration.sequences;
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < cost.replicates(); ++i) {
    const double seconds = cost.seconds_of_replicate(i, iteration);
    if (seconds > 0 && cost.seconds_of_replicate(i, alone) > 0) order.emplace_back(seconds, i);
  }
  std::sort(order.begin(), order.end());
  std::vector<std::size_t> indices;
  for (const auto& [seconds, index] : order) indices.push_back(index);
  return indices;
}

/// Those whose mean stands for a quantile: at the middles of equal shares of the law of its order statistic,
/// Beta((n + 1) p, (n + 1) (1 - p)).
/// @param order  as by_seconds gives it
std::vector<std::size_t> about_quantile(const std::vector<std::size_t>& order, double p) {
  constexpr int shares = 4;
  const auto count = static_cast<double>(order.size());
  const boost::math::beta_distribution<double> law((count + 1) * p, (count + 1) * (1 - p));
  std::vector<std::size_t> about;
  for (int share = 0; share < shares; ++share) {
    const double place = boost::math::quantile(law, (share + 0.5) / shares);
    about.push_back(order[std::min(order.size() - 1, static_cast<std::size_t>(place * count))]);
  }
  return about;
}

/// The version's own simulation has the same error as the answer's, so only its mean is used.
void cover(SimulatedValue& value, const SimulatedValue& version) {
  value.lo = std::min(value.lo, version.value);
  value.hi = std::max(value.hi, version.value);
}

void cover(std::optional<SimulatedPercentiles>& values, const std::optional<SimulatedPercentiles>& others) {
  if (!values || !others) return;
  for (std::size_t i = 0; i < values->all().size(); ++i) cover(*values->all()[i], *others->all()[i]);
}

/// For an overloaded version no value is known but that it is larger.
void leave_open(SimulatedValue& value) { value.hi = std::numeric_limits<double>::infinity(); }

void leave_open(std::optional<SimulatedPercentiles>& values) {
  if (!values) return;
  for (SimulatedValue* const value : values->all()) leave_open(*value);
}

void cover(ScenarioCapacity& scenario, const ScenarioCapacity& other) {
  cover(scenario.requests_per_second_per_replica, other.requests_per_second_per_replica);
  cover(scenario.saturated_requests_per_second_per_replica, other.saturated_requests_per_second_per_replica);
  if (other.overloaded) {
    leave_open(scenario.ttft_seconds);
    leave_open(scenario.tpot_seconds);
    leave_open(scenario.gap_seconds);
    leave_open(scenario.mean_batch);
    // It puts out what it can.
    SimulatedValue& output = scenario.output_tokens_per_second_per_replica;
    const double share = other.saturated_requests_per_second_per_replica.value / scenario.at_requests_per_second;
    output.lo = std::min(output.lo, share * output.value);
    return;
  }
  if (other.at_requests_per_second <= 0 || scenario.at_requests_per_second <= 0) return;
  cover(scenario.ttft_seconds, other.ttft_seconds);
  cover(scenario.tpot_seconds, other.tpot_seconds);
  cover(scenario.gap_seconds, other.gap_seconds);
  cover(scenario.mean_batch, other.mean_batch);
  cover(scenario.output_tokens_per_second_per_replica, other.output_tokens_per_second_per_replica);
}

/// For figures that some versions lack.
void leave_unknown(ScenarioCapacity& scenario) {
  const auto open = [](SimulatedValue& value) {
    value.lo = 0;
    leave_open(value);
  };
  for (SimulatedValue* const value :
       {&scenario.requests_per_second_per_replica, &scenario.saturated_requests_per_second_per_replica,
        &scenario.mean_batch, &scenario.output_tokens_per_second_per_replica})
    open(*value);
  for (std::optional<SimulatedPercentiles>* const values :
       {&scenario.ttft_seconds, &scenario.tpot_seconds, &scenario.gap_seconds}) {
    if (!*values) continue;
    for (SimulatedValue* const value : (*values)->all()) open(*value);
  }
}

/// Accelerators for this many replicas' worth of load.
std::int64_t gpus_for(const CapacityQuestion& question, double replicas) {
  return static_cast<std::int64_t>(std::ceil(replicas * (1 - 1e-12))) * question.gpus_per_replica;
}

/// Accelerators that the load needs at the sustainable rate of the version; the existing ones, if given.
std::optional<std::int64_t> gpus_of(const CapacityQuestion& question, const ScenarioCapacity& version) {
  const bool closed = question.workload.clients.has_value();
  const double asked =
      closed ? static_cast<double>(*question.workload.clients) : question.workload.requests_per_second.value_or(0);
  const double most =
      closed ? static_cast<double>(version.clients_within_limits) : version.requests_per_second_per_replica.value;
  if (most <= 0 || (question.replicas && !version.meets_load)) return std::nullopt;
  return gpus_for(question, question.replicas ? static_cast<double>(*question.replicas) : asked / most);
}

/// The same at one end of the simulation's own interval of that rate.
std::optional<std::int64_t> gpus_at(const CapacityQuestion& question, double rate) {
  const double replicas = *question.workload.requests_per_second / rate;
  if (!(rate > 0)) return std::nullopt;
  if (!question.replicas) return gpus_for(question, replicas);
  const auto given = static_cast<double>(*question.replicas);
  return replicas <= given ? std::optional(gpus_for(question, given)) : std::nullopt;
}

std::optional<GpuRange> range_of(const std::vector<std::optional<std::int64_t>>& cases) {
  std::optional<GpuRange> range;
  bool some_never = false;
  for (const std::optional<std::int64_t>& gpus : cases) {
    if (!gpus) {
      some_never = true;
      continue;
    }
    if (!range) range = GpuRange{*gpus, *gpus, false};
    range->lo = std::min(range->lo, *gpus);
    range->hi = std::max(range->hi, *gpus);
  }
  if (range) range->some_never = some_never;
  return range;
}

/// ln(largest / smallest) of the first rate and of those in [begin, end); infinite if some but not all are 0.
double log_width(const std::vector<double>& rates, std::size_t begin, std::size_t end) {
  double lo = rates.at(0), hi = rates.at(0);
  for (std::size_t i = begin; i < end; ++i) {
    lo = std::min(lo, rates.at(i));
    hi = std::max(hi, rates.at(i));
  }
  if (lo == hi) return 0;
  return lo > 0 ? std::log(hi / lo) : std::numeric_limits<double>::infinity();
}

/// The scenario of the largest rate among those that draft; the first one if none does.
std::size_t fastest_drafting(const CapacityAnswer& answer) {
  std::optional<std::size_t> best;
  const auto rate = [&](std::size_t i) { return answer.scenarios[i].requests_per_second_per_replica.value; };
  for (std::size_t i = 0; i < answer.scenarios.size(); ++i) {
    if (!is_plain(answer.scenarios[i].scenario) && (!best || rate(i) > rate(*best))) best = i;
  }
  return best.value_or(0);
}

/// The replicates in the order of a scenario's largest_iteration; empty if the cost has none.
std::vector<std::size_t> order_at(const CapacityQuestion& question, const CapacityAnswer& answer, std::size_t place) {
  return by_seconds(*question.cost, answer.scenarios[place].largest_iteration);
}

/// Empty if the scenario has none.
std::optional<double> median_tpot(const ScenarioCapacity& scenario) {
  if (scenario.overloaded) return std::numeric_limits<double>::infinity();
  if (!scenario.tpot_seconds) return std::nullopt;
  return scenario.tpot_seconds->p50.value;
}

CapacityQuestion with_version(CapacityQuestion question, const CapacityVersion& version) {
  if (!version.replicates.empty())
    question.cost = std::make_shared<MeanOfReplicates>(question.cost, version.replicates);
  if (!version.acceptance.empty()) question.acceptance = version.acceptance;
  return question;
}

/// Adds one version, and finds the first one of the same cost, itself if there is none.
void add_version(CapacityRange& range, CapacityVersion version) {
  const auto same = std::find_if(range.versions.begin(), range.versions.end(),
                                 [&](const auto& other) { return other.replicates == version.replicates; });
  version.plain_as = static_cast<std::size_t>(same - range.versions.begin());
  range.versions.push_back(std::move(version));
}

/// The answer's own, each end of the cost and each of the acceptances.
void add_single_versions(const CapacityQuestion& question, std::span<const std::vector<RequestAcceptance>> acceptances,
                         CapacityRange& range) {
  add_version(range, {});
  for (const std::size_t place : {std::size_t{0}, fastest_drafting(range.answer)}) {
    const std::vector<std::size_t> order = order_at(question, range.answer, place);
    if (order.empty() || (place == 0 && range.cost_ends > 0)) continue;
    for (const double p : {tail, 1 - tail}) add_version(range, {about_quantile(order, p), {}});
    range.cost_ends += 2;
  }
  for (const std::vector<RequestAcceptance>& acceptance : acceptances) add_version(range, {{}, acceptance});
  range.acceptances = acceptances.size();
}

/// own + share (end - own); the end itself if the two have laws of different numbers, or that change elsewhere.
std::vector<RequestAcceptance> drawn_towards(const std::vector<RequestAcceptance>& own,
                                             const std::vector<RequestAcceptance>& end, double share) {
  std::vector<RequestAcceptance> drawn = end;
  if (own.size() != end.size() || own.empty() || contexts_of(own.front()) != contexts_of(end.front())) return drawn;
  const auto draw = [share](const std::vector<double>& from, std::vector<double>& rates) {
    for (std::size_t j = 0; j < std::min(from.size(), rates.size()); ++j)
      rates[j] = from[j] + share * (rates[j] - from[j]);
  };
  for (std::size_t i = 0; i < own.size(); ++i) {
    draw(own[i].conditional, drawn[i].conditional);
    for (std::size_t part = 0; part < own[i].from_contexts.size(); ++part) {
      draw(own[i].from_contexts[part].conditional, drawn[i].from_contexts[part].conditional);
    }
  }
  return drawn;
}

/// The cost and the acceptance of the drafting scenario with the largest rate, from those with each alone.
void add_joint_versions(const CapacityQuestion& question, CapacityRange& range) {
  const std::size_t place = fastest_drafting(range.answer);
  const std::vector<std::size_t> order = order_at(question, range.answer, place);
  if (order.empty() || range.acceptances == 0) return;
  const std::vector<double>& rates = range.rates_by_version[place];
  const auto change = [&](std::size_t version) { return rates[0] > 0 ? std::log(rates[version] / rates[0]) : 0; };
  const std::size_t first_acceptance = 1 + range.cost_ends;
  for (std::size_t end = 0; end < 2; ++end) {
    const std::size_t cost_version = first_acceptance - 2 + end;
    for (std::size_t v = first_acceptance; v < first_acceptance + range.acceptances; ++v) {
      const std::vector<RequestAcceptance>& acceptance = range.versions[v].acceptance;
      if (question.acceptance_is_range) {
        add_version(range, {range.versions[cost_version].replicates, acceptance});
        continue;
      }
      const double c = change(cost_version), e = change(v);
      if (!(c * e > 0)) continue;
      const bool bounded = std::isfinite(c) && std::isfinite(e);
      const double of_cost = bounded ? c / core::half_of_both(c, e) : std::sqrt(0.5);
      const double of_acceptance = bounded ? e / core::half_of_both(c, e) : std::sqrt(0.5);
      const double p = boost::math::cdf(boost::math::normal(), -core::normal_half_width_95 * std::abs(of_cost));
      add_version(range, {about_quantile(order, end == 0 ? p : 1 - p),
                          drawn_towards(question.acceptance, acceptance, std::abs(of_acceptance))});
    }
  }
}

/// Adds what one scenario gives in a version; false if it was interrupted.
bool plan_version(const CapacityQuestion& asked, std::size_t i, const core::RunHooks& hooks, RequestSets& requests,
                  CapacityRange& range) {
  const bool asks_for_load = asked.workload.requests_per_second || asked.workload.clients;
  ScenarioCapacity& own = range.answer.scenarios[i];
  CapacityQuestion version = asked;
  version.scenarios = {asked.scenarios[i]};
  if (!version.replicas) version.replicas = own.replicas;
  version.finds_rate_intervals = false;
  version.figures_at.reset();
  if (asks_for_load && own.meets_load) {
    version.figures_at =
        own.at_clients > 0 ? ReplicaLoad{.clients = own.at_clients} : ReplicaLoad{own.at_requests_per_second};
  }
  const CapacityAnswer answer = plan_capacity(version, {{}, hooks.interrupt}, requests, &own);
  if (answer.interrupted) return false;
  const ScenarioCapacity& other = answer.scenarios.front();
  cover(own, other);
  range.rates_by_version[i].push_back(other.requests_per_second_per_replica.value);
  range.median_tpot_by_version[i].push_back(median_tpot(other));
  if (asks_for_load) range.gpus_by_case[i].push_back(gpus_of(asked, other));
  return true;
}

/// Adds the ends of the simulation's own interval, the answer's rates as they were before other versions widened them.
void add_simulation_ends(const CapacityQuestion& question, std::span<const SimulatedValue> rates,
                         CapacityRange& range) {
  if (!question.workload.requests_per_second) return;
  for (std::size_t i = 0; i < rates.size(); ++i) {
    for (const double rate : {rates[i].lo, rates[i].hi}) range.gpus_by_case[i].push_back(gpus_at(question, rate));
  }
}

/// Adds what plain decoding gives in a version as it does in another, since it accepts nothing.
void repeat_version(std::size_t same, std::size_t i, CapacityRange& range) {
  range.rates_by_version[i].push_back(range.rates_by_version[i][same]);
  range.median_tpot_by_version[i].push_back(range.median_tpot_by_version[i][same]);
  if (!range.gpus_by_case[i].empty()) range.gpus_by_case[i].push_back(range.gpus_by_case[i][same]);
}

/// Leaves the answer's own version and those before `first`, which cover less than all.
void leave_out_from(std::size_t first, CapacityRange& range) {
  range.interrupted = true;
  range.versions.resize(first);
  for (std::size_t i = 0; i < range.answer.scenarios.size(); ++i) {
    range.rates_by_version[i].resize(first);
    range.median_tpot_by_version[i].resize(first);
    if (!range.gpus_by_case[i].empty()) range.gpus_by_case[i].resize(first);
    leave_unknown(range.answer.scenarios[i]);
  }
}

/// Runs versions one after the other, in each one scenario at a time, since each has its own number of replicas; those
/// that are interrupted, and later ones, are left out. @param most  versions beside the answer's own
void run_versions(const CapacityQuestion& question, std::size_t first, std::size_t most, const core::RunHooks& hooks,
                  RequestSets& requests, CapacityRange& range) {
  const std::size_t scenarios = question.scenarios.size();
  for (std::size_t v = first; v < range.versions.size(); ++v) {
    const CapacityQuestion version = with_version(question, range.versions[v]);
    const std::size_t same = range.versions[v].plain_as;
    for (std::size_t i = 0; i < scenarios; ++i) {
      if (is_plain(question.scenarios[i]) && same < v) {
        repeat_version(same, i, range);
      } else if (!plan_version(version, i, hooks, requests, range)) {
        return leave_out_from(v, range);
      }
      hooks.tell(static_cast<double>((v - 1) * scenarios + i + 1) / static_cast<double>(most * scenarios));
    }
  }
}

/// The answer's own values.
CapacityRange range_of_answer(const CapacityQuestion& question, CapacityAnswer answer) {
  core::require_same_size("over_versions", "answer", answer.scenarios.size(), "question.scenarios",
                          question.scenarios.size());
  CapacityRange range;
  range.answer = std::move(answer);
  const bool asks_for_load = question.workload.requests_per_second || question.workload.clients;
  const std::size_t scenarios = question.scenarios.size();
  range.gpus.resize(scenarios);
  range.gpus_by_case.resize(scenarios);
  range.overloaded.resize(scenarios);
  for (const ScenarioCapacity& own : range.answer.scenarios) {
    range.rates_by_version.push_back({own.requests_per_second_per_replica.value});
    range.median_tpot_by_version.push_back({median_tpot(own)});
  }
  for (std::size_t i = 0; asks_for_load && i < scenarios; ++i)
    range.gpus_by_case[i].push_back(gpus_of(question, range.answer.scenarios[i]));
  return range;
}

std::vector<SimulatedValue> rates_of(const CapacityAnswer& answer) {
  std::vector<SimulatedValue> rates;
  for (const ScenarioCapacity& own : answer.scenarios) rates.push_back(own.requests_per_second_per_replica);
  return rates;
}

/// Once all versions have run. @param own_rates  the answer's, before versions widened them
void sum_up(const CapacityQuestion& question, std::span<const SimulatedValue> own_rates, CapacityRange& range) {
  if (!range.interrupted) add_simulation_ends(question, own_rates, range);
  for (std::size_t i = 0; i < range.answer.scenarios.size(); ++i) {
    const auto& medians = range.median_tpot_by_version[i];
    range.overloaded[i] =
        static_cast<std::size_t>(std::count(medians.begin(), medians.end(), std::numeric_limits<double>::infinity()));
    if (!range.interrupted) range.gpus[i] = range_of(range.gpus_by_case[i]);
  }
}

}  // namespace

CapacityRange over_versions(const CapacityQuestion& question, CapacityAnswer answer,
                            std::span<const std::vector<RequestAcceptance>> acceptances, const core::RunHooks& hooks) {
  CapacityRange range = range_of_answer(question, std::move(answer));
  const std::vector<SimulatedValue> own_rates = rates_of(range.answer);
  add_single_versions(question, acceptances, range);
  RequestSets requests = requests_of(question);
  const std::size_t most = most_versions(question, acceptances);
  run_versions(question, 1, most, hooks, requests, range);
  if (!range.interrupted) {
    const std::size_t singles = range.versions.size();
    add_joint_versions(question, range);
    run_versions(question, singles, most, hooks, requests, range);
  }
  sum_up(question, own_rates, range);
  return range;
}

CapacityRange over_versions_of(const CapacityRange& other, const CapacityQuestion& question, CapacityAnswer answer,
                               const core::RunHooks& hooks) {
  CapacityRange range = range_of_answer(question, std::move(answer));
  const std::vector<SimulatedValue> own_rates = rates_of(range.answer);
  range.versions = other.versions;
  range.cost_ends = other.cost_ends;
  range.acceptances = other.acceptances;
  RequestSets requests = requests_of(question);
  run_versions(question, 1, std::max<std::size_t>(1, range.versions.size() - 1), hooks, requests, range);
  sum_up(question, own_rates, range);
  return range;
}

std::size_t most_versions(const CapacityQuestion& question,
                          std::span<const std::vector<RequestAcceptance>> acceptances) {
  if (question.cost->replicates() == 0) return acceptances.size();
  // Two ends for each of two iterations, and those that each acceptance goes with, of an interval the one end of two.
  return 4 + (question.acceptance_is_range ? 3 : 2) * acceptances.size();
}

GpuComparison compare_gpus(std::span<const std::optional<std::int64_t>> ours,
                           std::span<const std::optional<std::int64_t>> theirs) {
  core::require_same_size("compare_gpus", "cases of the scenario", ours.size(), "those of the other", theirs.size());
  GpuComparison comparison;
  comparison.cases = ours.size();
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const std::int64_t with = ours[i].value_or(never), without = theirs[i].value_or(never);
    comparison.fewer += with < without ? 1 : 0;
    comparison.more += with > without ? 1 : 0;
  }
  return comparison;
}

GpuComparison compare_gpus(const CapacityRange& range, std::size_t scenario, std::size_t other) {
  return compare_gpus(range.gpus_by_case.at(scenario), range.gpus_by_case.at(other));
}

bool is_faster_in_all(std::span<const std::optional<double>> ours, std::span<const std::optional<double>> theirs) {
  return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                    [](const auto& one, const auto& other) { return one && other && *one < *other; });
}

bool is_faster_in_all(const CapacityRange& range, std::size_t scenario, std::size_t other) {
  return is_faster_in_all(range.median_tpot_by_version.at(scenario), range.median_tpot_by_version.at(other));
}

std::string_view name_of(UncertaintySource source) {
  switch (source) {
    case UncertaintySource::acceptance:
      return "acceptance";
    case UncertaintySource::cost:
      return "cost";
    case UncertaintySource::extrapolation:
      break;
  }
  return "extrapolation";
}

std::optional<CapacityDoubt> capacity_doubt(const CapacityQuestion& question, const CapacityRange& range,
                                            std::size_t scenario, std::optional<UncertaintySource> known) {
  const ScenarioCapacity& asked = range.answer.scenarios.at(scenario);
  if (range.interrupted) return std::nullopt;
  const std::vector<double>& rates = range.rates_by_version.at(scenario);
  const std::size_t first = 1 + range.cost_ends;
  const double of_cost = log_width(rates, 1, first), of_acceptance = log_width(rates, first, first + range.acceptances);
  const bool extrapolated = asked.scenario.extrapolated;
  if (of_cost == 0 && of_acceptance == 0 && !extrapolated && !known) return std::nullopt;
  const cost::Iteration iteration = iteration_at(asked.mean_batch.value, question, asked);
  CapacityDoubt doubt;
  doubt.source = known                     ? *known
                 : extrapolated            ? UncertaintySource::extrapolation
                 : of_cost > of_acceptance ? UncertaintySource::cost
                                           : UncertaintySource::acceptance;
  for (const GammaFrom& stretch : asked.scenario.engine.schedule)
    doubt.next.gamma = std::max(doubt.next.gamma, stretch.gamma);
  doubt.next.batch = iteration.sequences;
  doubt.next.context = iteration.context_tokens / iteration.sequences;
  doubt.next.with_baseline = doubt.source == UncertaintySource::cost && doubt.next.gamma > 0;
  return doubt;
}

std::vector<ReplicaAtLoad> replica_over_versions(const CapacityQuestion& question, std::size_t scenario,
                                                 std::span<const double> loads,
                                                 std::span<const CapacityVersion> versions) {
  RequestSets requests = requests_of(question);
  std::vector<ReplicaAtLoad> found = replica_at_loads(question, scenario, loads, requests);
  const bool plain = is_plain(question.scenarios.at(scenario));
  for (std::size_t v = 1; v < versions.size(); ++v) {
    if (plain && versions[v].plain_as < v) continue;
    const std::vector<ReplicaAtLoad> others =
        replica_at_loads(with_version(question, versions[v]), scenario, loads, requests);
    for (std::size_t i = 0; i < found.size(); ++i) {
      cover(found[i].ttft_seconds, others[i].ttft_seconds);
      cover(found[i].tpot_seconds, others[i].tpot_seconds);
      cover(found[i].gap_seconds, others[i].gap_seconds);
      cover(found[i].mean_batch, others[i].mean_batch);
      cover(found[i].output_tokens_per_second, others[i].output_tokens_per_second);
    }
  }
  return found;
}

}  // namespace specdec::sim
