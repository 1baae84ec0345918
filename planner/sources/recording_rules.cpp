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

}  // namespace specdec::planner
