#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
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

/// A figure of a scenario: "12.3 (95% 11.9 to 12.6)", "12.3 (95% 11.9 to not carried)"; the value alone if the interval
/// is narrower than the printed digits, or unknown. A typed range of acceptance applies to everything except plain
/// decoding.
std::string with_interval(const Capacity& r, const ScenarioCapacity& of, const SimulatedValue& value,
                          double factor = 1) {
  const std::string middle = shown(factor * value.value);
  if (r.range.interrupted) return middle;
  const std::string lo = shown(factor * value.lo);
  const std::string hi = std::isinf(value.hi) ? "not carried" : shown(factor * value.hi);
  const char* const name = r.is_range && !sim::is_plain(of.scenario) ? "range" : "95%";
  return lo == middle && hi == middle ? middle : fmt::format("{} ({} {} to {})", middle, name, lo, hi);
}

std::string milliseconds(const SimulatedValue& value) { return shown(1000 * value.value); }

/// "with gamma 3", "with the schedule", "without speculation"; with max_num_seqs if several are compared.
std::string way(const Capacity& r, std::size_t i) {
  const sim::CapacityScenario& scenario = r.scenarios()[i].scenario;
  std::string text = sim::is_plain(scenario)                 ? std::string("without speculation")
                     : scenario.name.starts_with("schedule") ? "with the " + scenario.name
                                                             : "with " + scenario.name;
  const bool several = std::any_of(r.scenarios().begin(), r.scenarios().end(), [&](const ScenarioCapacity& other) {
    return other.scenario.engine.max_num_seqs != scenario.engine.max_num_seqs;
  });
  if (several) text += fmt::format(" at {} sequences", scenario.engine.max_num_seqs);
  return text;
}

/// Including the basis of its acceptance.
std::string marked_way(const Capacity& r, std::size_t i) {
  return way(r, i) + (r.is_extrapolated(i) ? " (extrapolated)" : "");
}

std::string gpus_text(const Capacity& r, std::int64_t gpus) {
  const std::int64_t each = r.simulation.gpus_per_replica;
  const std::int64_t replicas = gpus / each;
  if (gpus == 1) return "1 GPU";
  if (each == 1) return fmt::format("{} GPUs", gpus);
  return fmt::format("{} GPUs ({} replica{} of {})", gpus, replicas, replicas == 1 ? "" : "s", each);
}

/// Empty if it is one number.
std::string gpu_range_text(const std::optional<sim::GpuRange>& range) {
  if (!range || (range->lo == range->hi && !range->some_never)) return "";
  const std::string span =
      range->lo == range->hi ? fmt::format("{}", range->lo) : fmt::format("{} to {}", range->lo, range->hi);
  return range->some_never ? fmt::format("{} (in some cases no number)", span) : span;
}

/// ", fewer in 3 of 3 cases."
std::string fewer_text(const sim::GpuComparison& cases) {
  return fmt::format(", fewer in {} of {} cases{}{}.", cases.fewer, cases.cases,
                     cases.more > 0 ? fmt::format(" and more in {}", cases.more) : "",
                     0 == cases.fewer || cases.fewer == cases.cases ? ""
                     : cases.more > 0                               ? ": whether drafts save GPUs cannot be told"
                                                                    : " and more in none");
}

/// Verdicts of the given replicas by the versions, if those differ; empty if all agree with the answer.
std::string replicas_range_text(const Capacity& r) {
  const auto taken = [&](std::size_t i) {
    const auto& cases = r.range.gpus_by_case[i];
    return std::count_if(cases.begin(), cases.end(), [](const auto& gpus) { return gpus.has_value(); });
  };
  const std::size_t plain = r.plain();
  std::size_t best = r.answer().recommended.value_or(plain);
  for (std::size_t i = 0; !r.answer().recommended && i < r.scenarios().size(); ++i) {
    const bool drafts_alike = best == plain && taken(i) == taken(best) && !sim::is_plain(r.scenarios()[i].scenario);
    if (taken(i) > taken(best) || drafts_alike) best = i;
  }
  const auto cases = static_cast<std::ptrdiff_t>(r.range.gpus_by_case[best].size());
  const auto is_sure = [&](std::size_t i) { return taken(i) == (r.scenarios()[i].meets_load ? cases : 0); };
  if (is_sure(best) && is_sure(plain)) return "";
  std::string text = fmt::format(" Over what is uncertain: in {} of {} cases {}", taken(best), cases, way(r, best));
  if (best != plain) {
    text += taken(plain) > 0 ? fmt::format(" and in {} {}", taken(plain), way(r, plain))
                             : fmt::format(" and in none {}", way(r, plain));
  }
  return text + ", so that it cannot be told.";
}

