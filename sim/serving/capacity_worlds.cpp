#include "sim/serving/capacity_worlds.hpp"

#include <algorithm>
#include <array>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/core/parallel.hpp"
#include "analysis/estimate/alternatives.hpp"
#include "analysis/worlds/choice.hpp"
#include "sim/random.hpp"
#include "sim/serving/capacity_runs.hpp"
#include "sim/serving/load_correction.hpp"
#include "sim/serving/planned_scenario.hpp"
#include "sim/serving/replica_runs.hpp"
#include "sim/serving/simulated_workload.hpp"

namespace specdec::sim {
namespace {

/// Beyond each end of an interval of 95%.
constexpr double tail = 0.025;
/// Worlds of an alternative that are simulated, if it has as many: at steps of the load, and both ends of prompts'
/// time.
constexpr std::size_t worlds_by_load = 3, worlds_by_prompt = 2;

/// One version of a cost, as a cost of its own.
class VersionOfCost final : public cost::IterationCost {
 public:
  VersionOfCost(std::shared_ptr<const cost::IterationCost> cost, std::size_t version)
      : cost_(std::move(cost)), version_(version) {}

  double price(std::size_t, const cost::Iteration& iteration) const override {
    return cost_->price(version_, iteration);
  }

 private:
  std::shared_ptr<const cost::IterationCost> cost_;
  std::size_t version_;
};

void enter(const CapacityWorld& world, const CapacityQuestion& of, CapacityQuestion& question) {
  question.cost = world.version > 0 ? std::make_shared<VersionOfCost>(of.cost, world.version) : of.cost;
  question.acceptance = world.acceptance.empty() ? of.acceptance : world.acceptance;
}

cost::Iteration iteration_at(double batch, const CapacityQuestion& question, const CapacityScenario& scenario) {
  cost::Iteration iteration;
  iteration.sequences = std::max(1.0, batch);
  iteration.gamma = gamma_at(scenario.engine.schedule, iteration.sequences);
  iteration.context_tokens = iteration.sequences * question.workload.middle_context();
  return iteration;
}

/// A fit whose resampled runs leave nothing of a term may price a single sequence at nothing.
void leave_out_unpriced(const CapacityQuestion& question, std::vector<CapacityWorld>& worlds) {
  std::erase_if(worlds, [&](const CapacityWorld& world) {
    return world.version > 0 && std::any_of(question.scenarios.begin(), question.scenarios.end(), [&](const auto& one) {
             return !(question.cost->price(world.version, iteration_at(1, question, one)) > 0);
           });
  });
  if (worlds.empty()) worlds.emplace_back();
}

// ---- what the formulas give, and what simulations make of it

/// By formulas.
struct Expected {
  /// F, and 1 / seconds per output token where the answer's figures are for.
  double rate = 0, speed = 0;
  /// Requests/s that saturate; with clients none do.
  double saturated = std::numeric_limits<double>::infinity();
};

/// Of an iteration with a prompt as long as the middle context.
double prompt_seconds(const CapacityQuestion& question) {
  const double n = std::max(1.0, question.workload.middle_context());
  return question.cost->seconds({.prompt_tokens = n, .prompts = 1, .prompt_pairs = n * (n + 1) / 2});
}

/// Of one scenario at the cost and acceptance of a question. @param own  the scenario in the question's own answer
Expected expected_of(const CapacityQuestion& question, const PlannedScenario& planned, const RoundsToCover& cover,
                     const ScenarioCapacity& own) {
  if (!planned.saturation()) return {1 / question.cost->seconds({.sequences = 1}), 0};
  std::vector<planning::RoundsFrom> rounds;
  for (const GammaFrom& stretch : planned.scenario().engine.schedule)
    rounds.push_back(cover.rounds(question.acceptance, stretch.batch_low, stretch.gamma));
  if (question.workload.clients) {
    const double rate = planned.balanced_rate(*question.cost, rounds, own.mean_batch.value);
    return {rate, rate};
  }
  const BalancedLoads loads = planned.balanced_loads(*question.cost, rounds);
  const double at = own.at_requests_per_second.value;
  const double speed = at > 0 && at <= loads.most ? 1 / loads.tpot_at(at) : 0;
  if (!own.search_end) return {loads.most, speed, loads.most};
  const double load = std::exp(loads.scale.log_load_at(own.search_end->expected));
  if (load < least_load * loads.most) return {0, speed, loads.most};
  // At a lower share of what saturates, requests differ less in their times.
  const double share = own.requests_per_second_per_replica.value / own.saturated_requests_per_second_per_replica.value;
  return {std::min(std::max(load, std::sqrt(load * share * loads.most)), loads.most), speed, loads.most};
}

/// Adds worlds that are to be simulated: of each alternative `most` at equal steps of a figure between both tails; none
/// where all are alike. Shape: alternatives, expected (worlds)
void tell_worlds(std::span<const int> alternatives, const std::vector<double>& expected, std::size_t most,
                 std::vector<std::size_t>& told) {
  if (std::adjacent_find(expected.begin(), expected.end(), std::not_equal_to<>()) == expected.end()) return;
  for (std::vector<std::size_t>& places : estimate::worlds_of_alternatives(alternatives)) {
    std::stable_sort(places.begin(), places.end(),
                     [&](std::size_t a, std::size_t b) { return expected[a] < expected[b]; });
    const std::size_t count = std::min(most, places.size());
    for (std::size_t i = 0; i < count; ++i) {
      const double p = count > 1 ? tail + (1 - 2 * tail) * static_cast<double>(i) / static_cast<double>(count - 1) : 0.5;
      const std::size_t world =
          places[static_cast<std::size_t>(std::lround(p * static_cast<double>(places.size() - 1)))];
      if (std::find(told.begin(), told.end(), world) == told.end()) told.push_back(world);
    }
  }
}

double uniform_of(std::uint64_t seed, std::size_t world, std::int64_t slot) {
  return std::clamp(RandomStream(seed, world).uniform(0, slot, Purpose::synthetic), 1e-12, 1 - 1e-12);
}

// ---- figures that hold those of other worlds

/// The world's own simulation has the same error as the answer's, so only its mean is used.
void widen(SimulatedValue& value, const SimulatedValue& other) {
  value.lo = std::min(value.lo, other.value);
  value.hi = std::max(value.hi, other.value);
}

void widen(std::optional<SimulatedPercentiles>& values, const std::optional<SimulatedPercentiles>& others) {
  if (!values || !others) return;
  for (std::size_t i = 0; i < values->all().size(); ++i) widen(*values->all()[i], *others->all()[i]);
}

/// In an overloaded world no value is known but that it is larger.
void leave_open(SimulatedValue& value) { value.hi = std::numeric_limits<double>::infinity(); }

void leave_open(std::optional<SimulatedPercentiles>& values) {
  if (!values) return;
  for (SimulatedValue* const value : values->all()) leave_open(*value);
}

void widen(ReplicaAtLoad& figures, const ReplicaAtLoad& others) {
  widen(figures.ttft_seconds, others.ttft_seconds);
  widen(figures.tpot_seconds, others.tpot_seconds);
  widen(figures.gap_seconds, others.gap_seconds);
  widen(figures.mean_batch, others.mean_batch);
  widen(figures.output_tokens_per_second, others.output_tokens_per_second);
}

/// All but the largest load.
void widen(ScenarioCapacity& scenario, const ScenarioCapacity& other) {
  widen(scenario.saturated_requests_per_second_per_replica, other.saturated_requests_per_second_per_replica);
  if (other.overloaded) {
    leave_open(scenario.ttft_seconds);
    leave_open(scenario.tpot_seconds);
    leave_open(scenario.gap_seconds);
    leave_open(scenario.mean_batch);
    // It puts out what it can.
    SimulatedValue& output = scenario.output_tokens_per_second;
    const double share = other.saturated_requests_per_second_per_replica.value / scenario.at_requests_per_second.value;
    output.lo = std::min(output.lo, share * output.value);
    return;
  }
  if (other.at_requests_per_second.value <= 0 || scenario.at_requests_per_second.value <= 0) return;
  widen(static_cast<ReplicaAtLoad&>(scenario), other);
}

/// For figures that some worlds lack.
void leave_unknown(ScenarioCapacity& scenario) {
  const auto open = [](SimulatedValue& value) {
    value.lo = 0;
    leave_open(value);
  };
  for (SimulatedValue* const value :
       {&scenario.requests_per_second_per_replica, &scenario.saturated_requests_per_second_per_replica,
        &scenario.mean_batch, &scenario.output_tokens_per_second})
    open(*value);
  for (std::optional<SimulatedPercentiles>* const values :
       {&scenario.ttft_seconds, &scenario.tpot_seconds, &scenario.gap_seconds}) {
    if (!*values) continue;
    for (SimulatedValue* const value : (*values)->all()) open(*value);
  }
}

// ---- accelerators

/// Those that the load needs of replicas that take so many requests/s, or clients, each; those given, if these do.
std::optional<std::int64_t> gpus_with(const CapacityQuestion& question, double most) {
  const Workload& workload = question.workload;
  const double asked = workload.clients ? static_cast<double>(*workload.clients) : *workload.requests_per_second;
  if (!(most > 0)) return std::nullopt;
  const double replicas = std::ceil(asked / most * (1 - 1e-12));
  constexpr double most_replicas = 1e15;
  if (!question.replicas)
    return static_cast<std::int64_t>(std::min(replicas, most_replicas)) * question.gpus_per_replica;
  const auto given = static_cast<double>(*question.replicas);
  return replicas <= given ? std::optional(*question.replicas * question.gpus_per_replica) : std::nullopt;
}

/// What never is comes last.
double number_of(const std::optional<std::int64_t>& gpus) {
  return gpus ? static_cast<double>(*gpus) : std::numeric_limits<double>::max();
}

std::optional<GpuRange> range_of(const ScenarioInWorlds& scenario, std::span<const int> alternatives) {
  std::optional<GpuRange> range;
  bool some_never = false;
  for (const std::vector<std::size_t>& places : estimate::worlds_of_alternatives(alternatives)) {
    std::vector<double> numbers;
    for (const std::size_t w : places) numbers.push_back(number_of(scenario.gpus[w]));
    if (numbers.empty()) continue;
    std::sort(numbers.begin(), numbers.end());
    const auto last = static_cast<double>(numbers.size() - 1);
    const double lo = numbers[static_cast<std::size_t>(std::lround(tail * last))];
    double hi = numbers[static_cast<std::size_t>(std::lround((1 - tail) * last))];
    const double never = std::numeric_limits<double>::max();
    some_never = some_never || hi == never;
    if (lo == never) continue;
    while (hi == never) {
      numbers.pop_back();
      hi = numbers.back();
    }
    if (!range) range = GpuRange{static_cast<std::int64_t>(lo), static_cast<std::int64_t>(hi), false};
    range->lo = std::min(range->lo, static_cast<std::int64_t>(lo));
    range->hi = std::max(range->hi, static_cast<std::int64_t>(hi));
  }
  if (range) range->some_never = some_never;
  return range;
}

// ---- one scenario

/// What a scenario gives in worlds; the more, the better.
enum Figure : std::size_t { rate, most, speed, figure_count };
using Corrections = std::array<LoadCorrection, figure_count>;

/// A figure as the formulas expect it, and as simulations give it.
struct FigureInWorlds {
  /// The answer's, that of its first replication alone, and what is expected of it.
  double answer = 0, once = 0, own_expected = 0;
  /// [world]; [simulated world]
  std::vector<double> expected = {}, simulated = {};

