#include <fmt/format.h>
#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string_view>
#include <thread>
#include <utility>

#include "analysis/estimate/observe.hpp"
#include "analysis/planning/replay_columns.hpp"
#include "cli/acceptance_options.hpp"
#include "cli/figures/figure_kind.hpp"
#include "cli/figures/token_strip.hpp"
#include "cli/files.hpp"
#include "cli/shipped_models.hpp"
#include "cli/usage_error.hpp"
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
  std::int64_t threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);

  void declare(Options& options, const std::string& usual) {
    options.group("Recording");
    options.texts("--trace", trace, "FILE", "a recording, in any format of docs/trace_format.md\n[" + usual + "]");
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

std::function<Chart()> set_up_beta_histogram(Options& options) {
  const auto o = std::make_shared<RecordingOptions>();
  o->declare(options, shipped_recording);
  return [o] { return chart_of_recording(beta_histogram_chart, *o, analysis_of(*o)); };
}

std::function<Chart()> set_up_autocorrelation(Options& options) {
  const auto o = std::make_shared<RecordingOptions>();
  o->declare(options, shipped_recording);
  return [o] { return chart_of_recording(autocorrelation_chart, *o, analysis_of(*o)); };
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
  struct LenienceOptions {
    RecordingOptions recording;
    std::int64_t values = 20;
  };
  const auto o = std::make_shared<LenienceOptions>();
  o->recording.declare(options, short_recording);
  options.group("Question");
  options.integer("--values", o->values, {2, 1000}, "leniences, at equal distances up to 1");
  return [o] {
    planning::TraceAnalysisOptions how = analysis_of(o->recording);
    for (std::int64_t i = 1; i <= o->values; ++i) {
      how.observe.lenience.push_back(static_cast<double>(i) / static_cast<double>(o->values));
    }
    return chart_of_rows(lenience_chart, o->recording, how);
  };
}

std::function<Chart()> set_up_calibration(Options& options) {
  struct CalibrationOptions {
    RecordingOptions recording;
    std::int64_t bins = 10;
  };
  const auto o = std::make_shared<CalibrationOptions>();
  o->recording.declare(options, short_recording);
  options.group("Question");
  options.integer("--bins", o->bins, {1, 100}, "equal bins of the draft's probability");
  return [o] {
    planning::TraceAnalysisOptions how = analysis_of(o->recording);
    how.observe.confidence_bins = o->bins;
    return chart_of_rows(calibration_chart, o->recording, how);
  };
}

// ---- The strip.

struct TokenStripOptions {
  RecordingOptions recording;
  std::int64_t gamma = 4;
  std::int64_t sequences = 6;
  std::int64_t tokens = 64;
  std::int64_t seed = 1;
};

/// The sequences that are drawn: as many of each task, the first ones of the recording.
class DrawnSequences {
 public:
  DrawnSequences(std::int64_t most, std::int64_t tokens) : most_(static_cast<std::size_t>(most)), tokens_(tokens) {}

  /// The sequences of the next batch.
  void meet(const estimate::Observations& seen, const std::vector<std::string>& task_names) {
    const std::size_t each = std::max<std::size_t>(1, most_ / std::max<std::size_t>(1, task_names.size()));
    for (std::size_t i = 0; i < seen.sequence.size(); ++i) {
      if (i > 0 && seen.sequence[i] == seen.sequence[i - 1]) continue;
      const std::int32_t task = seen.task.empty() ? -1 : seen.task[i];
      const std::size_t at_most = task_names.empty() ? most_ : each;
      if (places_.count(seen.sequence[i]) > 0 || drawn_.size() == most_ || by_task_[task] == at_most) continue;
      ++by_task_[task];
      places_[seen.sequence[i]] = drawn_.size();
      const std::string name = traces::task_name(task_names, task);
      drawn_.push_back({fmt::format("{}{}", name.empty() ? "" : name + " ", seen.sequence[i]), {}});
    }
  }
  void add(const sim::ReplayedRound& round) {
    const auto found = places_.find(round.sequence);
    if (found == places_.end() || round.place + round.emitted > tokens_) return;
    drawn_[found->second].rounds.push_back(round);
  }
  const std::vector<StripSequence>& drawn() const { return drawn_; }

 private:
  std::size_t most_;
  std::int64_t tokens_;
  std::map<std::int64_t, std::size_t> places_;
  std::map<std::int32_t, std::size_t> by_task_;
  std::vector<StripSequence> drawn_;
};

Chart token_strip_figure(const TokenStripOptions& o) {
  const auto source = o.recording.open();
  TokenStripInputs inputs;
  inputs.acceptance = o.recording.acceptance;
  inputs.threads = o.recording.threads;
  inputs.gamma = o.gamma;
  inputs.sequences = o.sequences;
  inputs.tokens = o.tokens;
  inputs.seed = static_cast<std::uint64_t>(o.seed);
  inputs.recording = o.recording.trace.empty() ? "the shipped pair's recording" : name_of_recording(o.recording.trace);
  Chart chart = recorded_token_strip(*source, inputs);
  describe(o.recording, *source, chart);
  return chart;
}

std::function<Chart()> set_up_token_strip(Options& options) {
  const auto o = std::make_shared<TokenStripOptions>();
  o->recording.declare(options, shipped_recording);
  options.group("Question");
  options.integer("-k,--gamma,--num-speculative-tokens", o->gamma, {0, theory::largest_replayed_gamma},
                  "drafted tokens per step");
  options.integer("--sequences", o->sequences, {1, 50}, "sequences to draw, as many of each task");
  options.integer("--tokens", o->tokens, {1, 1000}, "first tokens of each");
  options.integer("--seed", o->seed, {}, "seed of the run");
  return [o] { return token_strip_figure(*o); };
}

}  // namespace

