#include "planner/recordings/recording_parts.hpp"

#include <fmt/format.h>
#include <exception>
#include <iterator>
#include <stdexcept>
#include <string>

#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

namespace fs = std::filesystem;

/// @throws traces::FileError if no recording has such a state
Analysis answer_of(RecordingSummary& all, const fs::path& first) {
  try {
    return all.answer();
  } catch (const QuestionError&) {
    throw;
  } catch (const std::exception& error) {
    refuse_part(first, "state", fmt::format("without an answer, alone or with the other parts ({})", error.what()),
                "as it was written");
  }
}

/// @throws traces::FileError if it is none of a recording
RecordingSummary summary_of_part(const fs::path& path) {
  const std::string state = state_of_part(path);
  try {
    return RecordingSummary::from_state(state);
  } catch (const std::exception& error) {
    refuse_part(path, "state", fmt::format("unreadable ({})", error.what()), "as it was written");
  }
}

}  // namespace

void save_part(const fs::path& path, RecordingSummary& summary, const PartOrigin& origin) {
  save_part(path, origin,
            PartContent{{{"sequences", summary.sequences()}, {"positions", summary.positions()}},
                        to_strings(summary.metadata()),
                        summary.state()});
}

RecordingSummary kept_share(const fs::path& folder, const PartOrigin& origin,
                            const std::function<RecordingSummary()>& make) {
  if (const auto kept = kept_part(folder, origin)) return summary_of_part(*kept);
  RecordingSummary summary = make();
  save_part(part_path(folder, origin.shard), summary, origin);
  return summary;
}

Analysis merge_parts(const PartSet& set) {
  const fs::path& first = set.parts.front().path;
  RecordingSummary all = summary_of_part(first);
  for (auto part = std::next(set.parts.begin()); part != set.parts.end(); ++part) {
    RecordingSummary summary = summary_of_part(part->path);
    try {
      all.merge(summary);
    } catch (const std::invalid_argument&) {
      refuse_part(part->path, "state", "of another question or recording", "of that of " + first.string());
    }
  }
  Analysis merged = answer_of(all, first);
  merged.partial = merged.partial || set.partial;
  return merged;
}

}  // namespace specdec::planner
