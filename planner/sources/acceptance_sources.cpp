#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "analysis/core/lookup_law.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "analysis/estimate/text_ends.hpp"
#include "analysis/planning/mixed_curve.hpp"
#include "analysis/planning/replay_curve.hpp"
#include "analysis/planning/trace_analysis.hpp"
#include "planner/acceptance.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"
#include "planner/sources/recording_files.hpp"
#include "planner/sources/recording_rules.hpp"
#include "planner/sources/seen_labels.hpp"
#include "traces/context_stretches.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::planner {
namespace {

using estimate::ServingSummary;

/// The summaries of the requested model, or of the only one: one, or one for each group.
std::vector<const ServingSummary*> summaries_of(const std::vector<ServingSummary>& summaries,
                                                const std::vector<std::string>& files,
                                                const std::optional<std::string>& model) {
  if (summaries.empty()) throw QuestionError(fmt::format("--counters: {} holds no counts", files.front()));
  std::vector<std::string> names;
  for (const ServingSummary& summary : summaries) {
    const std::string name = summary.model_name.empty() ? "none" : summary.model_name;
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  const bool is_one = names.size() == 1;
  if (!is_one && !model) {
    throw QuestionError(
        fmt::format("--model is missing: the counters are of several models, {}", fmt::join(names, ", ")));
  }
  std::vector<const ServingSummary*> found;
  for (const ServingSummary& summary : summaries) {
    if (is_one || summary.model_name == *model) found.push_back(&summary);
  }
  if (found.empty()) refuse("--model", *model, fmt::format("one of {}", fmt::join(names, ", ")));
  return found;
}

/// Refuses counts that say too little about drafts to be carried to other gammas, or two things.
void require_chains(const ServingSummary& summary, const std::string& file, bool gamma_stated) {
  for (const Note& warning : summary.warnings) {
    if (warning.code != estimate::figures_contradict) continue;
    throw QuestionError(fmt::format("--counters: {}; say which holds by --acceptance-length GAMMA:LENGTH", warning.message));
  }
  if (!summary.tokens_per_step) {
    throw QuestionError(
        fmt::format("--counters: {} counted no rounds, but acceptance is counted by a server that speculates", file));
  }
  if (summary.shape == traces::DraftShape::unknown && !gamma_stated) {
    throw QuestionError(
        fmt::format("--at is missing: {} does not show whether drafts are chains; --at G says that every "
                    "round drafted a chain of G tokens",
                    file));
  }
  if (summary.shape == traces::DraftShape::tree) {
    throw QuestionError(fmt::format("--counters: {} is of trees of drafts, but must be of chains to plan gamma", file));
  }
  const bool lengths_unknown = summary.alpha_hat && !summary.alpha_hat->value && !summary.longest_draft;
  if (lengths_unknown && summary.drafted && summary.rounds) {
    throw QuestionError(
        fmt::format("--at is missing: {} does not say how many tokens a round drafts at most, and {:.4g} a "
                    "round on average is not just below a whole number; --at G says it",
                    file, *summary.drafted / *summary.rounds));
  }
}

/// A mix names a group that there is not.
[[noreturn]] void refuse_group(const std::string& group, const std::vector<std::string>& known, std::string_view of) {
  throw QuestionError(fmt::format("--mix names {}, but must name groups of {}: {}", group, of,
                                  known.empty() ? "there is none" : fmt::format("{}", fmt::join(known, ", "))));
}

/// The groups of a mix with their shares of the output tokens; those of requests weigh by their tokens.
class MixParts {
 public:
  using Errors = planning::MixedCurve::Errors;
  explicit MixParts(const TrafficMix& mix, Errors errors = Errors::independent) : mix_(mix), errors_(errors) {}

  /// @param tokens_per_request  the group's
  void add(const TrafficMix::Part& part, std::shared_ptr<const estimate::AcceptanceCurve> curve,
           double tokens_per_request) {
    parts_.push_back({std::move(curve), part.share * (mix_.by_requests ? tokens_per_request : 1)});
  }
  std::shared_ptr<const estimate::AcceptanceCurve> curve() const {
    return std::make_shared<planning::MixedCurve>(parts_, errors_);
  }

 private:
  const TrafficMix& mix_;
  Errors errors_;
  std::vector<planning::TrafficPart> parts_;
};

/// What a recording in these groups takes for texts.
std::string_view texts_of(const estimate::LabelGroups& groups) {
  return groups.label == "context" ? "the stretches of texts in a range of contexts" : "texts";
}

Assumption assumption_of(const TrafficMix& mix, const std::string& label) {
  return {"mix", fmt::format("{}, by {}", mix.text(), label), "user"};
}

/// The rule of an engine that has one alone, if a recording of sampled text would otherwise be read by another.
std::optional<traces::AcceptanceRule> rule_of_engine(const traces::TraceMetadata& metadata,
                                                     const RecordingOptions& options) {
  if (options.acceptance || options.engine != planning::Engine::llamacpp) return std::nullopt;
  const bool sampled = metadata.temperature.value_or(1) != 0;
  const auto recorded = metadata.acceptance.value_or(traces::AcceptanceRule::rejection);
  if (!sampled || recorded != traces::AcceptanceRule::rejection) return std::nullopt;
  return traces::AcceptanceRule::greedy_draft;
}

[[noreturn]] void refuse_other_rule(const std::string& name, const std::string& why) {
  throw QuestionError(
      fmt::format("--emit is llamacpp, which drafts greedily and compares tokens, but {} does not tell what that "
                  "accepts: {}; --acceptance rejection plans by another rule than the engine's",
                  name, why));
}

/// Empty without a rate, or an interval of it.
std::optional<estimate::Interval> interval_of(const estimate::AcceptanceEstimate* rate) {
  return rate == nullptr ? std::nullopt : rate->ci95;
}

constexpr std::string_view looks_foreign = "does not look like the target's own";

/// The tasks of a recording that a mix names: their replays in its shares, the tests of their texts, and what their
/// clusters and texts are worth.
class RecordedMix {
 public:
  explicit RecordedMix(const TrafficMix& mix) : mix_(mix) {}

  void add(const estimate::Observations& seen) {
    for (const std::int32_t task : std::set<std::int32_t>(seen.task.begin(), seen.task.end())) {
      if (task >= 0) texts_[task].add(seen, task);
    }
  }

  /// @param task_names  of the recording, now complete
  void finish(const planning::TraceAnalysis& analysis, const std::vector<std::string>& task_names) {
    using Errors = planning::MixedCurve::Errors;
    MixParts parts(mix_, analysis.tasks_share_clusters ? Errors::shared : Errors::independent);
    estimate::TextSourceAccumulator of_all;
    for (const TrafficMix::Part& part : mix_.parts) {
      for (const auto& [task, text] : texts_)
        if (traces::task_name(task_names, task) == part.group) of_all.merge(text);
    }
    const bool all_foreign = of_all.result().suspicious();
    if (all_foreign) note_foreign_text("the groups of the mix", of_all.result());
    for (const TrafficMix::Part& part : mix_.parts) {
      const planning::TaskAnalysis& task = task_of(analysis, part.group);
      std::string refused = all_foreign ? fmt::format("the text of the mix {}", looks_foreign) : "";
      for (const auto& [id, text] : texts_) {
        if (traces::task_name(task_names, id) != part.group || !text.result().suspicious()) continue;
        refused = fmt::format("the text of {} {}", part.group, looks_foreign);
        if (!all_foreign) note_foreign_text(part.group, text.result());
      }
      note_limits(task);
      parts.add(
          part,
          std::make_shared<planning::ReplayCurve>(
              *task.replay, upper_of(task), interval_of(task.alpha ? &*task.alpha : nullptr), analysis.depths, refused),
          static_cast<double>(task.replay->tokens) / static_cast<double>(task.replay->sequences));
    }
    curve_ = parts.curve();
  }

  const std::shared_ptr<const estimate::AcceptanceCurve>& curve() const { return curve_; }
  /// Its own notes, with those of the recording that are not of all texts.
  std::vector<Note> notes(std::vector<Note> of_recording) const {
    std::erase_if(of_recording,
                  [](const Note& note) { return note.code == "text_not_from_target" || note.code == "few_clusters"; });
    append(of_recording, notes_);
    return of_recording;
  }

  static const estimate::ReplayReport* upper_of(const planning::TaskAnalysis& task) {
    return task.replay_upper ? &*task.replay_upper : nullptr;
  }

 private:
  static const planning::TaskAnalysis& task_of(const planning::TraceAnalysis& analysis, const std::string& group) {
    std::vector<std::string> known;
    const planning::TaskAnalysis* named = nullptr;
    for (const planning::TaskAnalysis& task : analysis.tasks) {
      if (!task.name.empty()) known.push_back(task.name);
      if (task.name == group) named = &task;
    }
    if (named == nullptr || !named->replay) refuse_group(group, known, "the recording");
    return *named;
  }
  void note_foreign_text(const std::string& of, const estimate::TextSourceResult& test) {
    notes_.push_back({"text_not_from_target", fmt::format("of {}: {}", of, test.warning())});
  }
  void note_limits(const planning::TaskAnalysis& task) {
    const auto& alpha = task.alpha ? task.alpha : task.alpha_emitted;
    const auto clusters = alpha ? planning::few_clusters(*alpha) : std::nullopt;
    const auto texts = estimate::short_texts(*task.replay, task.replay_upper, texts_of(mix_.groups));
    for (const auto& note : {clusters, texts}) {
      if (note) notes_.push_back({note->code, fmt::format("of {}: {}", task.name, note->message)});
    }
  }

  const TrafficMix& mix_;
  std::map<std::int32_t, estimate::TextSourceAccumulator> texts_;
  std::shared_ptr<const estimate::AcceptanceCurve> curve_;
  std::vector<Note> notes_;
};

/// The replays of the ranges of contexts that were recorded, each from where it begins; the first of them also stands
/// for contexts below, and each for those behind it that were not recorded.
/// @param refused  the reason why none decides anything; empty if there is none
std::vector<planning::ContextAcceptance> replays_by_context(const planning::TraceAnalysis& analysis,
                                                            const estimate::LabelGroups& contexts,
                                                            const std::string& refused) {
  std::vector<planning::ContextAcceptance> parts;
  const std::vector<std::string> ranges = contexts.ranges();
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    for (const planning::TaskAnalysis& task : analysis.tasks) {
      if (task.name != ranges[i] || !task.replay || !task.replay->looks_at_drafts()) continue;
      parts.push_back({parts.empty() || i == 0 ? 0.0 : contexts.bounds[i - 1],
                       std::make_shared<planning::ReplayCurve>(*task.replay, RecordedMix::upper_of(task), std::nullopt,
                                                               analysis.depths, refused)});
    }
  }
  return parts;
}

/// Replays a recording, and takes the rates of its sequences if they are asked for.
/// @param name       name of the recording, for error messages
/// @param of_engine  the rule of the engine to plan for, if that is another than the recording's
/// @param mix        null without one
planning::TraceAnalysis replay_of(traces::PositionSource& recording, const std::string& name,
                                  const RecordingOptions& options,
                                  const std::optional<traces::AcceptanceRule>& of_engine,
                                  planning::SequenceRates& rates, RecordedMix* mix) {
  if (recording.metadata().path == traces::TextSource::other) {
    throw QuestionError(fmt::format(
        "--trace: {} cannot be planned with: its text is not the target's own (path is other), and only such "
        "a text tells what drafts gain; specdec analyze --force-replay replays it all the same",
        name));
  }
  planning::TraceAnalysisOptions how;
  how.observe.rule = of_engine ? of_engine : options.acceptance;
  how.observe.lenience.clear();
  how.max_gamma = std::min(options.max_gamma, theory::largest_replayed_gamma);
  how.cost = options.cost;
  how.judges_drafting = false;
  planning::TraceAnalyzer analyzer(recording.metadata(), recording.depths(), how);
  traces::PositionBatch batch;
  try {
    while (recording.read(batch)) {
      const estimate::Observations& seen = analyzer.add(recording, batch);
      if (options.by_request) rates.add(seen);
      if (mix != nullptr) mix->add(seen);
      tell_of_reading(options.progress, recording, batch);
    }
  } catch (const estimate::RuleUndefined& reason) {
    if (!of_engine) throw;
    refuse_other_rule(name, reason.what());
  }
  planning::TraceAnalysis analysis = analyzer.finish(recording.metadata().task_names);
  if (analysis.replay && mix != nullptr) mix->finish(analysis, recording.metadata().task_names);
  if (analysis.replay) return analysis;
  if (of_engine && !analysis.not_replayed.empty()) refuse_other_rule(name, analysis.not_replayed);
  throw QuestionError(fmt::format("--trace: {} cannot be replayed: {}", name,
                                  analysis.not_replayed.empty() ? "it holds no position" : analysis.not_replayed));
}

/// @param name  as replay_of
Acceptance replayed(traces::PositionSource& recording, const std::string& name, const RecordingOptions& options) {
  const auto of_engine = rule_of_engine(recording.metadata(), options);
  planning::SequenceRates rates;
  std::optional<RecordedMix> mix;
  if (options.mix) mix.emplace(*options.mix);
  const planning::TraceAnalysis analysis = replay_of(recording, name, options, of_engine, rates, mix ? &*mix : nullptr);
  const std::string refused =
      analysis.replay_refused ? fmt::format("the text of the recording {}", looks_foreign) : std::string();
  Acceptance acceptance;
  acceptance.curve = std::make_shared<planning::ReplayCurve>(
      analysis.replay->lower, analysis.replay->upper ? &*analysis.replay->upper : nullptr,
      interval_of(analysis.best_alpha()), analysis.depths, refused);
  const estimate::LabelGroups contexts = {"context", options.context_bounds};
  if (!options.context_bounds.empty()) {
    acceptance.by_context = replays_by_context(analysis, contexts, refused);
    acceptance.assumptions.push_back(
        {"acceptance by context", fmt::format("{}", fmt::join(contexts.ranges(), ", ")), "user"});
  }
  if (!mix && !analysis.replay->upper) {
    for (const planning::PositionAcceptance& position : analysis.replay->positions)
      acceptance.replayed_survival.push_back(position.unconditional.lo);
  }
  if (mix) {
    acceptance.curve = mix->curve();
    acceptance.assumptions.push_back(
        assumption_of(*options.mix, options.mix->groups.label.empty() ? "task" : options.mix->groups.label));
  }
  const auto& optimum = analysis.replay->lower.optimum;
  if (!options.mix && optimum && optimum->near_optimal_gammas && !analysis.replay->upper) {
    acceptance.not_told_apart = *optimum->near_optimal_gammas;
  }
  acceptance.rule = options.acceptance ? options.acceptance : analysis.rule;
  acceptance.rule_source = options.acceptance                              ? "user"
                           : recording.metadata().acceptance && !of_engine ? "file"
                                                                           : "default";
  if (of_engine) {
    acceptance.warnings.push_back(
        {"rule_of_engine",
         "the plan follows greedy drafting, the only rule of llama.cpp, and not rejection sampling, by which the "
         "recording is otherwise read"});
  }
  acceptance.clusters = analysis.sequences;
  acceptance.method = "sequences";
  if (!recording.metadata().target_model.empty()) acceptance.model = recording.metadata().target_model;
  // Stretches of contexts differ by these as well, and are no requests.
  if (!options.mix && options.context_bounds.empty()) acceptance.request_rates = rates.rates();
  if (const estimate::AcceptanceEstimate* alpha = options.mix ? nullptr : analysis.best_alpha()) {
    acceptance.alpha = alpha->value;
    acceptance.alpha_ci95 = alpha->ci95;
    acceptance.clusters = alpha->clusters;
  }
  if (analysis.replay->upper) {
    acceptance.warnings.push_back(planning::acceptance_in_brackets());
    acceptance.assumptions.push_back({"one number of a bracket", "its middle", "default"});
  }
  acceptance.text = fmt::format("replay of {} positions", analysis.positions);
  if (options.mix) acceptance.text += fmt::format(" in a mix of {}", options.mix->text());
  for (const std::filesystem::path& file : recording.files()) acceptance.files.push_back(file.string());
  acceptance.assumptions.push_back(charge_of_text_ends());
  append(acceptance.warnings, recording.notes());
  append(acceptance.warnings, mix ? mix->notes(analysis.notes) : analysis.notes);
  if (const auto note = estimate::no_draft_looked_at(analysis.replay->lower)) acceptance.warnings.push_back(*note);
  if (mix) return acceptance;
  const std::string_view texts = texts_of(options.context_bounds.empty() ? estimate::LabelGroups{} : contexts);
  if (const auto note = estimate::short_texts(analysis.replay->lower, analysis.replay->upper, texts))
    acceptance.warnings.push_back(*note);
  return acceptance;
}

std::shared_ptr<const estimate::AcceptanceCurve> curve_of(const ServingSummary& summary, const CountersOptions& options,
                                                          const std::string& file) {
  require_chains(summary, file, options.at.has_value());
  return std::make_shared<estimate::MeasuredAcceptance>(summary, estimate::MeasuredAcceptance::Options{options.kind});
}

/// The member of all groups if it is the same for them; empty otherwise.
template <class Member>
Member same_of(const std::vector<const ServingSummary*>& groups, Member ServingSummary::*member) {
  const bool same =
      std::all_of(groups.begin(), groups.end(), [&](const auto* one) { return one->*member == groups[0]->*member; });
  return same ? groups[0]->*member : Member();
}

/// Rounds taken as independent where one group's are.
estimate::IntervalBasis weakest_basis(const std::vector<const ServingSummary*>& groups) {
  estimate::IntervalBasis weakest = groups[0]->basis;
  for (const ServingSummary* group : groups) {
    if (group->basis == estimate::IntervalBasis::iid_rounds) weakest = group->basis;
  }
  return weakest;
}

/// Tokens of a request of the group.
double tokens_per_request(const ServingSummary& summary) {
  const double tokens = summary.emitted.value_or(summary.rounds.value_or(0) + summary.accepted.value_or(0));
  if (summary.unit != traces::CountUnit::request || !(tokens > 0)) {
    throw QuestionError(fmt::format(
        "--mix-by is requests, but must be tokens: the counts of {} do not tell how many tokens a request has",
        summary.group.value_or("")));
  }
  return tokens / static_cast<double>(summary.units);
}

/// The groups that the mix names, in its order.
std::vector<const ServingSummary*> groups_of(const TrafficMix& mix, const std::vector<const ServingSummary*>& groups) {
  std::vector<std::string> known;
  for (const ServingSummary* group : groups) {
    if (!group->group.value_or("").empty()) known.push_back(*group->group);
  }
  std::vector<const ServingSummary*> named;
  for (const TrafficMix::Part& part : mix.parts) {
    const auto found =
        std::find_if(groups.begin(), groups.end(), [&](const auto* group) { return group->group == part.group; });
    if (found == groups.end()) refuse_group(part.group, known, "the counters");
    named.push_back(*found);
  }
  return named;
}

/// That of one group, or of a mix of several.
/// @param groups  those of the mix, in its order
std::shared_ptr<const estimate::AcceptanceCurve> curve_of(const std::vector<const ServingSummary*>& groups,
                                                          const CountersOptions& options, const std::string& file,
                                                          std::vector<Note>& warnings) {
  if (!options.mix) {
    append(warnings, groups.front()->warnings);
    return curve_of(*groups.front(), options, file);
  }
  const TrafficMix& mix = *options.mix;
  MixParts parts(mix);
  for (std::size_t i = 0; i < groups.size(); ++i) {
    append_new(warnings, groups[i]->warnings);
    parts.add(mix.parts[i], curve_of(*groups[i], options, file), mix.by_requests ? tokens_per_request(*groups[i]) : 1);
  }
  return parts.curve();
}

/// The summaries of the units that tell their steps: of rounds, and by step.
struct CountedSteps {
  std::vector<ServingSummary> rounds, by_step;
};

/// That of the same model and group; null if there is none.
const ServingSummary* same_group(const std::vector<ServingSummary>& summaries, const ServingSummary& group) {
  const auto found = std::find_if(summaries.begin(), summaries.end(), [&](const ServingSummary& other) {
    return other.model_name == group.model_name && other.group == group.group;
  });
  return found == summaries.end() ? nullptr : &*found;
}

/// How many of the steps drafted, and how much.
struct DraftedSteps {
  double steps = 0, rounds = 0, drafted = 0;

