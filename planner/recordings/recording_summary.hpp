#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "planner/recordings/analysis.hpp"
#include "traces/position_source.hpp"
#include "traces/sharded_recording.hpp"

namespace specdec::planner {

/// A recording as a question looks at it: its files, grouped, and of these a share.
/// @throws as open_recording and grouped_recording do
std::unique_ptr<traces::PositionSource> share_of(const RecordingFiles& recording, const traces::Shard& shard,
                                                 const estimate::LabelGroups& groups);

/// All that an analysis knows of a set of sequences of a recording: sums, counts and clusters, in bounded memory. The
/// answer is a function of the set: equal to the bit whatever order the sequences came in and however they were divided
/// among summaries that were merged, by the same version of the program on processors of the same instruction set.
///
/// Source:   docs/reference/formats.md
class RecordingSummary {
 public:
  /// Reads a recording, or a share of one (traces::ShardedRecording), to its end.
  /// @param hooks  as in analyze(); an interrupted summary is of what was read until then
  /// @throws as analyze() does, but for a recording without positions
  static RecordingSummary of(traces::PositionSource& source, const AnalysisQuestion& question,
                             const core::RunHooks& hooks = {});
  /// The same of a share of files, which are opened only if the question can be answered.
  static RecordingSummary of(const RecordingFiles& recording, const traces::Shard& shard,
                             const AnalysisQuestion& question, const core::RunHooks& hooks = {});

  /// Adds a summary of other sequences of the same recording, from the same question.
  /// @throws std::invalid_argument if the other has another question, apart from threads, or another recording
  void merge(RecordingSummary& other);

  /// @throws QuestionError if there is no position, or `gamma` asks for none that the recording tells of
  Analysis answer();

  std::int64_t positions() const { return analyzer_->positions(); }
  std::int64_t sequences() const { return analyzer_->sequences(); }
  const traces::TraceMetadata& metadata() const { return answer_.metadata; }
  /// Those of the whole recording.
  const std::vector<std::string>& files() const { return answer_.files; }

  /// The summary as bytes, which the same version of the program reads.
  std::string state();
  /// @throws std::out_of_range, std::invalid_argument or std::domain_error if the bytes are not those of a state()
  static RecordingSummary from_state(std::string_view state);

 private:
  explicit RecordingSummary(const AnalysisQuestion& question);
  void read(traces::PositionSource& source, const core::RunHooks& hooks);
  void begin();
  /// The members that the summaries of one recording share, as bytes.
  std::string identity();
  template <class Archive>
  void exchange_identity(Archive& archive);
  template <class Archive>
  void exchange(Archive& archive);

  Analysis answer_;  // its question, metadata and files; the results are missing
  std::int64_t depths_ = 1;
  bool sweeps_unasked_ = false;
  std::vector<Note> notes_;  // the reader's
  std::optional<planning::TraceAnalyzer> analyzer_;
};

}  // namespace specdec::planner
