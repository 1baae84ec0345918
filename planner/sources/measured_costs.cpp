#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>
#include <utility>

#include "analysis/cost/fitted_cost.hpp"
#include "analysis/cost/measured_cost.hpp"
#include "analysis/cost/observed_rounds.hpp"
#include "analysis/cost/overhead_cost.hpp"
#include "analysis/cost/range_cost.hpp"
#include "analysis/cost/scraped_rounds.hpp"
#include "analysis/planning/bench_plan.hpp"
#include "planner/cost.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"
#include "planner/sources/server_files.hpp"
#include "traces/serving/counts_formats.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::planner {
namespace {

/// The timed passes that a file holds.
traces::TimingTable timed_passes(std::string_view option, const std::string& file) {
  try {
    return traces::read_timing_table(file);
  } catch (const traces::FileError&) {
    const traces::FileHead head = traces::FileHead::of(file);
    if (traces::times_answers(head)) {
      throw QuestionError(fmt::format(
          "{} is {}, a log of llama.cpp, which times whole answers and no passes: time passes with llama-bench "
          "(-p 2,3,5,9 -n 32), or give it to --bench beside one of plain decoding",
          option, file));
    }
    if (!traces::recognised_counts(head)) throw;
    throw QuestionError(fmt::format(
        "{} is {}, which counts drafts and times none of their passes, but must be a table of timed passes, what "
        "llama-bench wrote, or a log of llama.cpp with the statistics of its drafts",
        option, file));
  }
}

using traces::TimedPass;

/// The parts that all measured costs share.
Cost measured_cost(const std::optional<std::string>& model, const DraftWords& draft) {
  Cost cost;
  cost.draft = draft;
  cost.target_model = model.value_or("");
  cost.kind = draft_kind(draft, model, {}, false);
  if (auto kind = assumed_kind(draft, cost.kind)) cost.assumptions.push_back(*std::move(kind));
  return cost;
}

/// The draft's own times, in separate files or together with the target's; empty if c or no model determines them.
std::vector<TimedPass> draft_passes_of(const Timings& target, const TimingOptions& o, cost::DraftKind kind,
                                       Cost& cost) {
  if (!o.draft_cost.empty()) {
    const Timings own(o.draft_cost, draft_option_of(o.draft, "cost"));
    append(cost.warnings, own.warnings());
    cost.files.insert(cost.files.end(), o.draft_cost.begin(), o.draft_cost.end());
    return own.passes(draft_option_of(o.draft, "model"), o.draft.model);
  }
  if (o.c || cost::looks_up(kind)) return {};
  if (o.draft.model && target.has_several_models()) {
    return target.passes(draft_option_of(o.draft, "model"), o.draft.model);
  }
  throw QuestionError(
      fmt::format("{} is missing: the time of one draft step / one target step, or the draft's own times with {}",
                  option_of(o.draft, "c"),
                  o.draft.name.empty() ? "--draft-cost, or --draft-model where --cost holds them"
                                       : "cost=FILE, or model=NAME where --cost holds them"));
}

/// The rounds of windows between scrapes; warns of how far off one may be.
std::vector<cost::ScrapedRound> scraped_rounds(const std::vector<traces::ServingCounts>& windows,
                                               std::vector<Note>& warnings) {
  const auto has_times = [](const traces::ServingCounts& window) { return window.window || window.round_times; };
  std::vector<cost::ScrapedRound> rounds;
  std::optional<cost::ScrapedRound> widest;
  std::string place;
  for (const traces::ServingCounts& window : windows) {
    if (!window.window && window.engine != "vllm") {
      throw QuestionError(fmt::format(
          "--cost is {}, counters of {}, which say nothing of times as vLLM's do: --c, --hardware or measured "
          "times price rounds",
          window.file.string(), window.engine));
    }
    if (std::none_of(windows.begin(), windows.end(),
                     [&](const auto& other) { return other.file == window.file && has_times(other); })) {
      throw window.refusal("vllm:inter_token_latency_seconds", "missing, or without one of its series",
                           "given beside vllm:iteration_tokens_total and vllm:time_to_first_token_seconds: they say "
                           "how long rounds take");
    }
    if (!window.round_times) continue;
    const cost::ScrapedRound& scraped = rounds.emplace_back(cost::scraped_round(window));
    const auto openness = [](const cost::ScrapedRound& one) { return one.seconds.hi / one.seconds.lo; };
    if (!widest || openness(scraped) > openness(*widest)) {
      widest = scraped;
      place = window.place();
    }
  }
  if (!widest) return rounds;
  const std::string others =
      rounds.size() > 1 ? fmt::format("{} windows of scrapes price rounds, the least well told of them ", rounds.size())
                        : "";
  warnings.push_back({"round_of_scrapes",
                      fmt::format("{}{}: a round of gamma {} at batch {} takes {} to {} ms without prompts, which the "
                                  "buckets of times between tokens leave open",
                                  others, place, brief(widest->round.gamma), brief(widest->round.batch),
                                  brief(1000 * widest->seconds.lo), brief(1000 * widest->seconds.hi))});
  return rounds;
}

}  // namespace

Timings::Timings(const std::vector<std::string>& files, std::string option)
    : option_(std::move(option)), files_(files) {
  for (const std::string& file : files) {
    tables_.push_back(timed_passes(option_, file));
    append(warnings_, tables_.back().warnings);
  }
}

bool Timings::of_llamacpp() const {
  return std::any_of(tables_.begin(), tables_.end(),
                     [](const auto& table) { return table.format.starts_with("llama"); });
}