std::string limits_text(const sim::CapacityLimits& asked) {
  std::vector<std::string> limits;
  if (asked.ttft_seconds) limits.push_back(fmt::format("{} ms to the first token", brief(1000 * *asked.ttft_seconds)));
  if (asked.tpot_seconds) limits.push_back(fmt::format("{} ms per output token", brief(1000 * *asked.tpot_seconds)));
  if (limits.empty()) return "";
  return fmt::format(" within {} at p{}", fmt::join(limits, " and "), brief(asked.percentile));
}

std::string load_text(const Capacity& r) {
  if (const auto& clients = r.simulation.workload.clients)
    return fmt::format("{} request{} in flight", *clients, *clients == 1 ? "" : "s");
  return fmt::format("{} requests/s", brief(r.simulation.workload.requests_per_second.value_or(0)));
}

std::string about_impossible(const Capacity& r) {
  return fmt::format("The runs cannot be as they say: {}. What follows is by what they say, and is not sure.",
                     r.impossible);
}

/// "1 replica", "4 replicas"
std::string replicas_text(const Capacity& r) {
  return fmt::format("{} replica{}", *r.simulation.replicas, *r.simulation.replicas == 1 ? "" : "s");
}

/// "by the estimate " if the recommended scenario is not faster than plain decoding, or than all that draft, in every
/// case.
std::string by_estimate_faster(const Capacity& r) {
  const std::size_t best = *r.answer().recommended;
  const std::vector<std::size_t> rivals = r.rivals(best);
  const bool in_all =
      std::all_of(rivals.begin(), rivals.end(), [&](std::size_t i) { return sim::is_faster_in_all(r.range, best, i); });
  return in_all ? "" : "by the estimate ";
}

/// Rank of the recommended scenario among those that need as many GPUs: by its median time per token, or else by the
/// tokens that these put out.
std::string_view rank_of(const Capacity& r, std::size_t best) {
  if (r.answer().passed_over) return "fastest of what was measured";
  const ScenarioCapacity& chosen = r.scenarios()[best];
  const auto is_faster = [&](const ScenarioCapacity& s) {
    return s.meets_load && s.gpus == chosen.gpus && s.tpot_seconds && chosen.tpot_seconds &&
           s.tpot_seconds->p50.value < chosen.tpot_seconds->p50.value;
  };
  return std::any_of(r.scenarios().begin(), r.scenarios().end(), is_faster) ? "cheapest per token" : "fastest";
}

/// "2.08 (95% 0.544 to 5.19) requests/s per replica with gamma 3, 8.32 by 8 GPUs (4 replicas of 2)"
std::string most_text(const Capacity& r, std::size_t i, std::string_view unit) {
  const ScenarioCapacity& s = r.scenarios()[i];
  std::string text =
      fmt::format("{}{} {}", with_interval(r, s, s.requests_per_second_per_replica), unit, marked_way(r, i));
  if (const auto together = r.requests_per_second_together(i)) {
    text += fmt::format(", {} by {}", shown(*together),
                        gpus_text(r, r.replicas_that_fit() * r.simulation.gpus_per_replica));
  }
  return text;
}

/// The largest load of a replica, and whether the given ones take what is asked for.
std::string largest_load_decision(const Capacity& r) {
  const std::size_t best = *r.answer().recommended, plain = r.plain();
  std::string text = "Up to " + most_text(r, best, " requests/s per replica");
  if (best != plain)
    text += ", instead of " + most_text(r.of_plain(), r.of_plain().plain(), r.plain_elsewhere ? " per replica" : "");
  text += limits_text(r.simulation.limits) + ".";
  if (!r.asks_for_load()) return text;
  const std::string range = replicas_range_text(r);
  std::string how;
  if (best != plain) {
    how = r.scenarios()[plain].meets_load
              ? fmt::format(" either way, best {}{}", by_estimate_faster(r), marked_way(r, best))
              : fmt::format(", but not {}", way(r, plain));
  }
  return text + fmt::format(" {}{} {} {}{}.{}", range.empty() ? "" : "By the estimate ", replicas_text(r),
                            *r.simulation.replicas == 1 ? "takes" : "take", load_text(r), how, range);
}