  /// Where less is expected, nothing is given: between what simulated worlds with and without any expect.
  double least(std::span<const std::size_t> worlds) const {
    double nothing = 0, something = std::numeric_limits<double>::infinity();
    const auto look = [&](double there, double given) {
      if (given > 0 && there > 0) {
        something = std::min(something, there);
      } else {
        nothing = std::max(nothing, there);
      }
    };
    look(own_expected, once);
    for (std::size_t i = 0; i < worlds.size(); ++i) look(expected[worlds[i]], simulated[i]);
    return nothing > 0 ? std::sqrt(std::min(nothing, something) * something) : 0;
  }
};

/// One scenario of a question in its worlds.
class ScenarioOverWorlds {
 public:
  ScenarioOverWorlds(const CapacityQuestion& question, std::size_t i, const core::RunHooks& hooks,
                     CapacityInWorlds& found)
      : asked_(question),
        hooks_(hooks),
        worlds_(found.worlds),
        own_(found.answer.scenarios[i]),
        found_(found.scenarios[i]),
        covered_(own_),
        alone_(question),
        place_(i) {
    alone_.scenarios = {question.scenarios[i]};
    alone_.finds_rate_intervals = false;
    alone_.replications = 1;
    if (!alone_.replicas) alone_.replicas = own_.replicas;
    if (asks_for_load() && own_.meets_load) {
      alone_.figures_at = own_.at_clients > 0 ? ReplicaLoad{.clients = own_.at_clients}
                                              : ReplicaLoad{own_.at_requests_per_second.value};
    }
  }

