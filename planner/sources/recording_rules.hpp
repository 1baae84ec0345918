#pragma once

#include <optional>
#include <vector>

#include "planner/assumption.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::planner {

/// Rules for interpreting a recording.
struct RecordingRules {
  /// If empty, the rule that the recording names, else rejection sampling.
  std::optional<traces::AcceptanceRule> acceptance = {};
  /// Log-probabilities are those that were sampled from, whatever the recording says.
  bool assume_processed = false;
  /// Also replay a text that is not the target's own.
  bool force_replay = false;

  /// @param followed  the rule that was used in the end
  std::vector<Assumption> assumptions(const traces::TraceMetadata& metadata, traces::AcceptanceRule followed) const;
};

/// The cost and yield that replay assumes for the steps at the ends of texts.
Assumption charge_of_text_ends();

}  // namespace specdec::planner
