#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/options.hpp"
#include "cli/report.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::cli {

/// --acceptance, --assume-processed and --force-replay: how a recording is taken, for every command that replays one.
struct AcceptanceOptions {
  std::string acceptance = "recorded";
  bool assume_processed = false;
  bool force_replay = false;

  void declare(Options& options);

  /// Nothing where the recording's own is to be taken.
  std::optional<traces::AcceptanceRule> rule() const;

  /// @param followed  the rule that was taken in the end
  std::vector<Assumption> assumptions(const traces::TraceMetadata& metadata, traces::AcceptanceRule followed) const;
};

}  // namespace specdec::cli