/// What plain decoding needs, behind what drafts do.
std::string plain_need_text(const Capacity& r, std::string_view beside) {
  const Capacity& of_plain = r.of_plain();
  const ScenarioCapacity& other = r.plain_scenario();
  const std::string how = way(of_plain, of_plain.plain());
  const std::string needs = other.meets_load && other.gpus ? gpus_text(of_plain, *other.gpus) : "no number of GPUs";
  if (r.layouts && !r.layouts->plain && other.meets_load) {
    return fmt::format("; {} no layout of {} GPUs does, but {}{} would", how, r.layouts->gpus,
                       r.plain_elsewhere ? "" : "in this one ", needs);
  }
  return other.meets_load ? fmt::format(" {} {} {}", beside, needs, how) : fmt::format("; {} {} does", how, needs);
}

/// Over what is uncertain; empty if all cases agree.
std::string gpus_over_cases(const Capacity& r, std::string_view beside) {
  const std::size_t best = *r.answer().recommended;
  const bool drafts = best != r.plain();
  const Capacity& of_plain = r.of_plain();
  const std::string range = gpu_range_text(r.range.gpus[best]);
  const std::string other_range = gpu_range_text(of_plain.range.gpus[of_plain.plain()]);
  if (range.empty() && (!drafts || other_range.empty())) return "";
  const auto or_count = [](const std::string& of, const std::optional<std::int64_t>& gpus) {
    return of.empty() ? fmt::format("{}", *gpus) : of;
  };
  std::string text = " Over what is uncertain: " + or_count(range, r.scenarios()[best].gpus);
  if (drafts && (r.plain_scenario().gpus || !other_range.empty()))
    text += fmt::format(" {} {}", beside, or_count(other_range, r.plain_scenario().gpus));
  return text + " GPUs" + (drafts ? fewer_text(r.gpus_against_plain()) : ".");
}

/// The number of GPUs that a load needs, or the load that a number of GPUs can take, by the estimate.
std::string estimated_decision(const Capacity& r) {
  const std::string limits = limits_text(r.simulation.limits);
  if (!r.answer().recommended) {
    if (!r.asks_for_load()) return fmt::format("No load is served{}, with or without speculation.", limits);
    const std::string range = replicas_range_text(r);
    return fmt::format("{}{} are not served{}{}, with or without speculation.{}",
                       range.empty() ? "" : "By the estimate ", load_text(r), limits,
                       r.simulation.replicas ? " by " + replicas_text(r)
                       : r.layouts           ? " on any number of GPUs"
                                             : "",
                       range);
  }
  if (!r.asks_for_load() || r.simulation.replicas) return largest_load_decision(r);
  const std::size_t best = *r.answer().recommended, plain = r.plain();
  const ScenarioCapacity& chosen = r.scenarios()[best];
  const auto needs_as_many = [&](const ScenarioCapacity& s) {
    return &s != &chosen && s.meets_load && s.gpus == chosen.gpus && sim::is_plain(s.scenario) != (best == plain);
  };
  const bool either_way = std::any_of(r.scenarios().begin(), r.scenarios().end(), needs_as_many);
  const bool by_estimate = r.saves_by_estimate_alone();
  const bool as_many = either_way || r.plain_scenario().gpus == chosen.gpus;
  const char* const beside = by_estimate || as_many ? "and" : "instead of";
  std::string text = fmt::format(
      "{}{} {}{}", by_estimate ? "By the estimate " : "", gpus_text(r, chosen.gpus.value_or(0)),
      either_way ? fmt::format("with or without speculation, {} {}", rank_of(r, best), by_estimate_faster(r)) : "",
      marked_way(r, best));
  if (best != plain && !either_way) text += plain_need_text(r, beside);
  return text + fmt::format(": {}{}.", load_text(r), limits) + gpus_over_cases(r, beside);
}

/// That the GPUs given are too few, by the estimate where they are enough in some cases.
std::string about_more_gpus(const Capacity& r) {
  const auto& recommended = r.answer().recommended;
  const auto* const range = recommended && r.range.gpus[*recommended] ? &*r.range.gpus[*recommended] : nullptr;
  const bool some_do = range != nullptr && range->lo <= *r.question.gpus;
  const std::string given = *r.question.gpus == 1 ? "GPU" : fmt::format("{} GPUs", *r.question.gpus);
  return fmt::format("{} than the {} given {} needed in any layout. ", some_do ? "By the estimate more" : "More", given,
                     *r.question.gpus == 1 ? "is" : "are");
}

