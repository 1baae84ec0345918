#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "analysis/estimate/serving_summary.hpp"
#include "analysis/estimate/text_ends.hpp"
#include "analysis/planning/replay_curve.hpp"
#include "analysis/planning/trace_analysis.hpp"
#include "planner/acceptance.hpp"
#include "planner/question_error.hpp"
#include "planner/sources/recording_files.hpp"
#include "planner/sources/recording_rules.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::planner {
namespace {

using estimate::ServingSummary;

std::string listed_names(const std::vector<ServingSummary>& summaries) {
  std::vector<std::string> names;
  for (const auto& summary : summaries) names.push_back(summary.model_name.empty() ? "none" : summary.model_name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The summary of the requested model, or the only one.
const ServingSummary& summary_of(const std::vector<ServingSummary>& summaries, const std::vector<std::string>& files,
                                 const std::optional<std::string>& model) {
  if (summaries.empty()) throw QuestionError(fmt::format("--counters: {} holds no counts", files.front()));
  if (summaries.size() == 1) return summaries.front();
  if (!model) {
    throw QuestionError(
        fmt::format("--model is missing: the counters are of several models, {}", listed_names(summaries)));
  }
  const auto named = std::find_if(summaries.begin(), summaries.end(),
                                  [&](const auto& summary) { return summary.model_name == *model; });
  if (named == summaries.end()) refuse("--model", *model, "one of " + listed_names(summaries));
  return *named;
}

/// Refuses counts that say too little about drafts to be carried to other gammas.
void require_chains(const ServingSummary& summary, const std::string& file, bool gamma_stated) {
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

std::string name_of(estimate::BeyondObserved beyond) {
  switch (beyond) {
    case estimate::BeyondObserved::hold:
      return "hold";
    case estimate::BeyondObserved::geometric:
      return "geometric";
    case estimate::BeyondObserved::zero:
      break;
  }
  return "zero";
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

/// @param name  name of the recording, for error messages
Acceptance replayed(traces::PositionSource& recording, const std::string& name, const RecordingOptions& options) {
  planning::TraceAnalysisOptions how;
  const auto of_engine = rule_of_engine(recording.metadata(), options);
  how.observe.rule = of_engine ? of_engine : options.acceptance;
  how.observe.lenience.clear();
  how.max_gamma = std::min(options.max_gamma, theory::largest_replayed_gamma);
  how.cost = options.cost;
  how.judges_drafting = false;
  if (recording.metadata().path == traces::TextSource::other) {
    throw QuestionError(fmt::format(
        "--trace: {} cannot be planned with: its text is not the target's own (path is other), and only such "
        "a text tells what drafts gain; specdec analyze --force-replay replays it all the same",
        name));
  }
  planning::TraceAnalyzer analyzer(recording.metadata(), recording.depths(), how);
  traces::PositionBatch batch;
  planning::SequenceRates rates;
  try {
    while (recording.read(batch)) {
      const estimate::Observations& seen = analyzer.add(recording, batch);
      if (options.by_request) rates.add(seen);
      tell_of_reading(options.progress, recording, batch);
    }
  } catch (const estimate::RuleUndefined& reason) {
    if (!of_engine) throw;
    refuse_other_rule(name, reason.what());
  }
  const planning::TraceAnalysis analysis = analyzer.finish(recording.metadata().task_names);
  if (!analysis.replay && of_engine && !analysis.not_replayed.empty()) refuse_other_rule(name, analysis.not_replayed);
  if (!analysis.replay) {
    throw QuestionError(fmt::format("--trace: {} cannot be replayed: {}", name,
                                    analysis.not_replayed.empty() ? "it holds no position" : analysis.not_replayed));
  }
  Acceptance acceptance;
  acceptance.curve = std::make_shared<planning::ReplayCurve>(
      analysis.replay->lower, analysis.replay->upper ? &*analysis.replay->upper : nullptr,
      analysis.replay_refused ? "the text of the recording does not look like the target's own" : "");
  const auto& optimum = analysis.replay->lower.optimum;
  if (optimum && optimum->near_optimal_gammas && !analysis.replay->upper) {
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
  acceptance.request_rates = rates.rates();
  if (const estimate::AcceptanceEstimate* alpha = analysis.best_alpha()) {
    acceptance.alpha = alpha->value;
    acceptance.alpha_ci95 = alpha->ci95;
    acceptance.clusters = alpha->clusters;
  }
  acceptance.text = fmt::format("replay of {} positions", analysis.positions);
  for (const std::filesystem::path& file : recording.files()) acceptance.files.push_back(file.string());
  acceptance.assumptions.push_back(charge_of_text_ends());
  append(acceptance.warnings, recording.notes());
  append(acceptance.warnings, analysis.notes);
  if (const auto note = estimate::short_texts(analysis.replay->highest())) acceptance.warnings.push_back(*note);
  return acceptance;
}

}  // namespace

Acceptance Acceptance::from_counters(const std::vector<std::string>& files, const CountersOptions& options) {
  Acceptance acceptance;
  estimate::ServingSummaryOptions reading;
  reading.gamma = options.at;
  estimate::ServingSummaries collected(reading);
  std::map<std::string, std::vector<planning::RequestRate>, std::less<>> rates_by_model;
  traces::CountsSink sink;
  sink.take = [&](const traces::ServingCounts& counts) {
    collected.add(counts);
    if (!options.by_request) return;
    const auto rate = planning::rate_of_request(counts, options.at);
    if (rate) rates_by_model[std::string(counts.label("model_name"))].push_back(*rate);
  };
  sink.warn = [&](const Note& warning) { acceptance.warnings.push_back(warning); };
  traces::read_serving_counts(std::vector<std::filesystem::path>(files.begin(), files.end()), sink);
  const std::vector<ServingSummary> summaries = collected.summaries();
  const ServingSummary& summary = summary_of(summaries, files, options.model);
  append(acceptance.warnings, summary.warnings);
  require_chains(summary, files.front(), options.at.has_value());

  estimate::MeasuredAcceptance::Options how;
  how.beyond = options.beyond;
  acceptance.curve = std::make_shared<estimate::MeasuredAcceptance>(summary, how);
  if (summary.basis == estimate::IntervalBasis::iid_rounds) {
    how.design_effect = 3;
    acceptance.curve_at_design_effect_3 = std::make_shared<estimate::MeasuredAcceptance>(summary, how);
  } else if (summary.clusters > 0) {
    acceptance.clusters = summary.clusters;
  }
  acceptance.rule = options.acceptance ? options.acceptance : summary.rule;
  acceptance.rule_source = options.acceptance ? "user" : summary.rule ? "file" : "";
  acceptance.request_rates = std::move(rates_by_model[summary.model_name]);
  acceptance.method = std::string(name_of(summary.basis));
  if (summary.alpha_hat) {
    acceptance.alpha = summary.alpha_hat->value;
    acceptance.alpha_ci95 = summary.alpha_hat->ci95;
  }
  acceptance.text = fmt::format("counters{}{}", summary.model_name.empty() ? "" : " of " + summary.model_name,
                                summary.formats.empty() ? "" : fmt::format(" ({})", fmt::join(summary.formats, ", ")));
  if (summary.engines.size() == 1) acceptance.engine = summary.engines.front();
  if (!summary.model_name.empty()) acceptance.model = summary.model_name;
  acceptance.files = files;
  const bool usual = options.beyond == estimate::BeyondObserved::hold;
  acceptance.assumptions.push_back({"beyond the longest draft", name_of(options.beyond), usual ? "default" : "user"});
  return acceptance;
}

Acceptance Acceptance::from_recording(const std::vector<std::string>& files, const RecordingOptions& options) {
  RecordingFiles asked{files};
  asked.how.draft_array = options.draft_array.value_or("");
  return replayed(*open_recording(asked), files.front(), options);
}

Acceptance Acceptance::from_recording(traces::PositionSource& recording, const RecordingOptions& options) {
  return replayed(recording, "the recording", options);
}

}  // namespace specdec::planner