std::vector<std::string> Timings::models() const {
  std::vector<std::string> names;
  for (const traces::TimingTable& table : tables_) append_new(names, table.models());
  return names;
}

std::vector<TimedPass> Timings::passes_of(const std::string& model) const {
  std::vector<TimedPass> passes;
  for (const traces::TimingTable& table : tables_) {
    for (const TimedPass& pass : table.passes_of(model)) passes.push_back(pass);
  }
  return passes;
}

std::vector<TimedPass> Timings::passes(const std::string& name_option, const std::optional<std::string>& name) const {
  const std::vector<std::string> names = models();
  if (names.size() == 1) return passes_of(names.front());
  if (!name) {
    throw QuestionError(
        fmt::format("{} is missing: {} holds the models {}", name_option, option_, fmt::join(names, ", ")));
  }
  const std::optional<std::string> model = named(*name);
  if (!model) refuse(name_option, *name, fmt::format("one of {}", fmt::join(names, ", ")));
  return passes_of(*model);
}

/// The model with that name, or the only one of that type: "llama 1B Q8_0" for "llama 1B Q8_0 (1.22 GiB / 1.24 B)".
std::optional<std::string> Timings::named(const std::string& name) const {
  std::vector<std::string> of_type;
  for (const std::string& model : models()) {
    if (model == name) return model;
    if (model.starts_with(name + " (")) of_type.push_back(model);
  }
  return of_type.size() == 1 ? std::optional(of_type.front()) : std::nullopt;
}

Cost Cost::of_timings(const Timings& target, const TimingOptions& o) {
  DraftWords draft = o.draft;
  draft.of_llamacpp = draft.of_llamacpp || target.of_llamacpp();
  Cost cost = measured_cost(o.model, draft);
  if (target.of_llamacpp()) cost.engine = "llama.cpp";
  cost.files = target.files();
  cost.warnings = target.warnings();
  cost::MeasuredOptions options;
  options.kind = cost.kind;
  options.c = c_of_kind(cost.kind, o.c, o.draft);
  options.overhead_seconds = o.overhead_seconds.value_or(0);
  const std::vector<TimedPass> of_target = target.passes("--model", o.model);
  const std::vector<TimedPass> of_draft = draft_passes_of(target, o, cost.kind, cost);
  cost.rounds = std::make_shared<cost::MeasuredCost>(of_target, of_draft, options);
  cost.assumptions.push_back(
      {"overhead_seconds", o.overhead_seconds.value_or(0), o.overhead_seconds ? "user" : "default"});
  append(cost.warnings, cost.rounds->findings());
  return cost;
}

Cost Cost::of_logs(const std::vector<std::string>& files, const TimingOptions& o) {
  Cost cost = measured_cost(o.model, o.draft);
  std::vector<traces::ServingCounts> windows = counts_in(files, cost.warnings);
  cost.of_steps = count_as_timed(windows, cost.kind, o.at, cost.warnings);
  require_drafts_told(windows, o.at);
  cost.files = files;
  cost::LogRounds log = cost::log_rounds(windows, o.at ? std::optional(static_cast<double>(*o.at)) : std::nullopt);
  const std::size_t of_logs = log.rounds.size();
  const std::vector<cost::ScrapedRound> scraped = scraped_rounds(windows, cost.warnings);
  for (const cost::ScrapedRound& one : scraped) log.rounds.push_back(one.round);
  const auto drafts = [](const cost::ObservedRound& round) { return round.gamma > 0; };
  if (std::none_of(log.rounds.begin(), log.rounds.end(), drafts)) {
    throw QuestionError(fmt::format(
        "--cost: no steady window of {} drafted, so that they do not say what drafting costs", fmt::join(files, ", ")));
  }
  if (of_logs > 0) {
    cost.warnings.push_back(
        {"rounds_of_logs",
         log.steady_windows > 0
             ? fmt::format("{} of {} windows of --cost are steady: they price rounds", log.steady_windows, log.windows)
             : fmt::format(
                   "none of the {} windows of --cost is sure to be steady: they price rounds as they are, with the "
                   "prompts that were read, a weak cost",
                   log.windows)});
  }
  std::vector<cost::ObservedRound> rounds = log.rounds;
  const auto batch = cost::join_batches(rounds);
  cost.usual_batches = batch ? std::vector<double>{*batch} : log.usual_batches();
  cost.from_log = true;
  cost.engine = windows.front().engine;
  cost::FitOptions options;
  options.kind = cost.kind;
  options.has_kernel_step = planning::engine_named(*cost.engine) == planning::Engine::llamacpp;
  std::vector<const traces::ServingCounts*> counts;
  for (const traces::ServingCounts& window : windows) counts.push_back(&window);
  options.mean_drafts = cost::mean_drafts_of(counts);
  cost.rounds = std::make_shared<cost::FittedCost>(rounds, options);
  if (!scraped.empty()) cost.rounds = std::make_shared<cost::RangeCost>(cost.rounds, cost::open_factors(scraped));
  if (o.overhead_seconds) {
    cost.rounds = std::make_shared<cost::OverheadCost>(cost.rounds, *o.overhead_seconds, 0);
    cost.assumptions.push_back({"overhead_seconds", *o.overhead_seconds, "user"});
  }
  cost.assumptions.push_back(
      {"relative error of a run, before others contradict it", cost::FitOptions{}.usual_error, "default"});
  append(cost.warnings, cost.rounds->findings());
  return cost;
}

}  // namespace specdec::planner
