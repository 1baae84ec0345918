#include "sim/serving/capacity_range.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>

#include "analysis/core/checks.hpp"

namespace specdec::sim {
namespace {

constexpr double tail = 0.025;

/// One replicate of a cost, as the cost itself.
class ReplicateAsCost final : public cost::IterationCost {
 public:
  ReplicateAsCost(std::shared_ptr<const cost::IterationCost> cost, std::size_t index)
      : cost_(std::move(cost)), index_(index) {}

  double seconds(const cost::Iteration& iteration) const override {
    return cost_->seconds_of_replicate(index_, iteration);
  }
  double seconds_of_replicate(std::size_t, const cost::Iteration& iteration) const override {
    return seconds(iteration);
  }

 private:
  std::shared_ptr<const cost::IterationCost> cost_;
  std::size_t index_;
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

/// The replicates at both tails of the seconds of one iteration, among those that price it and one with a single
/// sequence above 0: a fit whose resampled runs leave nothing of a term may not. Empty if none does.
std::vector<std::size_t> tails_of(const cost::IterationCost& cost, const cost::Iteration& iteration) {
  cost::Iteration alone = iteration;
  alone.sequences = 1;
  alone.context_tokens = iteration.context_tokens / iteration.sequences;
  std::vector<std::pair<double, std::size_t>> order;
  for (std::size_t i = 0; i < cost.replicates(); ++i) {
    const double seconds = cost.seconds_of_replicate(i, iteration);
    if (seconds > 0 && cost.seconds_of_replicate(i, alone) > 0) order.emplace_back(seconds, i);
  }
  if (order.empty()) return {};
  std::sort(order.begin(), order.end());
  const auto low = static_cast<std::size_t>(std::floor(tail * static_cast<double>(order.size() - 1)));
  return {order[low].second, order[order.size() - 1 - low].second};
}

/// The version's own simulation has the same error as the answer's, so only its mean is used.
void cover(SimulatedValue& value, const SimulatedValue& version) {
  value.lo = std::min(value.lo, version.value);
  value.hi = std::max(value.hi, version.value);
}

void cover(std::optional<SimulatedPercentiles>& values, const std::optional<SimulatedPercentiles>& others) {
  if (!values || !others) return;
  cover(values->p50, others->p50);
  cover(values->p90, others->p90);
  cover(values->p99, others->p99);
  cover(values->mean, others->mean);
}

/// Of a version that is overloaded no value is known but that it is larger.
void leave_open(SimulatedValue& value) { value.hi = std::numeric_limits<double>::infinity(); }

void leave_open(std::optional<SimulatedPercentiles>& values) {
  if (!values) return;
  for (SimulatedValue* const value : {&values->p50, &values->p90, &values->p99, &values->mean}) leave_open(*value);
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

/// Of figures that versions are missing of.
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
    for (SimulatedValue* const value : {&(*values)->p50, &(*values)->p90, &(*values)->p99, &(*values)->mean})
      open(*value);
  }
}

/// Accelerators that the load needs at the sustainable rate of the version; the existing ones, if given.
std::optional<std::int64_t> gpus_of(const CapacityQuestion& question, const ScenarioCapacity& version) {
  const bool closed = question.workload.clients.has_value();
  const double asked =
      closed ? static_cast<double>(*question.workload.clients) : question.workload.requests_per_second.value_or(0);
  const double most =
      closed ? static_cast<double>(version.clients_within_limits) : version.requests_per_second_per_replica.value;
  if (most <= 0 || (question.replicas && !version.meets_load)) return std::nullopt;
  const double replicas =
      question.replicas ? static_cast<double>(*question.replicas) : std::ceil(asked / most * (1 - 1e-12));
  return static_cast<std::int64_t>(replicas) * question.gpus_per_replica;
}

std::optional<GpuRange> range_of(const std::vector<std::optional<std::int64_t>>& versions) {
  std::optional<GpuRange> range;
  bool some_never = false;
  for (const std::optional<std::int64_t>& gpus : versions) {
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

/// The replicates at both tails for one scenario at its largest mean batch.
std::vector<std::size_t> replicates_of(const CapacityQuestion& question, const CapacityAnswer& answer,
                                       std::size_t place) {
  if (question.cost->replicates() == 0) return {};
  const ScenarioCapacity& scenario = answer.scenarios[place];
  return tails_of(*question.cost, iteration_at(scenario.largest_mean_batch, question, scenario));
}

/// Each replicate once.
std::vector<std::size_t> telling_replicates(const CapacityQuestion& question, const CapacityAnswer& answer) {
  std::vector<std::size_t> found;
  for (const std::size_t place : {std::size_t{0}, fastest_drafting(answer)}) {
    for (const std::size_t index : replicates_of(question, answer, place)) {
      if (std::find(found.begin(), found.end(), index) == found.end()) found.push_back(index);
    }
  }
  return found;
}

/// Empty if the scenario has none.
std::optional<double> median_tpot(const ScenarioCapacity& scenario) {
  if (scenario.overloaded) return std::numeric_limits<double>::infinity();
  if (!scenario.tpot_seconds) return std::nullopt;
  return scenario.tpot_seconds->p50.value;
}

/// A version of a question, and which version plain decoding has its figures of.
struct Version {
  CapacityQuestion question;
  std::size_t plain_as = 0;
};

/// In the order of CapacityRange::rates_by_version, without the answer's own.
std::vector<Version> versions_of(const CapacityQuestion& question, const CapacityRange& range,
                                 std::span<const std::vector<RequestAcceptance>> acceptances) {
  std::vector<Version> versions;
  const auto priced_by = [&](std::size_t replicate) {
    CapacityQuestion version = question;
    version.cost = std::make_shared<ReplicateAsCost>(question.cost, replicate);
    return version;
  };
  for (const std::size_t index : range.replicates) versions.push_back({priced_by(index), versions.size() + 1});
  const auto accepting = [](CapacityQuestion version, const std::vector<RequestAcceptance>& acceptance) {
    version.acceptance = acceptance;
    return version;
  };
  for (const std::vector<RequestAcceptance>& acceptance : acceptances)
    versions.push_back({accepting(question, acceptance), 0});
  if (!question.acceptance_is_range || acceptances.empty()) return versions;
  for (const std::size_t index : replicates_of(question, range.answer, fastest_drafting(range.answer))) {
    const auto place = std::find(range.replicates.begin(), range.replicates.end(), index) - range.replicates.begin();
    for (const std::vector<RequestAcceptance>& acceptance : acceptances)
      versions.push_back({accepting(priced_by(index), acceptance), static_cast<std::size_t>(place) + 1});
  }
  return versions;
}

/// Adds what one scenario gives in a version; false if it was interrupted.
bool plan_version(const CapacityQuestion& asked, std::size_t i, const core::RunHooks& hooks, CapacityRange& range) {
  const bool asks_for_load = asked.workload.requests_per_second || asked.workload.clients;
  ScenarioCapacity& own = range.answer.scenarios[i];
  CapacityQuestion version = asked;
  version.scenarios = {asked.scenarios[i]};
  if (!version.replicas) version.replicas = own.replicas;
  version.figures_at.reset();
  if (asks_for_load && own.meets_load) {
    version.figures_at =
        own.at_clients > 0 ? ReplicaLoad{.clients = own.at_clients} : ReplicaLoad{own.at_requests_per_second};
  }
  const CapacityAnswer answer = plan_capacity(version, {{}, hooks.interrupt});
  if (answer.interrupted) return false;
  const ScenarioCapacity& other = answer.scenarios.front();
  cover(own, other);
  range.rates_by_version[i].push_back(other.requests_per_second_per_replica.value);
  range.median_tpot_by_version[i].push_back(median_tpot(other));
  if (asks_for_load) range.gpus_by_version[i].push_back(gpus_of(asked, other));
  return true;
}

/// Adds a version of plain decoding, which is another one since nothing is accepted.
void repeat_version(std::size_t same, std::size_t i, CapacityRange& range) {
  range.rates_by_version[i].push_back(range.rates_by_version[i][same]);
  range.median_tpot_by_version[i].push_back(range.median_tpot_by_version[i][same]);
  if (same < range.gpus_by_version[i].size()) range.gpus_by_version[i].push_back(range.gpus_by_version[i][same]);
}

/// Runs versions one after the other, in each one scenario at a time, since each has its own number of replicas.
/// @return the number of versions that all scenarios have been run in
std::size_t run_versions(const std::vector<Version>& versions, const core::RunHooks& hooks, CapacityRange& range) {
  const std::size_t scenarios = range.answer.scenarios.size();
  for (std::size_t v = 0; v < versions.size(); ++v) {
    for (std::size_t i = 0; i < scenarios; ++i) {
      if (is_plain(range.answer.scenarios[i].scenario) && versions[v].plain_as <= v) {
        repeat_version(versions[v].plain_as, i, range);
      } else if (!plan_version(versions[v].question, i, hooks, range)) {
        return v;
      }
      hooks.tell(static_cast<double>(v * scenarios + i + 1) / static_cast<double>(versions.size() * scenarios));
    }
  }
  return versions.size();
}

/// Leaves the answer's own version and the complete ones, which cover less than all.
void leave_out_incomplete(std::size_t complete, CapacityRange& range) {
  range.interrupted = true;
  for (std::size_t i = 0; i < range.answer.scenarios.size(); ++i) {
    range.rates_by_version[i].resize(1 + complete);
    range.median_tpot_by_version[i].resize(1 + complete);
    if (!range.gpus_by_version[i].empty()) range.gpus_by_version[i].resize(1 + complete);
    leave_unknown(range.answer.scenarios[i]);
  }
}

}  // namespace

CapacityRange over_versions(const CapacityQuestion& question, CapacityAnswer answer,
                            std::span<const std::vector<RequestAcceptance>> acceptances, const core::RunHooks& hooks) {
  core::require_same_size("over_versions", "answer", answer.scenarios.size(), "question.scenarios",
                          question.scenarios.size());
  CapacityRange range;
  range.answer = std::move(answer);
  const bool asks_for_load = question.workload.requests_per_second || question.workload.clients;
  const std::size_t scenarios = question.scenarios.size();
  range.gpus.resize(scenarios);
  range.gpus_by_version.resize(scenarios);
  range.rates_by_version.resize(scenarios);
  range.overloaded.resize(scenarios);
  for (std::size_t i = 0; i < scenarios; ++i)
    range.rates_by_version[i].push_back(range.answer.scenarios[i].requests_per_second_per_replica.value);
  for (std::size_t i = 0; asks_for_load && i < scenarios; ++i) {
    range.gpus_by_version[i].push_back(gpus_of(question, range.answer.scenarios[i]));
  }
  range.median_tpot_by_version.resize(scenarios);
  for (std::size_t i = 0; i < scenarios; ++i)
    range.median_tpot_by_version[i].push_back(median_tpot(range.answer.scenarios[i]));
  range.replicates = telling_replicates(question, range.answer);
  range.acceptances = acceptances.size();

  const std::vector<Version> versions = versions_of(question, range, acceptances);
  const std::size_t complete = run_versions(versions, hooks, range);
  if (complete < versions.size()) leave_out_incomplete(complete, range);
  for (std::size_t i = 0; i < scenarios; ++i) {
    const auto& medians = range.median_tpot_by_version[i];
    range.overloaded[i] =
        static_cast<std::size_t>(std::count(medians.begin(), medians.end(), std::numeric_limits<double>::infinity()));
    if (!range.interrupted) range.gpus[i] = range_of(range.gpus_by_version[i]);
  }
  return range;
}

std::size_t most_versions(const CapacityQuestion& question,
                          std::span<const std::vector<RequestAcceptance>> acceptances) {
  // Two tails of each of two iterations.
  const std::size_t replicates = std::min<std::size_t>(question.cost->replicates(), 4);
  const std::size_t together = question.acceptance_is_range ? std::min<std::size_t>(replicates, 2) : 0;
  return replicates + (1 + together) * acceptances.size();
}

GpuComparison compare_gpus(const CapacityRange& range, std::size_t scenario, std::size_t other) {
  const auto& ours = range.gpus_by_version.at(scenario);
  const auto& theirs = range.gpus_by_version.at(other);
  core::require_same_size("compare_gpus", "versions of the scenario", ours.size(), "those of the other", theirs.size());
  GpuComparison comparison;
  comparison.versions = ours.size();
  constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
  for (std::size_t version = 0; version < ours.size(); ++version) {
    const std::int64_t with = ours[version].value_or(never), without = theirs[version].value_or(never);
    comparison.fewer += with < without ? 1 : 0;
    comparison.more += with > without ? 1 : 0;
  }
  return comparison;
}

bool is_faster_in_all(const CapacityRange& range, std::size_t scenario, std::size_t other) {
  const auto& ours = range.median_tpot_by_version.at(scenario);
  const auto& theirs = range.median_tpot_by_version.at(other);
  for (std::size_t v = 0; v < ours.size(); ++v) {
    if (!ours[v] || !theirs.at(v) || !(*ours[v] < *theirs[v])) return false;
  }
  return true;
}

std::optional<CapacityDoubt> capacity_doubt(const CapacityQuestion& question, const CapacityRange& range,
                                            std::size_t scenario) {
  const ScenarioCapacity& asked = range.answer.scenarios.at(scenario);
  if (range.interrupted) return std::nullopt;
  const std::vector<double>& rates = range.rates_by_version.at(scenario);
  const std::size_t first = 1 + range.replicates.size();
  const double of_cost = log_width(rates, 1, first), of_acceptance = log_width(rates, first, first + range.acceptances);
  const bool extrapolated = asked.scenario.extrapolated;
  if (of_cost == 0 && of_acceptance == 0 && !extrapolated) return std::nullopt;
  const cost::Iteration iteration = iteration_at(asked.mean_batch.value, question, asked);
  CapacityDoubt doubt;
  doubt.source = extrapolated              ? planning::UncertaintySource::extrapolation
                 : of_cost > of_acceptance ? planning::UncertaintySource::cost
                                           : planning::UncertaintySource::acceptance;
  for (const GammaFrom& stretch : asked.scenario.engine.schedule)
    doubt.next.gamma = std::max(doubt.next.gamma, stretch.gamma);
  doubt.next.batch = iteration.sequences;
  doubt.next.context = iteration.context_tokens / iteration.sequences;
  doubt.next.with_baseline = doubt.source == planning::UncertaintySource::cost && doubt.next.gamma > 0;
  return doubt;
}

std::vector<ReplicaAtLoad> replica_over_versions(const CapacityQuestion& question, std::size_t scenario,
                                                 std::span<const double> loads, std::span<const std::size_t> replicates,
                                                 std::span<const std::vector<RequestAcceptance>> acceptances) {
  std::vector<ReplicaAtLoad> found = replica_at_loads(question, scenario, loads);
  const auto cover_version = [&](const CapacityQuestion& version) {
    const std::vector<ReplicaAtLoad> others = replica_at_loads(version, scenario, loads);
    for (std::size_t i = 0; i < found.size(); ++i) {
      cover(found[i].ttft_seconds, others[i].ttft_seconds);
      cover(found[i].tpot_seconds, others[i].tpot_seconds);
      cover(found[i].gap_seconds, others[i].gap_seconds);
      cover(found[i].mean_batch, others[i].mean_batch);
      cover(found[i].output_tokens_per_second, others[i].output_tokens_per_second);
    }
  };
  for (const std::size_t index : replicates) {
    CapacityQuestion version = question;
    version.cost = std::make_shared<ReplicateAsCost>(question.cost, index);
    cover_version(version);
  }
  for (const std::vector<RequestAcceptance>& acceptance : acceptances) {
    CapacityQuestion version = question;
    version.acceptance = acceptance;
    cover_version(version);
  }
  return found;
}

std::vector<GpusFrom> gpus_by_load(double requests_per_second_per_replica, std::int64_t gpus_per_replica,
                                   double up_to) {
  constexpr std::string_view function = "gpus_by_load";
  const double rate = requests_per_second_per_replica;
  core::require_in(function, "requests_per_second_per_replica", rate, std::numeric_limits<double>::min(), 1e12);
  core::require_in(function, "gpus_per_replica", gpus_per_replica, std::int64_t{1}, std::int64_t{1} << 20);
  core::require_in(function, "up_to", up_to, 0.0, 1e6 * rate);
  std::vector<GpusFrom> steps = {{0, gpus_per_replica}};
  for (std::int64_t replicas = 1; static_cast<double>(replicas) * rate < up_to; ++replicas) {
    steps.push_back({static_cast<double>(replicas) * rate, (replicas + 1) * gpus_per_replica});
  }
  return steps;
}

}  // namespace specdec::sim