  /// Finds what is expected in all worlds, and simulates some. @throws Interrupted
  void run(std::span<const int> alternatives, RequestSets& sets) {
    const std::vector<SimulatedRequest> requests = planned_requests(alone_, sets);
    const std::vector<PlannedScenario> planned = plan_scenarios(alone_, requests);
    const RoundsToCover cover = rounds_to_cover(alone_, requests);
    const auto expected_in = [&](const CapacityWorld& world) {
      if (hooks_.interrupted()) throw Interrupted();
      enter(world, asked_, alone_);
      return expected_of(alone_, planned.front(), cover, own_);
    };
    const Expected own = expected_in({});
    const double own_prompt = prompt_seconds(alone_);
    const ScenarioCapacity once = simulate({}, sets);
    for (const Figure figure : {rate, most, speed})
      figures_[figure] = {value(figure, own_), value(figure, once), figure == speed ? own.speed : own.rate};
    for (const CapacityWorld& world : worlds_) {
      const Expected here = expected_in(world);
      for (const Figure figure : {rate, most, speed})
        figures_[figure].expected.push_back(figure == speed ? here.speed : here.rate);
      const double share = own_.saturated_requests_per_second_per_replica.value / own.saturated;
      saturated_.push_back(share > 0 ? share * here.saturated : std::numeric_limits<double>::infinity());
      const double prompt = prompt_seconds(alone_) / own_prompt;
      prompts_.push_back(prompt > 0 && std::isfinite(prompt) ? prompt : 1);
    }
    tell_worlds(alternatives, figures_[rate].expected, worlds_by_load, found_.simulated);
    tell_worlds(alternatives, prompts_, worlds_by_prompt, found_.simulated);
    for (const std::size_t w : found_.simulated) {
      const ScenarioCapacity there = simulate(worlds_[w], sets);
      widen(covered_, there);
      if (asked_.workload.clients)
        widen(covered_.requests_per_second_per_replica, there.requests_per_second_per_replica);
      found_.overloaded += there.overloaded ? 1 : 0;
      for (const Figure figure : {rate, most, speed}) figures_[figure].simulated.push_back(value(figure, there));
    }
  }

