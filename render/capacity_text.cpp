#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "planner/benchmark_command.hpp"
#include "render/capacity.hpp"
#include "render/plan.hpp"
#include "render/table.hpp"
#include "render/text.hpp"

namespace specdec::render {
namespace {

using planner::Capacity;

using sim::ScenarioCapacity;
using sim::SimulatedValue;

std::string shown(double value) { return brief(value, 3); }

/// A figure of a scenario: "12.3 (95% 11.9 to 12.6)", "12.3 (95% 11.9 or more)"; the value alone if the interval
/// is narrower than the printed digits, or unknown. A typed range of acceptance applies to everything except plain
/// decoding.
std::string with_interval(const Capacity& r, const ScenarioCapacity& of, const SimulatedValue& value,
                          double factor = 1) {
  const std::string middle = shown(factor * value.value);
  if (r.in_worlds.interrupted) return middle;
  const std::string lo = shown(factor * value.lo);
  const std::string hi = std::isinf(value.hi) ? " or more" : " to " + shown(factor * value.hi);
  const char* const name = r.is_range && !sim::is_plain(of.scenario) ? "range" : "95%";
  return lo == middle && hi == " to " + middle ? middle : fmt::format("{} ({} {}{})", middle, name, lo, hi);
}

std::string milliseconds(const SimulatedValue& value) { return shown(1000 * value.value); }

/// "gamma 3", "the schedule 1-8:3", "speculation" of plain decoding; with max_num_seqs if several are compared.
std::string name_of(const Capacity& r, std::size_t i) {
  const sim::CapacityScenario& scenario = r.scenarios()[i].scenario;
  std::string text = sim::is_plain(scenario)                 ? std::string("speculation")
                     : scenario.name.starts_with("schedule") ? "the " + scenario.name
                                                             : scenario.name;
  const bool several = std::any_of(r.scenarios().begin(), r.scenarios().end(), [&](const ScenarioCapacity& other) {
    return other.scenario.engine.max_num_seqs != scenario.engine.max_num_seqs;
  });
  if (several) text += fmt::format(" at {} sequences", scenario.engine.max_num_seqs);
  return text;
}

/// "with gamma 3", "without speculation".
std::string way(const Capacity& r, std::size_t i) {
  return (sim::is_plain(r.scenarios()[i].scenario) ? "without " : "with ") + name_of(r, i);
}

std::string gpus_text(const Capacity& r, std::int64_t gpus) {
  const std::int64_t each = r.simulation.gpus_per_replica;
  const std::int64_t replicas = gpus / each;
  if (gpus == 1) return "1 GPU";
  if (each == 1) return fmt::format("{} GPUs", gpus);
  return fmt::format("{} GPUs ({} replica{} of {})", gpus, replicas, replicas == 1 ? "" : "s", each);
}

/// "4 to 16", "4 or more", or one number.
std::string gpu_range_text(const std::optional<sim::GpuRange>& range, const std::optional<std::int64_t>& gpus) {
  if (!range) return gpus ? fmt::format("{}", *gpus) : "no number of";
  if (range->some_never) return fmt::format("{} or more", range->lo);
  return range->lo == range->hi ? fmt::format("{}", range->lo) : fmt::format("{} to {}", range->lo, range->hi);
}

/// How sure it is that a scenario takes the load, on any number of GPUs or by the given replicas: "76% sure".
std::string sureness_text(const Capacity& r, std::size_t i) {
  std::vector<double> takes;
  for (const auto& gpus : r.in_worlds.scenarios[i].gpus) takes.push_back(gpus ? 1 : 0);
  const double share = worlds::share_at_least(takes, r.in_worlds.alternatives(), 1);
  return fmt::format("{}% sure", brief(std::round(100 * share), 3));
}

std::string limits_text(const sim::CapacityLimits& asked) {
  std::vector<std::string> limits;
  if (asked.ttft_seconds) limits.push_back(fmt::format("{} ms TTFT", brief(1000 * *asked.ttft_seconds)));
  if (asked.tpot_seconds) limits.push_back(fmt::format("{} ms TPOT", brief(1000 * *asked.tpot_seconds)));
  if (limits.empty()) return "";
  return fmt::format(" within {} at p{}", fmt::join(limits, " and "), brief(asked.percentile));
}

std::string load_text(const Capacity& r) {
  if (const auto& clients = r.simulation.workload.clients)
    return fmt::format("{} request{} in flight", *clients, *clients == 1 ? "" : "s");
  const std::string rate = brief(r.simulation.workload.requests_per_second.value_or(0));
  return fmt::format("{} request{}/s", rate, rate == "1" ? "" : "s");
}

std::string about_impossible(const Capacity& r) {
  return fmt::format("The runs cannot be as they say: {}. This is by what they say, and is not sure. ", r.impossible);
}

/// "1 replica", "4 replicas"
std::string replicas_text(const Capacity& r) {
  return fmt::format("{} replica{}", *r.simulation.replicas, *r.simulation.replicas == 1 ? "" : "s");
}

/// "3 draft tokens" with a noun of "draft token"; of a schedule its name, with the preposition before it.
std::string drafts_of(const Capacity& r, std::size_t i, std::string_view noun, std::string_view preposition = "") {
  const std::optional<std::int64_t> gamma = planner::gamma_of(r.scenarios()[i].scenario);
  const std::string name = name_of(r, i), of_gamma = fmt::format("gamma {}", gamma.value_or(0));
  return gamma && name.starts_with(of_gamma) ? counted(*gamma, noun) + name.substr(of_gamma.size())
                                             : std::string(preposition) + name;
}

/// "9.74 requests/s per replica, 19.5 by 8 GPUs (2 replicas of 4)"
std::string most_text(const Capacity& r, std::size_t i, std::string_view unit) {
  const std::string each = shown(r.scenarios()[i].requests_per_second_per_replica.value);
  const std::optional<double> together = r.requests_per_second_together(i);
  if (!together) return fmt::format("{}{}", each, unit);
  return fmt::format("{}{}, {} by {}", each, unit, shown(*together),
                     gpus_text(r, r.replicas_that_fit() * r.simulation.gpus_per_replica));
}

/// The largest load of a replica.
std::string largest_load_action(const Capacity& r) {
  const std::size_t best = *r.answer().recommended, plain = r.plain();
  constexpr std::string_view unit = " requests/s per replica";
  if (best == plain)
    return fmt::format("{}: up to {}.", r.acceptance.empty() ? "Without speculation" : "Do not draft",
                       most_text(r, best, unit));
  return fmt::format("Draft {}: up to {}; without speculation {}.", drafts_of(r, best, "token", "with "),
                     most_text(r, best, unit),
                     most_text(r.of_plain(), r.of_plain().plain(), r.plain_elsewhere ? " per replica" : ""));
}

/// The number of GPUs that a load needs.
std::string gpus_action(const Capacity& r) {
  const std::size_t best = *r.answer().recommended, plain = r.plain();
  const ScenarioCapacity& chosen = r.scenarios()[best];
  const ScenarioCapacity& other = r.plain_scenario();
  const std::string gpus = gpus_text(r, chosen.gpus.value_or(0));
  if (r.acceptance.empty()) return fmt::format("{} without speculation; name a draft to see what it saves.", gpus);
  if (best == plain) {
    const bool may_save = r.certainty() && *r.certainty() <= worlds::Certainty::open;
    return fmt::format("{} without speculation{}.", gpus, may_save ? "" : ": drafting saves none");
  }
  if (!other.meets_load || !other.gpus)
    return fmt::format("{} with {}; without speculation no number of GPUs does.", gpus, drafts_of(r, best, "draft token"));
  if (other.gpus == chosen.gpus)
    return fmt::format("{} with {}; as many without speculation, but slower.", gpus, drafts_of(r, best, "draft token"));
  const char* const elsewhere = r.layouts && !r.layouts->plain ? ", more than there are" : "";
  return fmt::format("{} with {}; without speculation {}{}.", gpus, drafts_of(r, best, "draft token"),
                     gpus_text(r.of_plain(), *other.gpus), elsewhere);
}

/// The least that limits may be in the layout that is shown.
std::string least_times_text(const Capacity& r) {
  const sim::CapacityLimits& limits = r.simulation.limits;
  std::vector<std::string> times;
  const auto add = [&](const char* name, const auto& limit, const auto& percentiles_of) {
    double least = std::numeric_limits<double>::infinity();
    for (const ScenarioCapacity& s : r.scenarios())
      if (const auto& of = percentiles_of(s)) least = std::min(least, of->asked.value);
    if (limit && std::isfinite(least)) times.push_back(fmt::format("{} ms {}", shown(1000 * least), name));
  };
  add("TTFT", limits.ttft_seconds, [](const auto& s) { return s.ttft_seconds; });
  add("TPOT", limits.tpot_seconds, [](const auto& s) { return s.tpot_seconds; });
  if (times.empty()) return "";
  const std::int64_t gpus = r.simulation.gpus_per_replica;
  return fmt::format(" A request alone takes {} at best on {} GPU{}.", fmt::join(times, " and "), gpus,
                     gpus == 1 ? "" : "s");
}

/// What to set, or buy.
std::string action_of(const Capacity& r) {
  std::string text = r.impossible.empty() ? "" : about_impossible(r);
  if (r.partial) text += "Interrupted; by what was simulated until then: ";
  if (r.exceeds_gpus) text += fmt::format("More is needed than your {}: ", *r.question.gpus == 1 ? "GPU" : fmt::format("{} GPUs", *r.question.gpus));
  if (!r.answer().recommended) {
    const std::string load = r.asks_for_load() ? fmt::format("{} are not served", load_text(r)) : "No load is served";
    return text + fmt::format("{}{}{}, with or without speculation.{}", load, limits_text(r.simulation.limits),
                              r.simulation.replicas ? " by " + replicas_text(r)
                              : r.layouts           ? " on any number of GPUs"
                                                    : "",
                              least_times_text(r));
  }
  return text + (r.answers_largest_load() ? largest_load_action(r) : gpus_action(r));
}

/// In how many worlds drafting saves GPUs, or serves more; empty where nothing drafts.
std::string saving_text(const Capacity& r, const planner::Decision& decision) {
  if (!decision.speedup.share) return "";
  const auto percent_of = [](double share) { return brief(std::round(100 * share), 3); };
  const std::string verdict = capitalised(std::string(worlds::name_of(*decision.verdict)));
  const std::string share = percent_of(*decision.speedup.share);
  if (r.compared() != Capacity::Compared::gpus)
    return fmt::format("{}: drafting {} in {}% of worlds. ", verdict,
                       r.compared() == Capacity::Compared::times ? "is 5% faster" : "serves 5% more", share);
  const sim::GpuShares gpus = r.gpus_against_plain();
  return fmt::format("{}: drafting saves GPUs in {}% of worlds and needs more in {}. ", verdict, share,
                     gpus.more > 0 ? percent_of(gpus.more) + "%" : "none");
}

/// How far the figure of the first line may be off.
std::string range_sentence(const Capacity& r) {
  if (!r.answer().recommended || r.in_worlds.interrupted) return "";
  const std::size_t best = *r.answer().recommended, plain = r.plain();
  const ScenarioCapacity& chosen = r.scenarios()[best];
  if (r.answers_largest_load()) {
    const auto range = [](const ScenarioCapacity& s) {
      const SimulatedValue& value = s.requests_per_second_per_replica;
      return std::isinf(value.hi) ? shown(value.lo) + " or more" : fmt::format("{} to {}", shown(value.lo), shown(value.hi));
    };
    std::string text = fmt::format("{} requests/s", range(chosen));
    if (best != plain) text += fmt::format(", or {} without speculation", range(r.plain_scenario()));
    return text + (r.has_limits() ? "," : "") + limits_text(r.simulation.limits) + ". ";
  }
  const std::string range = gpu_range_text(r.in_worlds.scenarios[best].gpu_range, chosen.gpus);
  std::string text = range + (range == "1" ? " GPU" : " GPUs");
  const Capacity& of_plain = r.of_plain();
  if (best != plain)
    text += fmt::format(", or {} without", gpu_range_text(of_plain.in_worlds.scenarios[of_plain.plain()].gpu_range,
                                                          r.plain_scenario().gpus));
  return fmt::format("{}, for {}{}. ", text, load_text(r), limits_text(r.simulation.limits));
}

/// Whether the given replicas take the load.
std::string replicas_sentence(const Capacity& r) {
  if (!r.asks_for_load() || !r.simulation.replicas || !r.answer().recommended || r.in_worlds.interrupted) return "";
  const std::size_t best = *r.answer().recommended;
  const std::string plain = best == r.plain() ? "" : fmt::format("; without speculation {}", sureness_text(r, r.plain()));
  return fmt::format("{} {} {}: {}{}. ", replicas_text(r), *r.simulation.replicas == 1 ? "takes" : "take",
                     load_text(r), sureness_text(r, best), plain);
}

planner::Decision decision_of(const Capacity& r) {
  planner::Decision decision;
  decision.action = action_of(r);
  if (const auto& best = r.answer().recommended) {
    decision.gamma = planner::gamma_of(r.scenarios()[*best].scenario);
    decision.verdict = r.certainty();
    if (!r.partial && !r.acceptance.empty()) decision.speedup.share = r.share();
  }
  decision.certainty += saving_text(r, decision) + range_sentence(r) + replicas_sentence(r);
  if (r.calibrated == false) decision.certainty += "Nothing was timed. ";
  if (!decision.certainty.empty()) decision.certainty.pop_back();
  if (const auto doubt = r.doubt()) {
    decision.next = benchmark_command(r, *doubt);
    decision.server = planner::server_setting(planning::engine_or_vllm(r.engine), doubt->next, r.draft_kind);
  }
  return decision;
}

/// The requested load, with and without speculation.
std::string comparison(const Capacity& r) {
  if (!r.asks_for_load() || !r.answer().recommended || *r.answer().recommended == r.plain()) return "";
  const ScenarioCapacity& chosen = r.scenarios()[*r.answer().recommended];
  const ScenarioCapacity& other = r.plain_scenario();
  std::vector<std::string> parts;
  if (chosen.tpot_seconds && other.tpot_seconds) {
    parts.push_back(fmt::format("{} ms per output token at p50 instead of {}",
                                with_interval(r, chosen, chosen.tpot_seconds->p50, 1000),
                                with_interval(r.of_plain(), other, other.tpot_seconds->p50, 1000)));
  }
  // On the same GPUs at the same load both cost the same.
  const std::string with = fixed(chosen.cost_per_million_tokens, 2), without = fixed(other.cost_per_million_tokens, 2);
  if (chosen.cost_per_million_tokens && other.cost_per_million_tokens && with != without) {
    parts.push_back(fmt::format("{} per million output tokens instead of {}", with, without));
  }
  if (parts.empty()) return "";
  return wrapped(fmt::format("{}.", fmt::join(parts, "; "))) + '\n';
}

std::string interval(const SimulatedValue& value) {
  return std::isinf(value.hi) ? "-" : fmt::format("{} to {}", shown(value.lo), shown(value.hi));
}

/// A scenario of the table, of the answer or of plain decoding in another layout.
struct TableRow {
  const Capacity* answer;
  std::size_t place;

