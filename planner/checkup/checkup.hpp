#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "planner/checkup/draft_checks.hpp"
#include "planner/checkup/finding.hpp"
#include "planner/sources/recording_files.hpp"

/// Wrong or suspicious content of files that servers, benchmarks and recorders wrote.
namespace specdec::planner {

/// False alarms of all statistical tests of one checkup together.
inline constexpr double checkup_false_alarm_rate = 0.01;

struct CheckupQuestion {
  /// Counters, logs, benchmark results, answers, recordings and configurations of engines, in any order; scrapes of one
  /// server in the order of time.
  std::vector<std::string> files = {};
  /// A recording in two files, one a model: target and draft of `pair.how`. Neither is given where there is none.
  std::optional<RecordingFiles> pair = {};
  /// The draft's own times and its roofline.
  std::optional<DraftTimes> draft_times = {};
  /// Drafted tokens a round, where the files do not say it; >= 1.
  std::optional<std::int64_t> gamma = {};
  /// How drafts are made, where the files do not say it.
  std::optional<cost::DraftKind> draft_kind = {};
  /// The answer does not depend on it, >= 1.
  std::int64_t threads = 1;
};

/// A file, and the kind that it was taken for.
struct CheckedFile {
  std::string file;
  /// "counts", "recording" or "configuration"; what is both of the first is read as counts.
  std::string kind;
};

struct Checkup {
  std::vector<CheckedFile> files;
  /// Errors first.
  std::vector<Finding> findings;
  /// Statistical tests that were made.
  std::int64_t tests = 0;
  /// What they would have shown.
  std::vector<LookedFor> looked_for = {};

  std::int64_t count(Severity severity) const;
};

/// Reads each file by the format that its content shows, and asks of it everything that can go wrong in files of its
/// kind; files that say something of each other are held against each other. A file of a known format that its
/// reader refuses is a finding, "refused", and the others are read all the same.
///
/// Memory grows with the number of units of counts (requests, windows, runs).
/// Source:   docs/reference/formats.md#what-doctor-checks
/// @throws QuestionError if there are no files, one is given twice, or a member is out of range
/// @throws traces::FileError for a file that cannot be read or is in no known format
Checkup check_up(const CheckupQuestion& question);

}  // namespace specdec::planner