  /// Adds the simulated worlds.
  void tell(Corrections& corrections) const {
    for (const Figure figure : {rate, most, speed}) {
      const FigureInWorlds& of = figures_[figure];
      for (std::size_t i = 0; i < found_.simulated.size(); ++i) {
        const std::size_t w = found_.simulated[i];
        const double expected = of.expected[w] / of.own_expected, given = of.simulated[i] / of.once;
        if (expected > 0 && given > 0 && std::isfinite(expected * given))
          corrections[figure].add(expected, prompts_[w], given);
      }
    }
  }

  void correct(const Corrections& corrections, std::span<const int> alternatives) {
    found_.speeds = corrected(speed, corrections);
    found_.rates = corrected(rate, corrections);
    // A correction may go beyond what a world saturates at.
    for (std::size_t w = 0; w < saturated_.size(); ++w) found_.rates[w] = std::min(found_.rates[w], saturated_[w]);
    if (asks_for_load()) {
      for (const double each : asked_.workload.clients ? corrected(most, corrections) : found_.rates)
        found_.gpus.push_back(gpus_with(asked_, whole(each)));
      found_.gpu_range = range_of(found_, alternatives);
    }
    if (!asked_.workload.clients) {
      const estimate::Interval ci95 = worlds::spread_of(found_.rates, alternatives).ci95;
      SimulatedValue& its = covered_.requests_per_second_per_replica;
      its = {its.value, std::min(its.lo, ci95.lo), std::max(its.hi, ci95.hi)};
    }
    own_ = std::move(covered_);
  }

