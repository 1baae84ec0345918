#include "planner/load/capacity.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <utility>

#include "planner/benchmark_command.hpp"
#include "planner/load/asked_capacity.hpp"
#include "planner/lookup_drafts.hpp"
#include "planner/number_text.hpp"

namespace specdec::planner {
namespace {

using sim::CapacityScenario;

/// Relative difference of the mean time per token from that in steady state up to which a short run is long enough.
constexpr double most_steady_difference = 0.2;
/// Times of one request that the arrivals of a run are to last.
constexpr double shortest_run = 10;

/// Warns if the recommended scenario's load is within the simulation's error of the largest one.
void warn_of_edge(Capacity& c) {
  if (!c.asks_for_load() || !c.answer().recommended) return;
  const sim::ScenarioCapacity& s = c.scenarios()[*c.answer().recommended];
  const sim::CapacityLimits& limits = c.simulation.limits;
  const auto check = [&](std::string_view what, const auto& percentiles, const std::optional<double>& limit) {
    if (!limit || !percentiles || percentiles->asked.value <= *limit) return;
    c.warnings.push_back(
        {"load_within_error_of_limit",
         fmt::format("{} of {} is {} ms at p{} of all runs' requests, above its limit: the load is so close to the "
                     "largest one that some runs take it and others do not; more --replications or --num-requests tell",
                     what, s.scenario.name, brief(1000 * percentiles->asked.value), brief(limits.percentile))});
  };
  check("time to first token", s.ttft_seconds, limits.ttft_seconds);
  check("time per output token", s.tpot_seconds, limits.tpot_seconds);
}

/// True if a round of the scenario at this batch, or plain decoding there, lies outside of what was measured.
bool is_extrapolated(const cost::RoundCost& rounds, const sim::ScenarioCapacity& scenario, double batch,
                     double context) {
  cost::RoundPoint point;
  point.batch = std::max(1.0, batch);
  point.context = context;
  if (!(scenario.mean_batch.value > 0)) return false;
  if (rounds.extrapolates(point)) return true;
  point.gamma = sim::gamma_at(scenario.scenario.engine.schedule, point.batch);
  return rounds.extrapolates(point);
}

/// By the rule of plans, at the mean batch and the context halfway through the output.
void mark_extrapolated_prices(const Cost& cost, Capacity& c) {
  const double context = c.simulation.workload.middle_context();
  std::string first;
  for (const sim::ScenarioCapacity& s : c.scenarios()) {
    const double batch = s.mean_batch.value, largest = s.largest_mean_batch;
    c.price_extrapolated.push_back(is_extrapolated(*cost.rounds, s, batch, context));
    c.largest_extrapolated.push_back(is_extrapolated(*cost.rounds, s, largest, context));
    const std::size_t i = c.price_extrapolated.size() - 1;
    if (!first.empty() || !c.rests_on_extrapolated(i)) continue;
    first = c.price_extrapolated[i]
                ? fmt::format("{} runs at a mean batch of {}", s.scenario.name, brief(batch, 3))
                : fmt::format("{} takes its largest load at a mean batch of {}", s.scenario.name, brief(largest, 3));
  }
  if (first.empty()) return;
  c.warnings.push_back({"price_extrapolated",
                        fmt::format("{} and a context of {}, outside of what was measured", first, brief(context, 4))});
}

/// Warns if the runs of the scenario shown end before its load is stationary, and its times are not those of formulas.
void warn_of_steadiness(Capacity& c) {
  const sim::ScenarioCapacity& s = c.scenarios()[c.shown()];
  const sim::Workload& workload = c.simulation.workload;
  if (!(s.at_requests_per_second.value > 0) || !s.tpot_seconds || !workload.recorded.empty() || workload.clients)
    return;
  const auto steady = sim::steady_at(c.simulation, c.shown(), {s.at_requests_per_second.value});
  if (!steady) return;
  const double difference = steady->tpot_seconds / s.tpot_seconds->mean.value - 1;
  const double lasts = static_cast<double>(workload.open_requests()) / s.at_requests_per_second.value;
  const double takes = steady->tpot_seconds * workload.output_tokens.mean;
  if (std::abs(difference) <= most_steady_difference || lasts >= shortest_run * takes) return;
  c.warnings.push_back(
      {"load_not_stationary",
       fmt::format(
           "the {} requests of a run arrive within {} s, while one of them takes {} s in steady state: the mean "
           "time per output token of {} differs by {} from that of a load that goes on; more --num-requests tell",
           workload.open_requests(), brief(lasts, 3), brief(takes, 3), s.scenario.name,
           percent(std::abs(difference)))});
}

/// Warns if the requests of a run, by the user, are too few for the batch to fill before they count, and if
/// replications are so few that their intervals say little.
void warn_of_few_runs(Capacity& c) {
  const sim::ScenarioCapacity& s = c.scenarios()[c.shown()];
  const sim::Workload& workload = c.simulation.workload;
  if (workload.requests && !workload.clients) {
    const double least = sim::least_requests(s.mean_batch.value);
    if (static_cast<double>(*workload.requests) < least) {
      c.warnings.push_back(
          {"short_runs",
           fmt::format("the {} requests of a run are over before the batch of {} has filled, so that times "
                       "are too short and loads too large: --num-requests {} or more tell",
                       *workload.requests, s.scenario.name, brief(std::ceil(least), 6))});
    }
  }
  constexpr std::int64_t enough_replications = 3;
  if (c.question.replications < enough_replications) {
    c.warnings.push_back({"few_replications",
                          "two runs know little of how far they err: a 95% interval is 12.7 standard errors to either "
                          "side, where four runs, the default, leave 3.2"});
  }
}

/// Warns if more requests run together than were timed.
void warn_of_batch(const Cost& cost, Capacity& c) {
  const sim::ScenarioCapacity& s = c.scenarios()[c.shown()];
  if (!(s.mean_batch.value > 0)) return;
  const double batch = std::max(1.0, std::round(s.mean_batch.value));
  const std::string about = cost.rounds->about(batch, c.simulation.workload.middle_context());
  if (about.empty()) return;
  c.warnings.push_back({"not_timed", fmt::format("the mean batch of {} is {}, but {}", s.scenario.name,
                                                 brief(s.mean_batch.value), about)});
}

void warn_of_answer(Capacity& c) {
  const auto explain_null = [&](std::string code, std::string message) {
    c.warnings.push_back({std::move(code), std::move(message), true});
  };
  if (!c.answer().recommended) {
    c.warnings.push_back({"no_scenario_meets_the_limits",
                          c.has_limits() ? "no scenario meets the limits at any load, or at the load asked for"
                                         : "no scenario takes the load asked for"});
  }
  warn_of_edge(c);
  if (!c.question.schedule.empty()) {
    const planning::ScheduleStretch& last = c.question.schedule.back();
    const std::int64_t batches = c.question.max_num_seqs.back();
    if (last.batch_high < batches) {
      c.warnings.push_back(
          {"schedule_goes_on", fmt::format("--schedule ends at batch {}; its last gamma, {}, is taken up "
                                           "to batch {}, too",
                                           last.batch_high, last.gamma, batches)});
    }
  }
  if (c.question.verification_budget && c.acceptance_laws < 2) {
    c.warnings.push_back({"requests_alike",
                          "all requests have one acceptance, so that none has more to gain from a budget than another; "
                          "--alpha-spread, counters of requests or a recording tell how they differ"});
  }
  if (c.acceptance.empty()) explain_null("no_acceptance", "nothing is drafted: no acceptance is given");
  if (!c.question.price) explain_null("no_price", "cost_per_million_tokens is null without --price");
}

void warn_of_missing(std::size_t asked, Capacity& c) {
  const std::size_t finished = c.scenarios().size();
  std::string message = fmt::format("interrupted: {} of {} scenarios were simulated", finished, asked);
  if (c.in_worlds.interrupted) message += ", and not all of their worlds, so that no figure has an interval";
  c.warnings.push_back({"partial", message});
}

/// In the progress, the answer and its worlds count alike.
void run(const core::RunHooks& hooks, Capacity& c) {
  constexpr double first = 0.5;
  hooks.tell(0);
  sim::CapacityAnswer answer =
      sim::plan_capacity(c.simulation, {[&](double share) { hooks.tell(first * share); }, hooks.interrupt});
  if (answer.scenarios.empty()) throw QuestionError("interrupted before a scenario was simulated");
  const std::size_t asked = c.simulation.scenarios.size();
  c.simulation.scenarios.resize(answer.scenarios.size());
  c.in_worlds = sim::in_worlds(c.simulation, std::move(answer), c.worlds,
                               {[&](double share) { hooks.tell(first + (1 - first) * share); }, hooks.interrupt});
  hooks.tell(1);
  c.partial = c.answer().interrupted || c.in_worlds.interrupted;
  if (c.partial) warn_of_missing(asked, c);
}

/// @throws QuestionError if a request finds no room in the cache
void simulate(const core::RunHooks& hooks, Capacity& c) {
  try {
    run(hooks, c);
  } catch (const sim::CacheTooSmall& error) {
    const std::string needs = fmt::format("{} needs {} tokens of cache", error.request, error.needed_tokens);
    if (c.question.kv_cache_tokens) {
      refuse("--kv-cache-tokens", fmt::format("{}", *c.question.kv_cache_tokens),
             fmt::format("at least {}: {}", error.needed_tokens, needs));
    }
    throw QuestionError(fmt::format(
        "--tensor-parallel-size is {}, but {}, and these GPUs leave {}; more of them, or shorter requests, do",
        c.simulation.gpus_per_replica, needs, error.cache_tokens));
  }
}

/// In the layout that the cost states.
Capacity capacity_in_layout(std::optional<Acceptance> acceptance, Cost cost, const CapacityQuestion& question,
                            const core::RunHooks& hooks) {
  take_draft(acceptance ? &*acceptance : nullptr, cost);
  Capacity c = asked_of_found(acceptance, cost, question);
  simulate(hooks, c);
  mark_extrapolated_prices(cost, c);
  warn_of_batch(cost, c);
  warn_of_steadiness(c);
  warn_of_few_runs(c);
  warn_of_answer(c);
  return c;
}

void warn_of_gpus(Capacity& c) {
  const std::optional<std::int64_t> needed = c.scenarios()[c.shown()].gpus;
  c.exceeds_gpus = c.asks_for_load() && needed && c.question.gpus && *needed > *c.question.gpus;
  if (!c.exceeds_gpus) return;
  c.warnings.push_back({"more_gpus_than_given",
                        fmt::format("{} GPUs are wanted for the load, where {} {} given: no layout takes it on fewer",
                                    *needed, *c.question.gpus, *c.question.gpus == 1 ? "is" : "are")});
}

/// Plans plain decoding in the layout that is best for it, where that is not the one of the recommended drafts.
void compare_with_plain_elsewhere(const Cost& cost, const core::RunHooks& hooks, Capacity& c) {
  const LayoutSearch& search = *c.layouts;
  const auto& recommended = c.answer().recommended;
  const std::optional<Layout> layout = search.layout_of_plain();
  if (c.partial || !layout || *layout == search.layouts[search.chosen].layout) return;
  if (!recommended || sim::is_plain(c.scenarios()[*recommended].scenario)) return;
  const Cost placed = in_layout(cost, *layout);
  auto plain = std::make_shared<Capacity>(asked_capacity({}, placed, without_drafts(c.question)));
  for (CapacityScenario& scenario : plain->simulation.scenarios) scenario.name += ", " + text_of(*layout);
  sim::CapacityAnswer answer = sim::plan_capacity(plain->simulation, {{}, hooks.interrupt});
  if (!answer.interrupted) {
    plain->in_worlds = sim::in_worlds(plain->simulation, std::move(answer), c.worlds, {{}, hooks.interrupt});
  }
  if (answer.interrupted || plain->in_worlds.interrupted) {
    c.partial = true;
    c.warnings.push_back(
        {"partial", "interrupted before plain decoding was simulated in the layout that is best for it"});
    return;
  }
  mark_extrapolated_prices(placed, *plain);
  c.plain_elsewhere = std::move(plain);
}

/// True if nothing but the load says on how many accelerators a target is to lie.
bool leaves_layout_open(const Cost& cost, const CapacityQuestion& question) {
  if (!cost.roofline || !cost.words || question.concurrency || question.replicas) return false;
  const HardwareOptions& o = cost.words->options;
  return (question.arrival_rate || question.workload.requests_per_second) && !o.tensor_parallel && !o.data_parallel &&
         !o.expert_parallel && o.calibrate.empty();
}

}  // namespace

Capacity capacity(const std::optional<Acceptance>& acceptance, const Cost& cost, const CapacityQuestion& question,
                  const core::RunHooks& hooks) {
  require_ranges(question);
  if (acceptance && acceptance->is_of_llamacpp() && !cost.draft.of_llamacpp)
    return capacity(acceptance, with_drafts_of_llamacpp(cost), question, hooks);
  const bool has_hit_rate = cost.draft.states_lookups() || (cost::looks_up(cost.kind) && acceptance &&
                                                            acceptance->lookups && acceptance->lookups->hit_rate);
  if (question.gpus && has_hit_rate)
    throw QuestionError("--gpus is given, but does not go with hit rates, stated or counted");
  LayoutSearch search;
  if (question.gpus || (leaves_layout_open(cost, question) && !has_hit_rate))
    search = search_layouts(acceptance, cost, question, {{}, hooks.interrupt});
  if (search.layouts.empty()) return capacity_in_layout(acceptance, cost, question, hooks);
  const Cost chosen = in_layout(cost, search.layouts[search.chosen].layout);
  Capacity c = capacity_in_layout(acceptance, chosen, question, hooks);
  c.layouts = std::move(search);
  warn_of_gpus(c);
  compare_with_plain_elsewhere(cost, hooks, c);
  return c;
}

std::size_t Capacity::drafting() const {
  std::size_t best = shown();
  if (!sim::is_plain(scenarios()[best].scenario)) return best;
  const auto rate = [this](std::size_t i) { return scenarios()[i].requests_per_second_per_replica.value; };
  for (std::size_t i = 0; i < scenarios().size(); ++i) {
    if (sim::is_plain(scenarios()[i].scenario)) continue;
    if (sim::is_plain(scenarios()[best].scenario) || rate(i) > rate(best)) best = i;
  }
  return best;
}

sim::GpuShares Capacity::gpus_against_plain() const {
  return sim::compare_gpus(in_worlds.scenarios.at(drafting()), of_plain().in_worlds.scenarios.at(of_plain().plain()),
                           in_worlds.alternatives());
}

Capacity::Compared Capacity::compared() const {
  const sim::ScenarioCapacity &ours = scenarios()[drafting()], &theirs = plain_scenario();
  const bool is_plain_best = shown() != drafting();
  if (!answers_largest_load() && (is_plain_best || ours.gpus != theirs.gpus)) return Compared::gpus;
  return asks_for_load() && ours.meets_load && theirs.meets_load && ours.tpot_seconds ? Compared::times
                                                                                      : Compared::loads;
}

double Capacity::share() const {
  const Compared what = compared();
  if (what == Compared::gpus) return gpus_against_plain().fewer;
  const auto of = [what](const Capacity& answer, std::size_t i) -> const std::vector<double>& {
    const sim::ScenarioInWorlds& scenario = answer.in_worlds.scenarios.at(i);
    return what == Compared::times ? scenario.speeds : scenario.rates;
  };
  const std::vector<double>&ours = of(*this, drafting()), &theirs = of(of_plain(), of_plain().plain());
  const double each = what == Compared::times ? 1
                                              : static_cast<double>(of_plain().simulation.gpus_per_replica) /
                                                    static_cast<double>(simulation.gpus_per_replica);
  std::vector<double> speedups;
  // Where plain decoding takes nothing, anything is more.
  for (std::size_t w = 0; w < ours.size(); ++w)
    speedups.push_back(theirs[w] > 0 ? each * ours[w] / theirs[w] : ours[w] > 0 ? 2 : 1);
  return worlds::share_at_least(speedups, in_worlds.alternatives(), 1 + worlds::ChoiceOptions{}.min_gain);
}

std::optional<worlds::Certainty> Capacity::certainty() const {
  if (!answer().recommended) return std::nullopt;
  if (partial) return worlds::Certainty::open;
  if (sim::is_plain(scenarios()[drafting()].scenario)) return worlds::Certainty::no;
  return worlds::certainty_of(share());
}

std::int64_t Capacity::replicas_that_fit() const {
  return question.gpus.value_or(simulation.gpus_per_replica) / simulation.gpus_per_replica;
}

std::optional<double> Capacity::requests_per_second_together(std::size_t i) const {
  if (!question.gpus || asks_for_load()) return std::nullopt;
  return static_cast<double>(replicas_that_fit()) * scenarios()[i].requests_per_second_per_replica.value;
}

std::optional<BudgetGain> Capacity::budget_gain() const {
  const auto rate = [&](std::size_t i) {
    const sim::ScenarioCapacity& s = scenarios()[i];
    return s.at_clients > 0 ? s.at_requests_per_second.value : s.requests_per_second_per_replica.value;
  };
  std::optional<std::size_t> with, fixed;
  for (std::size_t i = 0; i < scenarios().size(); ++i) {
    const CapacityScenario& scenario = scenarios()[i].scenario;
    std::optional<std::size_t>& best = scenario.engine.verification_budget ? with : fixed;
    if (scenario.engine.verification_budget || gamma_of(scenario))
      if (!best || rate(i) > rate(*best)) best = i;
  }
  if (!with || !fixed || !(rate(*fixed) > 0)) return std::nullopt;
  return BudgetGain{*with, *fixed, rate(*with) / rate(*fixed) - 1};
}

std::optional<std::int64_t> gamma_of(const CapacityScenario& scenario) {
  const auto& schedule = scenario.engine.schedule;
  const std::int64_t gamma = schedule.front().gamma;
  const bool one = std::all_of(schedule.begin(), schedule.end(),
                               [gamma](const sim::GammaFrom& stretch) { return stretch.gamma == gamma; });
  return one ? std::optional(gamma) : std::nullopt;
}

std::optional<sim::CapacityDoubt> Capacity::doubt() const {
  auto found = sim::capacity_doubt(simulation, in_worlds, drafting());
  const bool is_done = found && found->source == sim::UncertaintySource::cost && calibrated.value_or(false);
  return is_done ? std::nullopt : found;
}

std::string benchmark_command(const Capacity& c, const sim::CapacityDoubt& doubt) {
  std::optional<PromptLengths> lengths;
  const sim::Workload& workload = c.simulation.workload;
  if (workload.recorded.empty()) lengths = PromptLengths{workload.prompt_tokens.mean, workload.output_tokens.mean};
  const planning::Engine engine = planning::engine_or_vllm(c.engine);
  return benchmark_command(engine, served_name(engine, c.served_model), doubt.next, lengths);
}

std::size_t Capacity::plain() const {
  const auto key = [](const sim::ScenarioCapacity& s) {
    const std::int64_t gpus = s.meets_load && s.gpus ? *s.gpus : std::numeric_limits<std::int64_t>::max();
    return std::tuple(!sim::is_plain(s.scenario), gpus, -s.requests_per_second_per_replica.value);
  };
  const auto best = std::min_element(scenarios().begin(), scenarios().end(),
                                     [&](const auto& a, const auto& b) { return key(a) < key(b); });
  return static_cast<std::size_t>(best - scenarios().begin());
}

}  // namespace specdec::planner
