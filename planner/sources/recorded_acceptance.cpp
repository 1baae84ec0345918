#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "analysis/estimate/text_ends.hpp"
#include "analysis/planning/mixed_curve.hpp"
#include "analysis/planning/replay_curve.hpp"
#include "analysis/planning/trace_analysis.hpp"
#include "planner/acceptance.hpp"
#include "planner/sources/mix_parts.hpp"
#include "planner/sources/recording_files.hpp"
#include "traces/context_stretches.hpp"

namespace specdec::planner {
namespace {

/// What a recording in these groups takes for texts.
std::string_view texts_of(const estimate::LabelGroups& groups) {
  return groups.label == "context" ? "the stretches of texts in a range of contexts" : "texts";
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
    std::vector<planning::TrafficPart> parts;
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
      const double per_request = static_cast<double>(task.replay->tokens) / static_cast<double>(task.replay->sequences);
      parts.push_back(
          {std::make_shared<planning::ReplayCurve>(
               *task.replay, task.replay_upper, task.alpha ? task.alpha->ci95 : std::nullopt, analysis.depths, refused),
           part.share * (mix_.by_requests ? per_request : 1)});
    }
    using Errors = planning::MixedCurve::Errors;
    curve_ = std::make_shared<planning::MixedCurve>(
        parts, analysis.tasks_share_clusters ? Errors::shared : Errors::independent);
  }

  const std::shared_ptr<const estimate::AcceptanceCurve>& curve() const { return curve_; }
  /// Its own notes, with those of the recording that are not of all texts.
  std::vector<Note> notes(std::vector<Note> of_recording) const {
    std::erase_if(of_recording,
                  [](const Note& note) { return note.code == "text_not_from_target" || note.code == "few_clusters"; });
    append(of_recording, notes_);
    return of_recording;
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
                       std::make_shared<planning::ReplayCurve>(*task.replay, task.replay_upper, std::nullopt,
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
  const estimate::AcceptanceEstimate* const rate = analysis.best_alpha();
  acceptance.curve =
      std::make_shared<planning::ReplayCurve>(analysis.replay->lower, analysis.replay->upper,
                                              rate == nullptr ? std::nullopt : rate->ci95, analysis.depths, refused);
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
  if (rate != nullptr && !options.mix) {
    acceptance.alpha = rate->value;
    acceptance.alpha_ci95 = rate->ci95;
    acceptance.clusters = rate->clusters;
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

}  // namespace

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
