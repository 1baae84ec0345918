#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>

#include "analysis/estimate/observe.hpp"
#include "cli/acceptance_options.hpp"
#include "cli/figures/figure_kind.hpp"
#include "cli/files.hpp"
#include "cli/shipped_models.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"
#include "planner/methods/checkpoint_pair.hpp"
#include "planner/sources/recording_files.hpp"
#include "render/figures/trace_charts.hpp"
#include "sim/recording.hpp"
#include "traces/open_trace.hpp"

namespace specdec::cli {

using namespace render;
namespace {

estimate::ObserveOptions observed_by(const AcceptanceOptions& acceptance, std::int64_t threads) {
  estimate::ObserveOptions how;
  how.rule = acceptance.rules().acceptance;
  how.assume_processed = acceptance.assume_processed;
  how.threads = threads;
  return how;
}

/// Which recording, and how it is taken.
struct RecordingOptions {
  std::vector<std::string> trace;
  AcceptanceOptions acceptance;
  std::int64_t threads = default_threads();

  void declare(Options& options, const std::string& usual) {
    options.group("Recording");
    options.texts("--trace", trace, "FILE", "a recording, in any format of docs/reference/formats.md\n[" + usual + "]");
    acceptance.declare(options);
    options.integer("--threads", threads, {.lo = 1, .hi = 1024}, "threads; results do not depend on them");
  }

  /// The one that comes with the program where none is named.
  std::unique_ptr<traces::PositionSource> open() const {
    std::vector<std::filesystem::path> files(trace.begin(), trace.end());
    if (files.empty()) files.push_back(planner::require_shipped_models(shipped_models()) / "recording.safetensors");
    return traces::open_trace(files, {});
  }

  std::string text(std::int64_t positions) const {
    return fmt::format("{} positions of {}", positions, trace.empty() ? "the shipped pair" : name_of_recording(trace));
  }
};

constexpr const char* shipped_recording = "one of the shipped pair";
constexpr const char* short_recording = "a short one, made of the shipped pair";

/// Adds the files, assumptions and warnings that the chart rests on.
void describe(const RecordingOptions& o, const traces::PositionSource& source, Chart& chart) {
  for (const auto& file : source.files()) chart.files.push_back(file_facts("--trace", file.string()));
  if (o.trace.empty()) chart.assumptions.push_back({"recording", "of the shipped pair", "default"});
  append(chart.warnings, source.notes());
}

// ---- Charts of an analysis.

using ChartOfTrace = Chart (*)(const TraceChartInputs& inputs);

Chart chart_of(ChartOfTrace draw, const planning::TraceAnalysis& analysis, const RecordingOptions& o,
               const traces::TraceMetadata& metadata) {
  Chart chart = draw({analysis, o.text(analysis.positions)});
  for (const Assumption& assumption : o.acceptance.rules().assumptions(metadata, analysis.rule)) {
    chart.assumptions.push_back(assumption);
  }
  append(chart.warnings, analysis.notes);
  return chart;
}

planning::TraceAnalysisOptions analysis_of(const RecordingOptions& o) {
  planning::TraceAnalysisOptions how;
  how.observe = observed_by(o.acceptance, o.threads);
  how.force_replay = o.acceptance.force_replay;
  return how;
}

Chart chart_of_recording(ChartOfTrace draw, const RecordingOptions& o, const planning::TraceAnalysisOptions& how) {
  const auto source = o.open();
  const planning::TraceAnalysis analysis = planning::analyse(*source, how);
  if (analysis.positions == 0) throw UsageError("the recording holds no position");
  Chart chart = chart_of(draw, analysis, o, source->metadata());
  describe(o, *source, chart);
  return chart;
}

/// A recording whose batches somebody else hands on: all it knows is what it says of itself.
class RecordingBeingMade : public traces::PositionSource {
 public:
  explicit RecordingBeingMade(traces::TraceMetadata metadata) : metadata_(std::move(metadata)) {}
  const traces::TraceMetadata& metadata() const override { return metadata_; }
  std::vector<std::filesystem::path> files() const override { return {}; }
  std::string format() const override { return "being made"; }
  bool read(traces::PositionBatch&) override { return false; }

