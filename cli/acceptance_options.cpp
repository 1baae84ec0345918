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

std::optional<traces::AcceptanceRule> AcceptanceOptions::rule() const {
  return traces::acceptance_rule_named(acceptance);
}

std::vector<Assumption> AcceptanceOptions::assumptions(const traces::TraceMetadata& metadata,
                                                       traces::AcceptanceRule followed) const {
  std::vector<Assumption> assumptions = {{"acceptance", traces::name_of(followed),
                                          rule()                ? "user"
                                          : metadata.acceptance ? "file"
                                                                : "default"}};
  assumptions.push_back({"text from", metadata.path == traces::TextSource::other ? "elsewhere" : "the target",
                         metadata.path == traces::TextSource::unknown ? "default" : "file"});
  if (assume_processed) assumptions.push_back({"log-probabilities", "processed", "user"});
  return assumptions;
}

}  // namespace specdec::cli
