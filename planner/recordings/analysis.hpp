#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "analysis/planning/trace_analysis.hpp"
#include "planner/assumption.hpp"
#include "planner/cost.hpp"
#include "planner/sources/recording_files.hpp"
#include "traces/note.hpp"
#include "traces/position_source.hpp"

/// Results of a recording on acceptance, gamma and other ways to draft.
namespace specdec::planner {

inline constexpr std::array<double, 5> usual_leniences = {0.9, 0.7, 0.5, 0.3, 0.1};

/// A question about a recording. Members correspond to the options of `specdec analyze` of the same name.
struct AnalysisQuestion {
  RecordingRules rules = {};
  /// Tolerance of a row's sum about 1, (0, 1]; by its number type if not given.
  std::optional<double> row_tolerance = {};
  /// The labels in place of the tasks of files: grouped_recording.
  estimate::LabelGroups by = {};
  /// With an empty c there are no speedups.
  StepTimes cost = {};
  /// In increasing order, in [1, theory::largest_replayed_gamma]; empty: 1 to 16.
  std::vector<std::int64_t> gamma = {};
  /// Each in (0, 1], for whole rows; empty: the usual ones if rows are whole.
  std::optional<std::vector<double>> lenience = {};
  /// Other ways to sample whole rows; empty: a few temperatures if rows are whole and their files small.
  std::optional<std::vector<planning::SweepSetting>> standardise = {};
  /// >= 1; does not affect the answer.
  std::int64_t threads = 1;
};

/// The results of a recording.
struct Analysis {
  AnalysisQuestion question;
  /// The gammas that are shown, in increasing order: of those asked for, those that the recording tells of.
  std::vector<std::int64_t> gammas;
  std::optional<core::StepCost> cost;
  traces::TraceMetadata metadata;
  planning::TraceAnalysis recording;
  /// True if reading was interrupted: the results are those of what was read until then.
  bool partial = false;
  std::vector<std::string> files;
  std::vector<Assumption> assumptions;
  std::vector<Note> warnings;
};

/// Reads a recording to its end, once.
/// @param hooks  are told the share of the positions read so far, if the recording states how many it has; an
/// interrupted
///   run answers from what was read until then
/// @throws QuestionError if a member is out of range, or the recording holds no position
/// @throws estimate::RuleUndefined if the rule has no meaning for what was recorded
/// @throws traces::FileError if a file cannot be read, or a row is not a distribution
Analysis analyze(traces::PositionSource& source, const AnalysisQuestion& question = {},
                 const core::RunHooks& hooks = {});
Analysis analyze(const RecordingFiles& recording, const AnalysisQuestion& question = {},
                 const core::RunHooks& hooks = {});

}  // namespace specdec::planner