 private:
  traces::TraceMetadata metadata_;
};

/// Whole rows take too much room to come with the program, and are soon made: short texts after every third prompt.
constexpr std::size_t made_every_nth_prompt = 3;
constexpr std::int64_t made_tokens = 12;

Chart chart_of_rows(ChartOfTrace draw, const RecordingOptions& o, const planning::TraceAnalysisOptions& how) {
  if (!o.trace.empty()) return chart_of_recording(draw, o, how);
  const planner::CheckpointPair pair({}, shipped_models());
  const std::vector<sim::Prompt> all = pair.prompts({}, pair.longest_prompt(made_tokens)).kept;
  std::vector<sim::Prompt> prompts;
  for (std::size_t i = 0; i < all.size(); i += made_every_nth_prompt) prompts.push_back(all[i]);
  sim::RecordingOptions recording;
  recording.sequences = static_cast<std::int64_t>(prompts.size());
  recording.max_new_tokens = made_tokens;
  recording.threads = std::min<std::int64_t>(o.threads, recording.sequences);
  const RecordingBeingMade source(sim::recording_metadata(prompts, pair.vocab_size(), recording));
  planning::TraceAnalyzer analyzer(source.metadata(), source.depths(), how);
  sim::record_texts(pair.models(), prompts, recording, 0,
                    [&](const traces::PositionBatch& batch) { analyzer.add(source, batch); });
  const planning::TraceAnalysis analysis = analyzer.finish(source.metadata().task_names);
  Chart chart = chart_of(draw, analysis, o, source.metadata());
  chart.files = facts_of(pair.files());
  for (const Assumption& assumption : pair.assumptions()) chart.assumptions.push_back(assumption);
  chart.assumptions.push_back({"tokens after each prompt", made_tokens, "default"});
  return chart;
}

/// A recording that is replayed up to some gamma.
struct ReplayedRecordingOptions {
  RecordingOptions recording;
  std::int64_t max_gamma;

  void declare(Options& options) {
    recording.declare(options, shipped_recording);
    options.group("Question");
    options.integer("--max-gamma", max_gamma, {1, theory::largest_replayed_gamma}, "largest gamma to replay");
  }
  Chart chart(ChartOfTrace draw) const {
    planning::TraceAnalysisOptions how = analysis_of(recording);
    how.max_gamma = max_gamma;
    return chart_of_recording(draw, recording, how);
  }
};

std::function<Chart()> set_up_position_acceptance(Options& options) {
  const auto o = std::make_shared<ReplayedRecordingOptions>(ReplayedRecordingOptions{{}, 8});
  o->declare(options);
  return [o] { return o->chart(position_acceptance_chart); };
}

std::function<Chart()> set_up_tokens_over_gamma(Options& options) {
  const auto o = std::make_shared<ReplayedRecordingOptions>(ReplayedRecordingOptions{{}, 12});
  o->declare(options);
  return [o] { return o->chart(tokens_over_gamma_chart); };
}

// ---- Charts of whole rows.

std::function<Chart()> set_up_lenience(Options& options) {
  const auto recording = std::make_shared<RecordingOptions>();
  recording->declare(options, short_recording);
  return [recording] {
    planning::TraceAnalysisOptions how = analysis_of(*recording);
    constexpr int leniences = 20;
    for (int i = 1; i <= leniences; ++i) how.observe.lenience.push_back(static_cast<double>(i) / leniences);
    return chart_of_rows(lenience_chart, *recording, how);
  };
}

std::function<Chart()> set_up_calibration(Options& options) {
  const auto recording = std::make_shared<RecordingOptions>();
  recording->declare(options, short_recording);
  return [recording] {
    planning::TraceAnalysisOptions how = analysis_of(*recording);
    how.observe.confidence_bins = 10;
    return chart_of_rows(calibration_chart, *recording, how);
  };
}

}  // namespace

std::vector<FigureKind> trace_figures() {
  return {{"position-acceptance", "acceptance of draft 1, 2, ... as observed, by one rate and by a Markov chain",
           set_up_position_acceptance},
          {"tokens-over-gamma", "tokens per step against gamma: exact replay and Eq. 1", set_up_tokens_over_gamma},
          {"lenience", "acceptance and distance from the target against lenience", set_up_lenience},
          {"calibration", "acceptance of drafted tokens by the draft's probability", set_up_calibration}};
}

}  // namespace specdec::cli
