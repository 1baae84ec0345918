#include "planner/sources/server_files.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <set>
#include <utility>

#include "analysis/cost/observed_rounds.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "planner/lookup_drafts.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"
#include "traces/serving/counts_formats.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::planner {
namespace {

/// The timed answers of each file as a run; other counts unchanged.
std::vector<traces::ServingCounts> with_runs_of_answers(const std::vector<traces::ServingCounts>& counts,
                                                        std::vector<Note>& warnings) {
  std::vector<traces::ServingCounts> joined;
  for (auto first = counts.begin(); first != counts.end();) {
    const auto end = std::find_if(first, counts.end(), [&](const auto& other) { return other.file != first->file; });
    const auto timed =
        std::count_if(first, end, [](const auto& one) { return one.unit == traces::CountUnit::request && one.bench; });
    if (timed > 0) {
      joined.push_back(cost::run_of_answers({first, end}));
      if (const auto others = end - first - timed; others > 0)
        warnings.push_back({"stopped_in_a_draft",
                            fmt::format("{}: {} of {} answers ended within accepted drafts or have no time; they are "
                                        "left out",
                                        first->file.string(), others, end - first)});
    } else {
      joined.insert(joined.end(), first, end);
    }
    first = end;
  }
  return joined;
}

/// Those that name no model are of the only one that others name.
std::vector<traces::ServingCounts> with_models_named(std::vector<traces::ServingCounts> counts) {
  std::set<std::string, std::less<>> names;
  for (const traces::ServingCounts& one : counts) names.emplace(one.label("model_name"));
  names.erase("");
  if (names.size() != 1) return counts;
  for (traces::ServingCounts& one : counts)
    if (one.label("model_name").empty()) one.labels.push_back({"model_name", *names.begin()});
  return counts;
}

}  // namespace

std::vector<traces::ServingCounts> counts_in(const std::vector<std::string>& files, std::vector<Note>& warnings) {
  std::vector<traces::ServingCounts> counts;
  traces::CountsSink sink;
  sink.take = [&](const traces::ServingCounts& unit) { counts.push_back(unit); };
  sink.warn = [&](const Note& warning) { warnings.push_back(warning); };
  sink.plain_windows = true;
  traces::read_serving_counts(std::vector<std::filesystem::path>(files.begin(), files.end()), sink);
  return with_models_named(with_runs_of_answers(counts, warnings));
}

void require_drafts_told(const std::vector<traces::ServingCounts>& counts, std::optional<std::int64_t> gamma) {
  if (gamma) return;
  for (const traces::ServingCounts& one : counts) {
    const bool drafted = one.tokens_per_round || (one.rounds && !one.drafted);
    if (!drafted || one.gamma) continue;
    throw QuestionError(fmt::format("--at is missing: {} does not say how many tokens a round drafted; --at G says it",
                                    one.file.string()));
  }
}

