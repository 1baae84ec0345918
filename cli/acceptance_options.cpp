#include "cli/acceptance_options.hpp"

#include "traces/acceptance_rules.hpp"

namespace specdec::cli {

void AcceptanceOptions::declare(Options& options) {
  options.choice("--acceptance", acceptance, {"recorded", "rejection", "greedy-draft", "greedy"},
                 "the engine's rule; recorded: the recording's, else rejection");
  options.flag("--assume-processed", assume_processed,
               "take log-probabilities for those that were sampled from,\nwhatever the recording says");
  options.flag("--force-replay", force_replay, "replay a text that is not the target's own too");
}

planner::RecordingRules AcceptanceOptions::rules() const {
  return {traces::acceptance_rule_named(acceptance), assume_processed, force_replay};
}

}  // namespace specdec::cli