/// The same, and whether it rests on part of the simulations or on prices beyond what was measured.
std::string decision(const Capacity& r) {
  const std::string more = r.exceeds_gpus ? about_more_gpus(r) : "";
  if (r.partial) return "Cannot tell: interrupted. By what was simulated until then: " + estimated_decision(r);
  if (r.may_not_draft)
    return "Cannot tell: not every step may draft. If all do, as much as is asked for: " + more +
           estimated_decision(r);
  return more + estimated_decision(r);
}

/// Which cases the times at the requested load cover, where that is not plain; with a space before.
std::string cases_of_times(const Capacity& r) {
  const std::size_t best = *r.answer().recommended;
  const std::size_t cases = r.range.rates_by_version[best].size();
  std::vector<std::string> growing;
  const auto add = [&growing](const Capacity& of, std::size_t place) {
    if (of.range.overloaded[place] > 0)
      growing.push_back(fmt::format("{} {}", of.range.overloaded[place], way(of, place)));
  };
  add(r, best);
  add(r.of_plain(), r.of_plain().plain());
  if (cases == 1 || (!r.has_limits() && growing.empty())) return "";
  std::string text = fmt::format(" Times are those of all {} cases of cost and acceptance on these GPUs", cases);
  if (r.has_limits()) text += ", within the limits or not";
  if (!growing.empty())
    text += fmt::format("; in {} more requests come than are served", fmt::join(growing, " and in "));
  return text + ".";
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
    const char* const by_estimate = !r.saves_by_estimate_alone() ? ""
                                    : parts.empty()              ? "By the estimate "
                                                                 : "by the estimate ";
    parts.push_back(fmt::format("{}{} per million output tokens instead of {}", by_estimate, with, without));
  }
  if (parts.empty()) return "";
  return wrapped(fmt::format("{}.{}", fmt::join(parts, "; "), cases_of_times(r))) + '\n';
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

Table scenario_table(const Capacity& r) {
  using Row = TableRow;
  const std::string asked = fmt::format("p{}", brief(r.question.percentile));
  const auto tpot = [](const Row& row, SimulatedValue sim::SimulatedPercentiles::*figure) {
    const auto& seconds = row.scenario().tpot_seconds;
    return seconds ? milliseconds((*seconds).*figure) : "-";
  };
  const auto is_best = [&r](const Row& row) { return row.answer == &r && r.answer().recommended == row.place; };
  return make_table(
      table_rows(r),
      {{"",
        {Align::left},
        [](const Row& row) {
          return row.scenario().scenario.name + (row.answer->is_extrapolated(row.place) ? "*" : "");
        }},
       {"seqs", [](const Row& row) { return fmt::format("{}", row.scenario().scenario.engine.max_num_seqs); }},
       {"req/s max",
        [](const Row& row) {
          return shown(row.scenario().requests_per_second_per_replica.value) +
                 (row.answer->largest_extrapolated[row.place] ? "+" : "");
        }},
       {r.is_range ? "range" : "95%",
        [](const Row& row) { return interval(row.scenario().requests_per_second_per_replica); }},
       {"GPUs", [](const Row& row) { return row.scenario().gpus ? fmt::format("{}", *row.scenario().gpus) : "-"; }},
       {"at", [](const Row& row) { return shown(row.scenario().at_requests_per_second); }},
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
       {"limited by", {Align::left}, [&](const Row& row) {
          return fmt::format("{}{}", planning::name_of(row.scenario().limited_by), is_best(row) ? ", best" : "");
        }}});
}

std::string scenarios_text(const Capacity& r) {
  std::string text =
      text_of(scenario_table(r)) +
      "req/s max: per replica; at: requests/s per replica that the columns behind it are for; times in ms.\n";
  if (r.is_range && !r.range.interrupted)
    text += "range: over the typed acceptance, too; plain decoding has a 95% interval.\n";
  const auto any = [](const std::vector<bool>& marks) {
    return std::find(marks.begin(), marks.end(), true) != marks.end();
  };
  if (any(r.price_extrapolated) || any(r.largest_extrapolated)) {
    text += "+: batch or context outside of what was measured.\n";
  }
  if (r.has_extrapolated()) {
    text += fmt::format("*: outside of what was measured, gamma {}.\n", r.measured_gammas(" to "));
  }
  return text;
}

