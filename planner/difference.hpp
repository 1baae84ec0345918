#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/estimate/label_groups.hpp"
#include "analysis/estimate/run_difference.hpp"
#include "planner/assumption.hpp"
#include "traces/note.hpp"
#include "traces/trace_metadata.hpp"

/// Two runs of speculative decoding, or two drafts, held against each other.
namespace specdec::planner {

/// One side of the comparison: counts in any format of docs/reference/formats.md, or a recording.
struct ComparedFiles {
  std::string file;
  /// The draft's name or array, if a recording holds several.
  std::optional<std::string> draft_array = {};
};

struct DifferenceQuestion {
  ComparedFiles a, b;
  /// Drafted tokens per step: of recordings, which are replayed at it, and of counts that do not state it; >= 1.
  std::optional<std::int64_t> gamma = {};
  /// The label of the prompt mix; empty: "category" of counts, tasks of a recording.
  estimate::LabelGroups by = {};
  /// Take no two requests or texts for those of one prompt.
  bool unpaired = false;
  /// Receives the share of the positions of a recording read so far.
  std::function<void(double share)> progress = {};
};

/// The warning of two runs that may be two scrapes of one server.
inline constexpr std::string_view later_scrape = "later_scrape";

/// Facts about one side of the comparison.
struct ComparedRun {
  std::string file;
  /// "counts" or "recording".
  std::string kind;
  /// "request", "window", "run", "total" or "text"; "unit" for several kinds.
  std::string unit;
  std::optional<traces::AcceptanceRule> rule;
  /// The same in all rounds; empty if it varies or is unknown.
  std::optional<std::int64_t> gamma;
};

struct RunsDifference {
  DifferenceQuestion question;
  ComparedRun a, b;
  estimate::RunDifference difference;
  /// Why `difference` decides nothing whatever its interval: a text that is not the target's own, lengths of texts
  /// that may be all of it, or shares of steps without a draft that differ; it then has no `clusters_to_tell` and `detectable`. Empty if nothing speaks against it.
  std::string undecided;
  std::vector<std::string> files;

  /// Whether the runs are told apart.
  bool tells() const { return undecided.empty() && difference.tokens.tells(); }
  std::vector<Assumption> assumptions;
  std::vector<Note> warnings;
};

/// Compares the two. Component `sources`.
/// @throws QuestionError, traces::FileError
RunsDifference difference(const DifferenceQuestion& question);

}  // namespace specdec::planner