 private:
  bool asks_for_load() const { return asked_.workload.requests_per_second || asked_.workload.clients; }
  double value(Figure figure, const ScenarioCapacity& scenario) const {
    if (figure == speed)
      return scenario.overloaded || !scenario.tpot_seconds ? 0 : 1 / scenario.tpot_seconds->p50.value;
    if (!asked_.workload.clients) return scenario.requests_per_second_per_replica.value;
    return figure == most ? static_cast<double>(scenario.clients_within_limits) : scenario.at_requests_per_second.value;
  }
  /// Clients are whole, and no more than there are.
  double whole(double takes) const {
    if (!asked_.workload.clients) return takes;
    return std::min(std::floor(takes + 1e-9), static_cast<double>(*asked_.workload.clients));
  }

  ScenarioCapacity simulate(const CapacityWorld& world, RequestSets& sets) {
    enter(world, asked_, alone_);
    CapacityAnswer answer = plan_capacity(alone_, {{}, hooks_.interrupt}, sets, &own_);
    if (answer.interrupted) throw Interrupted();
    return std::move(answer.scenarios.front());
  }

  /// [world]
  std::vector<double> corrected(Figure figure, const Corrections& corrections) const {
    const FigureInWorlds& of = figures_[figure];
    const LoadCorrection& correction = corrections[figure];
    const SimulatedValue& simulated = own_.requests_per_second_per_replica;
    const boost::math::normal normal;
    // The law behind the answer's own interval.
    const boost::math::students_t student(static_cast<double>(std::max<std::int64_t>(2, asked_.replications) - 1));
    const double error = simulated.lo > 0 && std::isfinite(simulated.hi)
                             ? std::log(simulated.hi / simulated.lo) / 2 / boost::math::quantile(student, 1 - tail)
                             : 0;
    const bool is_known = of.answer > 0 && of.own_expected > 0;
    const double least = of.least(found_.simulated);
    std::vector<double> values;
    for (std::size_t w = 0; w < of.expected.size(); ++w) {
      // The simulation's error is that of all scenarios, which share their requests; the scatter is each one's own.
      const double noise = error * boost::math::quantile(student, uniform_of(asked_.seed, w, 0)) +
                           correction.scatter() * boost::math::quantile(normal, uniform_of(asked_.seed, w, 1 + slot()));
      const double there = of.expected[w];
      const bool gives = there > 0 && there >= least;
      const double given = !gives     ? 0
                           : is_known ? of.answer * correction.at(there / of.own_expected, prompts_[w])
                                      : there;
      values.push_back(given * std::exp(noise));
    }
    return values;
  }
  std::int64_t slot() const { return static_cast<std::int64_t>(place_); }