std::string frontier_text(const Capacity& r) {
  if (r.answer().frontier.size() < 2) return "";
  std::vector<std::string> places;
  for (const std::size_t place : r.answer().frontier) places.push_back(marked_way(r, place));
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

std::string engines_text(const Capacity& r) {
  const ScenarioCapacity& s = r.scenarios()[r.shown()];
  if (!s.steady || !s.tpot_seconds || !s.engines_relative_difference) return "";
  return wrapped(fmt::format("Mean time per output token {}: {} ms simulated, {} ms by steady state ({:+.1f}%).",
                             way(r, r.shown()), brief(1000 * s.tpot_seconds->mean.value, 4),
                             brief(1000 * s.steady->tpot_seconds, 4), 100 * *s.engines_relative_difference)) +
         '\n';
}

/// True if a load is asked for that some scenario does not take.
bool some_fall_short(const Capacity& r) {
  const auto falls_short = [](const ScenarioCapacity& s) { return !s.meets_load; };
  return r.asks_for_load() && std::any_of(r.scenarios().begin(), r.scenarios().end(), falls_short);
}

std::string certainty_text(const Capacity& r) {
  std::string text = r.question.concurrency
                         ? "Scenarios are compared at equal concurrency: each client sends its next request when its "
                           "last one has ended; its first one is not counted."
                     : some_fall_short(r)
                         ? "Scenarios that take the load are compared at equal arrival rate; the others "
                           "are shown at their own largest."
                     : r.asks_for_load() ? "Scenarios are compared at equal arrival rate."
                                         : "Each scenario is shown at its own largest load; with --arrival-rate they "
                                           "are compared at the same one.";
  const bool by_kernels =
      std::any_of(r.assumptions.begin(), r.assumptions.end(),
                  [](const planner::Assumption& assumption) { return assumption.name == "measured share"; });
  if (r.calibrated) {
    text += fmt::format(" Costs are {}{}", by_kernels ? "measured kernels" : "a roofline",
                        r.range.interrupted ? "."
                        : *r.calibrated     ? " fitted to --calibrate; intervals hold what that leaves open."
                        : by_kernels        ? "; intervals hold how far deployments differ from them."
                                     : "; intervals hold the ranges of its losses and how far deployments differ.");
  } else if (r.range.cost_ends > 0 && !r.range.interrupted) {
    text += " Intervals hold the error of the measured costs.";
  }
  if (r.acceptance_laws > 1) {
    text += fmt::format(" Acceptance ({}) differs between requests: {} laws, of which each request keeps one.",
                        r.acceptance, r.acceptance_laws);
  } else if (!r.acceptance.empty()) {
    text += fmt::format(" Acceptance ({}) is the same for all requests.", r.acceptance);
  }
  return wrapped(text) + '\n';
}

/// The most informative next run.
std::string next_text(const Capacity& r) {
  const std::optional<sim::CapacityDoubt> doubt = r.doubt();
  if (!doubt) return "";
  const planning::NextMeasurement& next = doubt->next;
  std::string text =
      '\n' +
      wrapped(fmt::format("Most of what is uncertain is the {}{}. To narrow it, run the server {}, and",
                          name_of(doubt->source), r.may_not_draft ? ": how many steps draft something" : "",
                          planner::server_setting(r.engine, next, r.draft_kind))) +
      '\n' + command_lines(benchmark_command(r, *doubt));
  if (doubt->source == sim::UncertaintySource::cost && r.calibrated)
    text += wrapped(calibration_text(r.engine, next)) + '\n';
  return text;
}

}  // namespace

std::string text_of(const Capacity& r) {
  std::string text = r.impossible.empty() ? "" : wrapped(about_impossible(r)) + '\n';
  text += wrapped(decision(r)) + '\n';
  text += comparison(r);
  text += certainty_text(r) + '\n' + scenarios_text(r) + '\n';
  text += layouts_text(r) + budget_text(r) + frontier_text(r) + memory_text(r) + pauses_text(r) + engines_text(r);
  return text + next_text(r);
}

}  // namespace specdec::render