Chart recorded_token_strip(traces::PositionSource& source, const TokenStripInputs& inputs) {
  if (source.metadata().path == traces::TextSource::other && !inputs.acceptance.force_replay) {
    throw UsageError(
        "the text is not the target's own (path is other), and only such a text can be replayed; --force-replay does "
        "it all the same");
  }
  estimate::Observer observer(source.metadata(), observed_by(inputs.acceptance, inputs.threads));
  DrawnSequences sequences(inputs.sequences, inputs.tokens);
  sim::ReplaySimulation simulation({.gamma = inputs.gamma}, inputs.seed,
                                   [&](const sim::ReplayedRound& round) { sequences.add(round); });
  std::optional<planning::ReplayColumns> columns;
  bool exact = true;
  traces::PositionBatch batch;
  while (source.read(batch)) {
    const estimate::Observations seen = observer.observe(source, batch);
    if (!columns) {
      columns.emplace(observer.replayed_depths(source.depths(), std::max<std::int64_t>(1, inputs.gamma)));
    }
    if (!columns->take(seen)) throw UsageError(planning::nothing_of_acceptance(planning::lacks_tokens(batch)));
    exact = exact && columns->exact();
    sequences.meet(seen, source.metadata().task_names);
    simulation.add({.sequence = seen.sequence,
                    .place = seen.place,
                    .acceptance = columns->lower(),
                    .depths = columns->depths(),
                    .draft_probability = {}});
  }
  if (!columns) throw UsageError("the recording holds no position");
  planner::require_drafted(columns->longest_draft(), inputs.gamma);
  simulation.finish();
  const std::int64_t drawn = std::ssize(sequences.drawn());
  Chart chart = token_strip_chart(sequences.drawn(), inputs.gamma, inputs.seed,
                                  fmt::format("{} sequence{} of {}", drawn, drawn == 1 ? "" : "s", inputs.recording));
  if (!exact) {
    chart.warnings.push_back(
        {"acceptance_bracketed", "acceptance is known within brackets only: the run is one at their lower ends"});
  }
  chart.assumptions = inputs.acceptance.rules().assumptions(source.metadata(), observer.rule());
  append(chart.warnings, observer.notes());
  return chart;
}

std::vector<FigureKind> trace_figures() {
  return {{"beta-histogram", "how acceptance varies from prefix to prefix, by task", set_up_beta_histogram},
          {"position-acceptance", "acceptance of draft 1, 2, ... as observed, by one rate and by a Markov chain",
           set_up_position_acceptance},
          {"autocorrelation", "how far easy and hard stretches of the text reach", set_up_autocorrelation},
          {"tokens-over-gamma", "tokens per step against gamma: exact replay and Eq. 1", set_up_tokens_over_gamma},
          {"lenience", "acceptance and distance from the target against lenience", set_up_lenience},
          {"calibration", "acceptance of drafted tokens by the draft's probability", set_up_calibration},
          {"token-strip", "accepted and rejected tokens of one simulated run", set_up_token_strip}};
}

}  // namespace specdec::cli