  /// @param share  of all steps, of those of the summary
  void add(double share, double its_steps, const ServingSummary& its) {
    steps += share;
    rounds += share * *its.rounds / its_steps;
    drafted += share * *its.drafted / its_steps;
  }
};

/// What counts tell of lookups where they tell steps.
/// @param groups  of all units, those of a mix in its order
std::optional<CountedLookups> lookups_of_steps(const std::vector<const ServingSummary*>& groups,
                                               const CountedSteps& counted, const CountersOptions& options,
                                               const std::string& file) {
  constexpr double ends_of_window = 1.02, few = 0.1;
  DraftedSteps all;
  std::int64_t gamma = 0;
  std::vector<const ServingSummary*> by_step;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const ServingSummary* const rounds = same_group(counted.rounds, *groups[i]);
    const ServingSummary* const steps = same_group(counted.by_step, *groups[i]);
    if (rounds == nullptr || steps == nullptr || rounds->shape != traces::DraftShape::chain ||
        !(rounds->rounds.value_or(0) > few * groups[i]->rounds.value_or(0)) || !rounds->drafted || !rounds->steps ||
        *rounds->rounds > ends_of_window * *rounds->steps || !steps->gamma || !steps->tokens_per_step)
      return std::nullopt;
    // A group's share of all steps, which put out its share of the tokens.
    double share = 1;
    if (options.mix)
      share = options.mix->parts[i].share * (options.mix->by_requests ? tokens_per_request(*groups[i]) : 1) /
              steps->tokens_per_step->value;
    all.add(share, std::max(*rounds->steps, *rounds->rounds), *rounds);
    gamma = std::max(gamma, *steps->gamma);
    by_step.push_back(steps);
  }
  const core::LookupLaw law = core::LookupLaw::counted(all.rounds / all.steps, all.drafted / all.rounds, gamma);
  std::vector<Note> same_warnings;
  return CountedLookups{law.hit_rate, law.mean_length, curve_of(by_step, options, file, same_warnings)};
}