  const ScenarioCapacity& scenario() const { return answer->scenarios()[place]; }
};

std::vector<TableRow> table_rows(const Capacity& r) {
  std::vector<TableRow> rows;
  for (std::size_t i = 0; i < r.scenarios().size(); ++i) rows.push_back({&r, i});
  if (r.plain_elsewhere) rows.push_back({&r.of_plain(), r.of_plain().plain()});
  return rows;
}

/// @param is_brief  without what only theory or an operator asks for
Table scenario_table(const Capacity& r, bool is_brief) {
  using Row = TableRow;
  const ColumnLook in_full = {.shown = !is_brief};
  const std::string asked = fmt::format("p{}", brief(r.question.percentile));
  const auto tpot = [](const Row& row, SimulatedValue sim::SimulatedPercentiles::*figure) {
    const auto& seconds = row.scenario().tpot_seconds;
    return seconds ? milliseconds((*seconds).*figure) : "-";
  };
  const auto is_best = [&r](const Row& row) { return row.answer == &r && r.answer().recommended == row.place; };
  return make_table(
      table_rows(r),
      {{"", {Align::left}, [](const Row& row) { return row.scenario().scenario.name; }},
       {"seqs", in_full, [](const Row& row) { return fmt::format("{}", row.scenario().scenario.engine.max_num_seqs); }},
       {"req/s max",
        [](const Row& row) {
          return shown(row.scenario().requests_per_second_per_replica.value) +
                 (row.answer->largest_extrapolated[row.place] ? "+" : "");
        }},
       {r.is_range ? "range" : "95%",
        {},
        [](const Row& row) { return interval(row.scenario().requests_per_second_per_replica); }},
       {"GPUs", [](const Row& row) { return row.scenario().gpus ? fmt::format("{}", *row.scenario().gpus) : "-"; }},
       {"at", in_full, [](const Row& row) { return shown(row.scenario().at_requests_per_second.value); }},
       {"batch",
        [](const Row& row) {
          return shown(row.scenario().mean_batch.value) + (row.answer->price_extrapolated[row.place] ? "+" : "");
        }},
       {"TTFT " + asked,
        [](const Row& row) {
          return row.scenario().ttft_seconds ? milliseconds(row.scenario().ttft_seconds->asked) : "-";
        }},
       {"TPOT p50", [&](const Row& row) { return tpot(row, &sim::SimulatedPercentiles::p50); }},
       {asked, [&](const Row& row) { return tpot(row, &sim::SimulatedPercentiles::asked); }},
       {"cost/M",
        {.shown = r.question.price.has_value()},
        [](const Row& row) { return fixed(row.scenario().cost_per_million_tokens, 2); }},
       {"limited by",
        {Align::left},
        [&](const Row& row) {
          return fmt::format("{}{}", planning::name_of(row.scenario().limited_by), is_best(row) ? ", best" : "");
        }}},
      {}, [&](const Row& row) { return is_best(row) || sim::is_plain(row.scenario().scenario); });
}

std::string scenarios_text(const Capacity& r) {
  std::string text =
      text_of(scenario_table(r, false)) +
      "req/s max: per replica; at: requests/s per replica that the columns behind it are for; times in ms.\n";
  if (r.is_range && !r.in_worlds.interrupted)
    text += "range: over the typed acceptance, too; plain decoding has a 95% interval.\n";
  const auto any = [](const std::vector<bool>& marks) {
    return std::find(marks.begin(), marks.end(), true) != marks.end();
  };
  if (any(r.price_extrapolated) || any(r.largest_extrapolated)) {
    text += "+: batch or context outside of what was measured.\n";
  }
  return text;
}

std::string frontier_text(const Capacity& r) {
  if (r.answer().frontier.size() < 2) return "";
  std::vector<std::string> places;
  for (const std::size_t place : r.answer().frontier) places.push_back(way(r, place));
  const bool is_sized = r.asks_for_load() && !r.simulation.replicas;
  return wrapped(fmt::format("{} the cheapest to the fastest, none beaten in both: {}.{}",
                             is_sized ? "Each on the fewest GPUs that carry the load, from" : "From",
                             fmt::join(places, ", "),
                             is_sized ? " On more GPUs each is faster, which --replicas shows." : "")) +
         '\n';
}

std::string budget_text(const Capacity& r) {
  const std::optional<planner::BudgetGain> gain = r.budget_gain();
  if (!gain) return "";
  return wrapped(fmt::format("A budget of verified drafts, at its best {}: {}% {} requests/s than {}, the best of one "
                             "gamma for all.",
                             way(r, gain->budget), brief(100 * std::abs(gain->relative), 2),
                             gain->relative < 0 ? "fewer" : "more", way(r, gain->fixed))) +
         '\n';
}

/// Largest ratio of the time per token in a shown row of the frontier to that in the shown row before.
constexpr double shown_ratio = 0.85;

/// Why layouts that serve were not simulated; empty if all were, or none.
std::string left_out_text(const planner::LayoutSearch& search) {
  const auto left_out =
      std::count_if(search.layouts.begin(), search.layouts.end(),
                    [](const planner::TriedLayout& tried) { return tried.refusal.empty() && tried.simulated == 0; });
  if (left_out == 0 || search.simulated() == 0) return "";
  return fmt::format(" The other{} can be neither within them nor cheaper by formulas and their error.",
                     left_out == 1 ? "" : "s");
}

/// Why a layout was chosen.
std::string choice_text(const Capacity& r) {
  if (r.layouts->is_within_limits) return "the cheapest within the limits";
  if (r.asks_for_load() && r.answer().recommended) return "the cheapest within the limits, on more GPUs than given";
  return fmt::format("none {}is within the limits on {}",
                     r.layouts->simulated() > 0 ? "of those simulated " : "by formulas and their error ",
                     r.asks_for_load() ? "any number of GPUs" : "these GPUs");
}

/// The layouts that none beats in both cost and time, and what was chosen.
std::string layouts_text(const Capacity& r) {
  if (!r.layouts) return "";
  const planner::LayoutSearch& search = *r.layouts;
  const auto serving = std::count_if(search.layouts.begin(), search.layouts.end(),
                                     [](const planner::TriedLayout& tried) { return tried.refusal.empty(); });
  std::string text = wrapped(fmt::format(
      "{} of {} layout{} on up to {} {}, {} simulated, and {} is taken: {}.{}{}", serving, search.layouts.size(),
      search.layouts.size() == 1 ? "" : "s", search.gpus == 1 ? "1 GPU" : fmt::format("{} GPUs", search.gpus),
      serving == 1 ? "serves" : "serve",
      search.simulated() == 0   ? "none was"
      : search.simulated() == 1 ? "1 was"
                                : fmt::format("{} were", search.simulated()),
      text_of(search.layouts[search.chosen].layout), choice_text(r), left_out_text(search),
      search.frontier.empty() ? "" : " By formulas, from the cheapest to the fastest, none beaten in both:"));
  if (search.frontier.empty()) return text + "\n\n";
  std::vector<planner::LayoutPoint> rows;
  for (const planner::LayoutPoint& point : search.frontier) {
    // JSON and CSV have all of them.
    if (rows.empty() || point.tpot_seconds <= shown_ratio * rows.back().tpot_seconds) rows.push_back(point);
  }
  const Table table = make_table(
      rows, {{"layout", {Align::left}, [&](const auto& p) { return text_of(search.layouts[p.layout].layout); }},
             {"replicas", [](const auto& p) { return fmt::format("{}", p.replicas); }},
             {"", {Align::left}, [](const auto& p) { return p.scenario; }},
             {"req/s each", [](const auto& p) { return shown(p.requests_per_second_per_replica); }},
             {"batch", [](const auto& p) { return shown(p.mean_batch); }},
             {"TPOT mean", [](const auto& p) { return shown(1000 * p.tpot_seconds); }},
             {r.question.price ? "cost/M" : "GPU-s/M",
              [](const auto& p) { return shown(p.cost_per_million_tokens.value_or(1e6 * p.gpu_seconds_per_token)); }}});
  return text + '\n' + text_of(table) + '\n';
}

std::string memory_text(const Capacity& r) {
  const std::size_t place = r.shown();
  const planner::ScenarioMemory& memory = r.memory[place];
  std::string text =
      fmt::format("Cache {}: {} tokens, {} of them beyond the look-ahead slots of {} sequences", way(r, place),
                  memory.tokens, memory.left_tokens, r.scenarios()[place].scenario.engine.max_num_seqs);
  if (memory.memory) {
    const planning::KvMemory& m = *memory.memory;
    text += fmt::format("; per GPU {:.1f} GB of {:.1f} GB, after {:.1f} GB of target weights",
                        m.cache_bytes / bytes_per_gigabyte, m.usable_bytes / bytes_per_gigabyte,
                        m.target_weight_bytes / bytes_per_gigabyte);
    if (m.draft_weight_bytes > 0)
      text += fmt::format(" and {:.2f} GB of draft", m.draft_weight_bytes / bytes_per_gigabyte);
  }
  return wrapped(text + ".") + '\n';
}

/// "14.1 ms at p50, 31 at p90 and 78 at p99"
std::string gaps_text(const sim::SimulatedPercentiles& gaps) {
  return fmt::format("{} ms at p50, {} at p90 and {} at p99", milliseconds(gaps.p50), milliseconds(gaps.p90),
                     milliseconds(gaps.p99));
}

/// The pauses that a reader of the stream sees.
std::string pauses_text(const Capacity& r) {
  const std::size_t best = r.shown(), plain = r.plain();
  const auto& with = r.scenarios()[best].gap_seconds;
  const auto& without = r.plain_scenario().gap_seconds;
  if (!with) return "";
  std::string text = fmt::format("Pauses between outputs {}: {}", way(r, best), gaps_text(*with));
  if (best != plain && without) text += fmt::format("; {}: {}", way(r, plain), gaps_text(*without));
  return wrapped(text + ".") + '\n';
}

/// How to run the server for the next run, and how to give its times.
std::string calibration_of(const Capacity& r) {
  const std::optional<sim::CapacityDoubt> doubt = r.doubt();
  if (!doubt || doubt->source != sim::UncertaintySource::cost || !r.calibrated) return "";
  return wrapped(calibration_text(planning::engine_or_vllm(r.engine), doubt->next)) + '\n';
}

}  // namespace

Spoken spoken(const Capacity& r) {
  Spoken answer;
  answer.decision = decision_of(r);
  answer.table = scenario_table(r, true);
  answer.more = comparison(r) + scenarios_text(r) + '\n' + layouts_text(r) + budget_text(r) + frontier_text(r) +
                memory_text(r) + pauses_text(r) + calibration_of(r);
  return answer;
}

}  // namespace specdec::render