  const CapacityQuestion& asked_;
  const core::RunHooks& hooks_;
  const std::vector<CapacityWorld>& worlds_;
  /// The answer's, and those that it becomes part of.
  ScenarioCapacity& own_;
  ScenarioInWorlds& found_;
  ScenarioCapacity covered_;
  CapacityQuestion alone_;
  std::size_t place_;
  std::array<FigureInWorlds, figure_count> figures_ = {};
  /// [world]: the most that it takes, requests/s, and seconds of a prompt over those of the answer's own world.
  std::vector<double> saturated_, prompts_;
};

// ---- the choice

/// Output per accelerator and second in a world, in requests.
double output_per_gpu(const CapacityQuestion& question, const ScenarioInWorlds& scenario, std::size_t world) {
  const auto each = static_cast<double>(question.gpus_per_replica);
  const double rate = scenario.rates[world];
  const std::optional<double>& load = question.workload.requests_per_second;
  if (!load) return scenario.gpus.empty() || scenario.gpus[world] ? rate / each : 0;
  if (question.replicas) {
    const auto replicas = static_cast<double>(*question.replicas);
    return std::min(*load, rate * replicas) / (replicas * each);
  }
  return scenario.gpus[world] ? *load / static_cast<double>(*scenario.gpus[world]) : 0;
}

/// Shares of the best scenario's output in each world, behind a first option of 1.
worlds::Table shares_of_best(const CapacityQuestion& question, const CapacityInWorlds& found) {
  worlds::Table table;
  table.alternative = found.alternatives();
  std::vector<double> best(found.worlds.size());
  table.options.emplace_back(found.worlds.size(), 1.0);
  for (const ScenarioInWorlds& scenario : found.scenarios) {
    std::vector<double>& outputs = table.options.emplace_back();
    for (std::size_t w = 0; w < found.worlds.size(); ++w) {
      outputs.push_back(output_per_gpu(question, scenario, w));
      best[w] = std::max(best[w], outputs.back());
    }
  }
  for (std::size_t option = 1; option < table.options.size(); ++option) {
    for (std::size_t w = 0; w < best.size(); ++w)
      table.options[option][w] = best[w] > 0 ? table.options[option][w] / best[w] : 1;
  }
  return table;
}

void choose(const CapacityQuestion& question, CapacityInWorlds& found) {
  CapacityAnswer& answer = found.answer;
  const std::vector<double> regrets = worlds::regrets_of(shares_of_best(question, found), 0);
  const auto regret = [&](std::size_t s) { return regrets[s + 1]; };
  std::optional<std::size_t>& best = answer.recommended;
  if (!best) return;
  std::size_t least = *best;
  for (std::size_t s = 0; s < answer.scenarios.size(); ++s)
    if (answer.scenarios[s].meets_load && regret(s) < regret(least)) least = s;
  if (regret(*best) > regret(least) + worlds::ChoiceOptions{}.min_gain) best = least;
  found.regret = regret(*best);
}

/// ln(largest / smallest) of the central 95%.
double log_width(const std::vector<double>& values, const std::vector<int>& alternatives) {
  const estimate::Interval ci95 = worlds::spread_of(values, alternatives).ci95;
  return ci95.lo > 0 ? std::log(ci95.hi / ci95.lo) : std::numeric_limits<double>::infinity();
}

}  // namespace

std::vector<int> CapacityInWorlds::alternatives() const {
  std::vector<int> alternatives;
  for (const CapacityWorld& world : worlds) alternatives.push_back(world.alternative);
  return alternatives;
}

CapacityInWorlds in_worlds(const CapacityQuestion& question, CapacityAnswer answer, std::vector<CapacityWorld> worlds,
                           const core::RunHooks& hooks) {
  core::require_same_size("in_worlds", "answer", answer.scenarios.size(), "question.scenarios",
                          question.scenarios.size());
  if (worlds.empty()) throw std::invalid_argument("in_worlds: worlds are none, but must be one or more");
  CapacityInWorlds found;
  found.answer = std::move(answer);
  found.worlds = std::move(worlds);
  leave_out_unpriced(question, found.worlds);
  const std::vector<int> alternatives = found.alternatives();
  CapacityQuestion once = question;
  once.replications = 1;
  const std::size_t scenarios = question.scenarios.size();
  const std::int64_t threads = std::min(question.threads, static_cast<std::int64_t>(scenarios));
  std::vector<RequestSets> requests;
  for (std::int64_t thread = 0; thread < threads; ++thread) requests.push_back(requests_of(once));
  found.scenarios.resize(scenarios);
  std::vector<ScenarioOverWorlds> over;
  for (std::size_t i = 0; i < scenarios; ++i) over.emplace_back(question, i, hooks, found);
  std::mutex telling;
  std::size_t finished = 0;
  try {
    core::for_each_index(static_cast<std::int64_t>(scenarios), threads, [&](std::int64_t index, std::int64_t thread) {
      over[static_cast<std::size_t>(index)].run(alternatives, requests[static_cast<std::size_t>(thread)]);
      const std::scoped_lock lock(telling);
      hooks.tell(static_cast<double>(++finished) / static_cast<double>(scenarios));
    });
  } catch (const Interrupted&) {
    found.interrupted = true;
    found.scenarios.assign(scenarios, {});
    for (ScenarioCapacity& scenario : found.answer.scenarios) leave_unknown(scenario);
    return found;
  }
  Corrections corrections;
  for (const ScenarioOverWorlds& scenario : over) scenario.tell(corrections);
  for (ScenarioOverWorlds& scenario : over) scenario.correct(corrections, alternatives);
  choose(question, found);
  return found;
}

GpuShares compare_gpus(const ScenarioInWorlds& ours, const ScenarioInWorlds& theirs,
                       std::span<const int> alternatives) {
  core::require_same_size("compare_gpus", "worlds of the scenario", ours.gpus.size(), "those of the other",
                          theirs.gpus.size());
  std::vector<double> saved, added;
  for (std::size_t w = 0; w < ours.gpus.size(); ++w) {
    const double with = number_of(ours.gpus[w]), without = number_of(theirs.gpus[w]);
    saved.push_back(with < without ? 1 : 0);
    added.push_back(with > without ? 1 : 0);
  }
  return {worlds::share_at_least(saved, alternatives, 1), worlds::share_at_least(added, alternatives, 1)};
}

std::string_view name_of(UncertaintySource source) {
  return source == UncertaintySource::acceptance ? "acceptance" : "cost";
}

std::optional<CapacityDoubt> capacity_doubt(const CapacityQuestion& question, const CapacityInWorlds& worlds,
                                            std::size_t scenario) {
  const ScenarioCapacity& asked = worlds.answer.scenarios.at(scenario);
  if (worlds.interrupted) return std::nullopt;
  const cost::Iteration iteration = iteration_at(asked.mean_batch.value, question, asked.scenario);
  const RoundsToCover rounds({SimulatedRequest{0, 1, 1000}});
  std::vector<double> seconds, tokens;
  for (const CapacityWorld& world : worlds.worlds) {
    seconds.push_back(question.cost->price(world.version, iteration));
    const auto& acceptance = world.acceptance.empty() ? question.acceptance : world.acceptance;
    tokens.push_back(iteration.gamma > 0 ? rounds.rounds(acceptance, 1, iteration.gamma).tokens_per_step : 1);
  }
  const std::vector<int> alternatives = worlds.alternatives();
  const double of_cost = log_width(seconds, alternatives), of_acceptance = log_width(tokens, alternatives);
  if (of_cost == 0 && of_acceptance == 0) return std::nullopt;
  CapacityDoubt doubt;
  doubt.source = of_cost > of_acceptance ? UncertaintySource::cost : UncertaintySource::acceptance;
  doubt.next.gamma = largest_gamma_of(asked.scenario.engine.schedule);
  doubt.next.batch = iteration.sequences;
  doubt.next.context = iteration.context_tokens / iteration.sequences;
  doubt.next.with_baseline = doubt.source == UncertaintySource::cost && doubt.next.gamma > 0;
  return doubt;
}

std::vector<ReplicaAtLoad> replica_in_worlds(const CapacityQuestion& question, std::size_t scenario,
                                             std::span<const double> loads, const CapacityInWorlds& worlds) {
  std::vector<ReplicaAtLoad> found = replica_at_loads(question, scenario, loads);
  CapacityQuestion one = question;
  one.replications = 1;
  RequestSets requests = requests_of(one);
  for (const std::size_t w : worlds.scenarios.at(scenario).simulated) {
    enter(worlds.worlds[w], question, one);
    const std::vector<ReplicaAtLoad> others = replica_at_loads(one, scenario, loads, requests);
    for (std::size_t i = 0; i < found.size(); ++i) widen(found[i], others[i]);
  }
  return found;
}

}  // namespace specdec::sim