namespace {

/// Rounds with a draft, of all steps; 1 where steps are not told.
double drafting_share(const traces::ServingCounts& counts) {
  return counts.rounds.value_or(0) > 0 ? *counts.rounds / traces::steps_of(counts).value_or(*counts.rounds) : 1;
}

/// Drafts that end where the draft is unsure: their mean is far below gamma, and no other whole number.
bool ends_early(const traces::ServingCounts& counts, std::optional<std::int64_t> gamma) {
  if (!counts.bench || !counts.drafted || !(counts.rounds.value_or(0) > 0)) return false;
  constexpr double full_drafts = 0.9;  // ends of answers take the rest
  const auto longest = traces::longest_draft_of(counts, gamma);
  const double mean = *counts.drafted / *counts.rounds;
  return longest && mean < full_drafts * static_cast<double>(*longest) && !estimate::is_one_length(mean);
}

/// Those of lookups, all of which are steps.
void count_lookups(std::vector<traces::ServingCounts>& counts, std::optional<std::int64_t> gamma) {
  for (traces::ServingCounts& one : counts) {
    // SGLang's means, and a table's, are over all steps; but rounds of which all drafted are those with a draft alone.
    const bool is_table = one.engine == traces::run_table_engine;
    const bool all_drafted = one.drafted && traces::longest_draft_of(one, gamma) && !ends_early(one, gamma);
    const bool is_of_steps = one.engine == "sglang" || (is_table && !all_drafted);
    if (one.rounds.value_or(0) > 0 && !is_of_steps && !traces::steps_of(one)) {
      if (one.bench && !is_table)
        throw one.refusal("total_output_tokens and completed", "missing",
                          "given: they tell in how many steps a lookup found nothing");
      one.rounds.reset();
      one.tokens_per_round.reset();
      continue;
    }
    const bool tells_drafts = one.made && one.made->rounds > 0;
    const auto told = tells_drafts ? cost::gamma_of_mean(one.made->tokens / one.made->rounds) : std::nullopt;
    one = traces::counted_by_step(std::move(one), gamma ? gamma : told);
    constexpr double rounding = 1.05;
    if (one.made && one.gamma && one.made->tokens > rounding * static_cast<double>(*one.gamma) * one.made->rounds)
      throw one.refusal("drafted tokens of a round", brief(one.made->tokens / one.made->rounds, 3),
                        fmt::format("at most {}, the longest draft", *one.gamma));
    // Where every step is counted as a round, with a draft or without, drafts are taken to fill gamma.
    const bool counts_passes = is_of_steps || one.engine == "llama.cpp";
    if (counts_passes && one.made && one.gamma && one.made->rounds >= *one.rounds)
      one.made->rounds = one.made->tokens / static_cast<double>(*one.gamma);
  }
}

/// Leaves out the units that only partly drafted where others of their model and gamma always did.
void leave_out_partly_drafting(std::vector<traces::ServingCounts>& counts, std::vector<Note>& warnings) {
  const auto drafts_always = [](const traces::ServingCounts& one) {
    return one.rounds.value_or(0) > 0 && traces::steps_of(one) && drafting_share(one) >= drafts_in_every_step;
  };
  const auto is_left_out = [&](const traces::ServingCounts& one) {
    if (drafting_share(one) >= drafts_in_every_step) return false;
    const auto longest = traces::longest_draft_of(one);
    return std::any_of(counts.begin(), counts.end(), [&](const auto& other) {
      return drafts_always(other) && other.label("model_name") == one.label("model_name") &&
             traces::longest_draft_of(other) == longest;
    });
  };
  std::vector<traces::ServingCounts> kept;
  const traces::ServingCounts* least = nullptr;
  for (const traces::ServingCounts& one : counts) {
    if (!is_left_out(one)) {
      kept.push_back(one);
    } else if (least == nullptr || drafting_share(one) < drafting_share(*least)) {
      least = &one;
    }
  }
  if (least == nullptr) return;
  warnings.push_back(
      {"partly_drafting_left_out",
       fmt::format("{} drafted in {} of its steps, where others of this gamma always did: {}, neither plain nor "
                   "speculative",
                   least->place(), percent(drafting_share(*least)),
                   counts.size() - kept.size() == 1
                       ? "it is left out"
                       : fmt::format("{} such runs or windows are left out", counts.size() - kept.size()))});
  counts = std::move(kept);
}

}  // namespace

bool count_as_timed(std::vector<traces::ServingCounts>& counts, cost::DraftKind kind, std::optional<std::int64_t> gamma,
                    std::vector<Note>& warnings) {
  if (cost::looks_up(kind)) {
    count_lookups(counts, gamma);
    return true;
  }
  leave_out_partly_drafting(counts, warnings);
  const traces::ServingCounts *least = nullptr, *shortest = nullptr;
  for (const traces::ServingCounts& one : counts) {
    if (drafting_share(one) < drafts_in_every_step &&
        (least == nullptr || drafting_share(one) < drafting_share(*least)))
      least = &one;
    if (shortest == nullptr && ends_early(one, gamma)) shortest = &one;
  }
  if (least != nullptr) {
    warnings.push_back(
        {std::string(steps_without_drafts),
         fmt::format("{} tells that {} of its steps drafted, as where drafts are looked up or at times switched off: "
                     "rounds are its steps, with a draft or without; --draft-kind ngram or suffix says that drafts are "
                     "looked up",
                     least->place(), percent(drafting_share(*least)))});
  } else if (shortest != nullptr) {
    warnings.push_back({std::string(estimate::drafts_end_early),
                        fmt::format("rounds of {} drafted {:.3g} tokens of up to {} on average: its rounds are priced "
                                    "and accepted as they ran, and so are those of other gammas",
                                    shortest->place(), *shortest->drafted / *shortest->rounds,
                                    *traces::longest_draft_of(*shortest, gamma))});
  }
  if (least == nullptr && shortest == nullptr) return false;
  for (traces::ServingCounts& one : counts)
    if (drafting_share(one) < drafts_in_every_step || ends_early(one, gamma))
      one = traces::counted_by_step(std::move(one), gamma);
  return true;
}

}  // namespace specdec::planner