/// What counts tell of lookups; empty if they do not tell how long drafts were.
/// @param groups  of all units, those of a mix in its order
std::optional<CountedLookups> lookups_of(const std::vector<const ServingSummary*>& groups, const CountedSteps& counted,
                                         const CountersOptions& options, const std::string& file) {
  if (auto lookups = lookups_of_steps(groups, counted, options, file)) return lookups;
  DraftedSteps all;
  std::int64_t gamma = 0;
  for (const ServingSummary* group : groups) {
    const auto longest = group->gamma ? group->gamma : group->longest_draft;
    if (group->shape != traces::DraftShape::chain || !(group->rounds.value_or(0) > 0) || !group->drafted || !longest)
      return std::nullopt;
    all.add(1, *group->rounds, *group);
    gamma = std::max(gamma, *longest);
  }
  const core::LookupLaw law = core::LookupLaw::counted(1, all.drafted / all.rounds, gamma);
  return CountedLookups{std::nullopt, law.mean_length, nullptr};
}

/// Rates of requests with their group.
struct GroupedRate {
  std::string group;
  planning::RequestRate rate;
};

/// The requests of the groups of a mix, weighted so that each group has its share of the rounds.
/// @param groups  those of the mix, in its order
std::vector<planning::RequestRate> mixed_rates(const std::vector<GroupedRate>& rates,
                                               const std::vector<const ServingSummary*>& groups,
                                               const TrafficMix& mix) {
  std::vector<planning::RequestRate> mixed;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const TrafficMix::Part& part = mix.parts[i];
    const double tokens = mix.by_requests ? tokens_per_request(*groups[i]) : 1;
    double weight = 0;
    for (const GroupedRate& one : rates) weight += one.group == part.group ? one.rate.weight : 0;
    const double rounds = part.share * tokens / groups[i]->tokens_per_step->value;
    for (const GroupedRate& one : rates) {
      if (one.group != part.group) continue;
      mixed.push_back(one.rate);
      mixed.back().weight *= rounds / weight;
    }
  }
  return mixed;
}

}  // namespace

