#include "planner/recordings/recording_summary.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <utility>

#include "analysis/core/standardisation.hpp"
#include "analysis/core/state_archive.hpp"
#include "planner/question_error.hpp"
#include "planner/recordings/analysis_answer.hpp"
#include "planner/sources/recording_files.hpp"
#include "traces/batch_slice.hpp"
#include "traces/formats/streams.hpp"

namespace specdec::planner {
namespace {

using planning::SweepSetting;

/// Number of bins of the draft's probability in which its calibration is reported.
constexpr std::int64_t confidence_bins = 10;
/// Recordings whose files, or whose rows in memory, are larger are not swept through temperatures unless requested.
constexpr std::uintmax_t swept_without_asking_bytes = 64'000'000;
/// No file has as many columns of depths; a part that says so is none.
constexpr std::int64_t most_depths = 1 << 20;

std::vector<SweepSetting> usual_sweep() {
  const auto at = [](SweepSetting::Applies applies, double temperature) {
    SweepSetting setting{applies, {}};
    setting.standardisation.temperature = temperature;
    return setting;
  };
  std::vector<SweepSetting> sweep;
  for (const double temperature : {0.0, 0.5, 0.7, 1.0}) sweep.push_back(at(SweepSetting::Applies::both, temperature));
  sweep.push_back(at(SweepSetting::Applies::draft, 0.7));
  return sweep;
}

/// Rows in memory are judged as if they were of F32, whatever share of them is read.
bool is_small(const traces::PositionSource& source) {
  std::uintmax_t bytes = 0;
  for (const std::filesystem::path& file : source.files())
    bytes += std::filesystem::file_size(traces::readable_path(file));
  if (source.files().empty()) {
    const std::int64_t numbers = 2 * source.positions().value_or(0) * source.metadata().vocab_size.value_or(0);
    bytes = static_cast<std::uintmax_t>(numbers) * sizeof(float);
  }
  return bytes <= swept_without_asking_bytes;
}

planning::TraceAnalysisOptions options_of(const Analysis& answer, bool sweeps_unasked) {
  const AnalysisQuestion& question = answer.question;
  planning::TraceAnalysisOptions options;
  options.observe.rule = question.rules.acceptance;
  options.observe.assume_processed = question.rules.assume_processed;
  options.observe.tolerance = question.row_tolerance;
  options.observe.lenience =
      question.lenience.value_or(std::vector<double>(usual_leniences.begin(), usual_leniences.end()));
  options.observe.threads = question.threads;
  options.observe.confidence_bins = confidence_bins;
  options.max_gamma = answer.gammas.back();
  options.cost = answer.cost;
  options.sweep = question.standardise.value_or(sweeps_unasked ? usual_sweep() : std::vector<SweepSetting>());
  options.asked_for_lenience = question.lenience.has_value();
  options.asked_for_sweep = question.standardise.has_value();
  options.force_replay = question.rules.force_replay;
  return options;
}

/// Leaves the gammas up to the largest one that the recording tells of.
/// @throws QuestionError if none is left
void leave_out_above(std::int64_t longest, std::vector<std::int64_t>& gammas) {
  require_drafted(longest, gammas.front());
  gammas.erase(std::upper_bound(gammas.begin(), gammas.end(), longest), gammas.end());
}

/// All that decides the answer: everything but the threads.
template <class Archive>
void exchange_question(Archive& archive, AnalysisQuestion& q) {
  archive(q.rules.acceptance, q.rules.assume_processed, q.rules.force_replay, q.row_tolerance, q.by.label, q.by.bounds,
          q.cost.c, q.cost.overhead, q.gamma, q.lenience, q.cost.verify_factor, q.standardise);
}

std::vector<std::string> names_of(const std::vector<std::filesystem::path>& files) {
  std::vector<std::string> names;
  for (const std::filesystem::path& file : files) names.push_back(file.string());
  return names;
}

}  // namespace

std::unique_ptr<traces::PositionSource> share_of(const RecordingFiles& recording, const traces::Shard& shard,
                                                 const estimate::LabelGroups& groups) {
  auto source = grouped_recording(open_recording(recording), groups);
  if (shard.of > 1) source = std::make_unique<traces::ShardedRecording>(std::move(source), shard);
  return source;
}

RecordingSummary::RecordingSummary(const AnalysisQuestion& question) : answer_(empty_answer(question)) {}

RecordingSummary RecordingSummary::of(traces::PositionSource& source, const AnalysisQuestion& question,
                                      const core::RunHooks& hooks) {
  RecordingSummary summary(question);
  summary.read(source, hooks);
  return summary;
}

RecordingSummary RecordingSummary::of(const RecordingFiles& recording, const traces::Shard& shard,
                                      const AnalysisQuestion& question, const core::RunHooks& hooks) {
  RecordingSummary summary(question);
  summary.read(*share_of(recording, shard, question.by), hooks);
  return summary;
}

void RecordingSummary::read(traces::PositionSource& source, const core::RunHooks& hooks) {
  answer_.metadata = source.metadata();
  answer_.files = names_of(source.files());
  depths_ = source.depths();
  sweeps_unasked_ = is_small(source);
  begin();
  traces::PositionBatch batch;
  while (source.read(batch)) {
    answer_.partial = positions() > 0 && hooks.interrupted();
    if (answer_.partial) break;
    traces::read_ahead(batch);
    analyzer_->add(source, batch);
    tell_of_reading(hooks.progress, source, batch);
  }
  hooks.tell(1);
  answer_.metadata = source.metadata();
  answer_.files = names_of(source.files());
  notes_ = source.notes();
}

void RecordingSummary::begin() { analyzer_.emplace(answer_.metadata, depths_, options_of(answer_, sweeps_unasked_)); }

void RecordingSummary::merge(RecordingSummary& other) {
  if (identity() != other.identity())
    throw std::invalid_argument("RecordingSummary::merge: the other is of another question or another recording");
  answer_.partial = answer_.partial || other.answer_.partial;
  analyzer_->merge(*other.analyzer_);
}

Analysis RecordingSummary::answer() {
  if (positions() == 0) throw QuestionError("the recording holds no position");
  Analysis answer = answer_;
  answer.recording = analyzer_->finish(answer.metadata.task_names);
  if (const auto longest = answer.recording.longest_draft) leave_out_above(*longest, answer.gammas);
  complete(answer, notes_);
  return answer;
}

template <class Archive>
void RecordingSummary::exchange_identity(Archive& archive) {
  exchange_question(archive, answer_.question);
  std::map<std::string, std::string> metadata = to_strings(answer_.metadata);
  archive(metadata, depths_, sweeps_unasked_);
  archive.require(depths_ == traces::every_depth || (1 <= depths_ && depths_ <= most_depths));
  if constexpr (Archive::reads) answer_.metadata = traces::metadata_from_strings(metadata, {});
}

template <class Archive>
void RecordingSummary::exchange(Archive& archive) {
  exchange_identity(archive);
  archive(answer_.files, answer_.partial, notes_);
  if constexpr (Archive::reads) {
    Analysis asked = empty_answer(answer_.question);
    asked.metadata = std::move(answer_.metadata);
    asked.files = std::move(answer_.files);
    asked.partial = answer_.partial;
    answer_ = std::move(asked);
    begin();
  }
  archive(*analyzer_);
}

std::string RecordingSummary::identity() {
  core::StateWriter writer;
  exchange_identity(writer);
  return writer.bytes();
}

std::string RecordingSummary::state() {
  core::StateWriter writer;
  exchange(writer);
  return writer.bytes();
}

RecordingSummary RecordingSummary::from_state(std::string_view state) {
  RecordingSummary summary(AnalysisQuestion{});
  core::StateReader reader(state);
  summary.exchange(reader);
  if (!reader.at_end()) throw std::invalid_argument("RecordingSummary::from_state: there are bytes behind the state");
  return summary;
}

}  // namespace specdec::planner
