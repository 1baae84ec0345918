#pragma once

#include <string>

#include "cli/options.hpp"
#include "planner/sources/recording_files.hpp"

namespace specdec::cli {

/// --acceptance, --assume-processed and --force-replay: how a recording is taken, for every command that replays one.
struct AcceptanceOptions {
  std::string acceptance = "recorded";
  bool assume_processed = false;
  bool force_replay = false;

  void declare(Options& options);

  planner::RecordingRules rules() const;
};

}  // namespace specdec::cli