Acceptance Acceptance::from_counters(const std::vector<std::string>& files, const CountersOptions& options) {
  Acceptance acceptance;
  estimate::ServingSummaryOptions reading;
  reading.gamma = options.at;
  estimate::LabelGroups by;
  if (options.mix) by = options.mix->groups;
  if (options.mix && by.label.empty()) by.label = "category";
  reading.by = by;
  estimate::ServingSummaries collected(reading), with_steps(reading), by_step(reading);
  // Those that do not say how long drafts are wait for the gamma that all together show.
  std::vector<traces::ServingCounts> without_gamma;
  std::map<std::string, std::vector<GroupedRate>, std::less<>> rates_by_model;
  traces::CountsSink sink;
  SeenLabels labels(by);
  sink.take = [&](const traces::ServingCounts& counts) {
    collected.add(counts);
    if (traces::steps_of(counts)) {
      with_steps.add(counts);
      if (traces::longest_draft_of(counts, options.at)) {
        by_step.add(traces::counted_by_step(counts, options.at));
      } else {
        without_gamma.push_back(counts);
      }
    }
    labels.add(counts);
    if (!options.by_request) return;
    const auto rate = planning::rate_of_request(counts, options.at);
    if (!rate) return;
    rates_by_model[std::string(counts.label("model_name"))].push_back(
        {by.group_of(estimate::label_value(counts, by)), *rate});
  };
  sink.warn = [&](const Note& warning) { acceptance.warnings.push_back(warning); };
  traces::read_serving_counts(std::vector<std::filesystem::path>(files.begin(), files.end()), sink);
  labels.require("--by");
  const std::vector<ServingSummary> summaries = collected.summaries();
  std::vector<const ServingSummary*> found = summaries_of(summaries, files, options.model);
  if (options.mix) found = groups_of(*options.mix, found);
  const ServingSummary& summary = *found.front();
  if (options.mix) acceptance.assumptions.push_back(assumption_of(*options.mix, by.label));
  acceptance.curve = curve_of(found, options, files.front(), acceptance.warnings);
  for (traces::ServingCounts& counts : without_gamma)
    by_step.add(traces::counted_by_step(std::move(counts), summary.gamma));
  acceptance.lookups = lookups_of(found, {with_steps.summaries(), by_step.summaries()}, options, files.front());
  std::int64_t clusters = 0;
  for (const ServingSummary* group : found) clusters += group->clusters;
  if (weakest_basis(found) != estimate::IntervalBasis::iid_rounds && clusters > 0) acceptance.clusters = clusters;
  const auto counted_rule = same_of(found, &ServingSummary::rule);
  acceptance.rule = options.acceptance ? options.acceptance : counted_rule;
  acceptance.rule_source = options.acceptance ? "user" : counted_rule ? "file" : "";
  const std::vector<GroupedRate>& rates = rates_by_model[summary.model_name];
  if (options.mix) {
    acceptance.request_rates = mixed_rates(rates, found, *options.mix);
  } else {
    for (const GroupedRate& one : rates) acceptance.request_rates.push_back(one.rate);
  }
  acceptance.method = std::string(name_of(weakest_basis(found)));
  if (summary.alpha_hat && !options.mix) {
    acceptance.alpha = summary.alpha_hat->value;
    acceptance.alpha_ci95 = summary.alpha_hat->ci95;
  }
  acceptance.text = fmt::format("counters{}{}", summary.model_name.empty() ? "" : " of " + summary.model_name,
                                summary.formats.empty() ? "" : fmt::format(" ({})", fmt::join(summary.formats, ", ")));
  if (options.mix) acceptance.text += fmt::format(" in a mix of {}", options.mix->text());
  const std::vector<std::string> engines = same_of(found, &ServingSummary::engines);
  if (engines.size() == 1) acceptance.engine = engines.front();
  if (!summary.model_name.empty()) acceptance.model = summary.model_name;
  acceptance.files = files;
  return acceptance;
}

Acceptance Acceptance::from_recording(const std::vector<std::string>& files, const RecordingOptions& options) {
  RecordingFiles asked{files};
  asked.how.draft_array = options.draft_array.value_or("");
  auto source = open_recording(asked);
  if (options.mix) source = grouped_recording(std::move(source), options.mix->groups);
  if (!options.context_bounds.empty()) {
    source = grouped_recording(std::move(source), {"context", options.context_bounds});
  }
  return replayed(*source, files.front(), options);
}

Acceptance Acceptance::from_recording(traces::PositionSource& recording, const RecordingOptions& options) {
  return replayed(recording, "the recording", options);
}

}  // namespace specdec::planner
