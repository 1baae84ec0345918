#include "cli/plan_acceptance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <utility>

#include "analysis/estimate/measured_acceptance.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "analysis/planning/replay_curve.hpp"
#include "analysis/planning/trace_analysis.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "traces/acceptance_rules.hpp"
#include "traces/open_trace.hpp"
#include "traces/serving/read_serving_counts.hpp"

namespace specdec::cli {
namespace {

std::vector<std::filesystem::path> paths_of(const std::vector<std::string>& files) {
  return {files.begin(), files.end()};
}

std::string listed_names(const std::vector<estimate::ServingSummary>& summaries) {
  std::vector<std::string> names;
  for (const auto& summary : summaries) names.push_back(summary.model_name.empty() ? "none" : summary.model_name);
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The one that --model names, or the only one.
const estimate::ServingSummary& summary_of(const std::vector<estimate::ServingSummary>& summaries,
                                           const AcceptanceSource& source) {
  if (summaries.empty()) throw UsageError(fmt::format("--counters: {} holds no counts", source.counters.front()));
  if (summaries.size() == 1) return summaries.front();
  if (!source.model) {
    throw UsageError(
        fmt::format("--model is missing: the counters are of several models, {}", listed_names(summaries)));
  }
  const auto named = std::find_if(summaries.begin(), summaries.end(),
                                  [&](const auto& summary) { return summary.model_name == *source.model; });
  if (named == summaries.end()) refuse("--model", *source.model, "one of " + listed_names(summaries));
  return *named;
}

PlannedAcceptance from_counters(const AcceptanceSource& source) {
  PlannedAcceptance acceptance;
  estimate::ServingSummaryOptions options;
  options.gamma = source.gamma;
  estimate::ServingSummaries collected(options);
  std::map<std::string, std::vector<planning::RequestRate>, std::less<>> rates_by_model;
  traces::CountsSink sink;
  sink.take = [&](const traces::ServingCounts& counts) {
    collected.add(counts);
    if (!source.by_request) return;
    const auto rate = planning::rate_of_request(counts, source.gamma);
    if (rate) rates_by_model[std::string(counts.label("model_name"))].push_back(*rate);
  };
  sink.warn = [&](const traces::CountsWarning& warning) {
    acceptance.warnings.push_back({warning.code, warning.message});
  };
  traces::read_serving_counts(paths_of(source.counters), sink);
  const std::vector<estimate::ServingSummary> summaries = collected.summaries();
  const estimate::ServingSummary& summary = summary_of(summaries, source);
  for (const traces::CountsWarning& warning : summary.warnings) {
    acceptance.warnings.push_back({warning.code, warning.message});
  }

  if (summary.shape == traces::DraftShape::unknown && !source.gamma) {
    throw UsageError(
        fmt::format("--at is missing: {} does not show whether drafts are chains; --at G says that every "
                    "round drafted a chain of G tokens",
                    source.counters.front()));
  }
  if (summary.shape == traces::DraftShape::tree) {
    throw UsageError(fmt::format("--counters: {} is of trees of drafts, but must be of chains to plan gamma",
                                 source.counters.front()));
  }
  estimate::MeasuredAcceptance::Options how;
  if (source.beyond == "geometric") how.beyond = estimate::BeyondObserved::geometric;
  if (source.beyond == "zero") how.beyond = estimate::BeyondObserved::zero;
  acceptance.curve = std::make_shared<estimate::MeasuredAcceptance>(summary, how);
  if (summary.basis == estimate::IntervalBasis::iid_rounds) {
    how.design_effect = 3;
    acceptance.curve_at_design_effect_3 = std::make_shared<estimate::MeasuredAcceptance>(summary, how);
  } else if (summary.clusters > 0) {
    acceptance.clusters = summary.clusters;
  }
  acceptance.rule = summary.rule;
  acceptance.request_rates = std::move(rates_by_model[summary.model_name]);
  acceptance.method = std::string(name_of(summary.basis));
  if (summary.alpha_hat) {
    acceptance.alpha = summary.alpha_hat->value;
    acceptance.alpha_ci95 = summary.alpha_hat->ci95;
  }
  acceptance.text = fmt::format("counters{}{}", summary.model_name.empty() ? "" : " of " + summary.model_name,
                                summary.formats.empty() ? "" : fmt::format(" ({})", fmt::join(summary.formats, ", ")));
  if (summary.engines.size() == 1) acceptance.engine = summary.engines.front();
  acceptance.files = source.counters;
  return acceptance;
}

PlannedAcceptance from_trace(const AcceptanceSource& source) {
  const auto recording = traces::open_trace(paths_of(source.trace), {});
  planning::TraceAnalysisOptions options;
  options.observe.rule = traces::acceptance_rule_named(source.rule);
  options.observe.lenience.clear();
  options.max_gamma = std::min(source.max_gamma, theory::largest_replayed_gamma);
  planning::TraceAnalyzer analyzer(recording->metadata(), options);
  traces::PositionBatch batch;
  planning::SequenceRates rates;
  while (recording->read(batch)) {
    const estimate::Observations& seen = analyzer.add(*recording, batch);
    if (source.by_request) rates.add(seen);
  }
  const planning::TraceAnalysis analysis = analyzer.finish(recording->metadata().task_names);
  if (!analysis.replay) {
    std::string why;
    for (const traces::Note& note : analysis.notes) why += (why.empty() ? ": " : "; ") + note.message;
    throw UsageError(fmt::format("--trace: {} cannot be replayed{}", source.trace.front(), why));
  }
  PlannedAcceptance acceptance;
  acceptance.curve = std::make_shared<planning::ReplayCurve>(
      analysis.replay->lower, analysis.replay->upper ? &*analysis.replay->upper : nullptr);
  acceptance.rule = analysis.rule;
  acceptance.clusters = analysis.sequences;
  acceptance.method = "sequences";
  acceptance.request_rates = rates.rates();
  if (const estimate::AcceptanceEstimate* alpha = analysis.best_alpha()) {
    acceptance.alpha = alpha->value;
    acceptance.alpha_ci95 = alpha->ci95;
  }
  acceptance.text = fmt::format("replay of {} positions", analysis.positions);
  for (const std::filesystem::path& file : recording->files()) acceptance.files.push_back(file.string());
  for (const traces::Note& note : recording->notes()) acceptance.warnings.push_back({note.code, note.message});
  for (const traces::Note& note : analysis.notes) acceptance.warnings.push_back({note.code, note.message});
  return acceptance;
}

}  // namespace

AcceptanceSource acceptance_source(const PlanOptions& o, std::int64_t max_gamma) {
  AcceptanceSource source;
  source.counters = o.counters;
  source.trace = o.trace;
  source.gamma = o.at;
  source.model = o.model;
  source.rule = o.acceptance;
  source.beyond = o.beyond;
  source.max_gamma = max_gamma;
  return source;
}

PlannedAcceptance acceptance_from(const AcceptanceSource& source) {
  PlannedAcceptance acceptance = source.counters.empty() ? from_trace(source) : from_counters(source);
  if (const auto rule = traces::acceptance_rule_named(source.rule)) acceptance.rule = rule;
  return acceptance;
}

}  // namespace specdec::cli
