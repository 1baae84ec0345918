#include "planner/sources/recording_rules.hpp"

#include "traces/acceptance_rules.hpp"

namespace specdec::planner {

std::vector<Assumption> RecordingRules::assumptions(const traces::TraceMetadata& metadata,
                                                    traces::AcceptanceRule followed) const {
  std::vector<Assumption> assumptions = {{"acceptance", traces::name_of(followed),
                                          acceptance            ? "user"
                                          : metadata.acceptance ? "file"
                                                                : "default"}};
  assumptions.push_back({"text from", metadata.path == traces::TextSource::other ? "elsewhere" : "the target",
                         metadata.path == traces::TextSource::unknown ? "default" : "file"});
  if (assume_processed) assumptions.push_back({"log-probabilities", "processed", "user"});
  return assumptions;
}

Assumption charge_of_text_ends() {
  return {"steps at the ends of texts", "charged for all their drafts, but yielding only the tokens left", "default"};
}

}  // namespace specdec::planner
