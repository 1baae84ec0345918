#pragma once

#include <filesystem>
#include <functional>

#include "planner/parts/part_files.hpp"
#include "planner/recordings/recording_summary.hpp"

namespace specdec::planner {

/// Writes a summary to a file. The recording's files are still looked at, for their fingerprints.
/// @param origin  its files are those of RecordingSummary::files()
/// @throws as the other save_part
void save_part(const std::filesystem::path& path, RecordingSummary& summary, const PartOrigin& origin);

/// The summary of a share that a folder keeps as a part; where it does not, what `make` gives, which is kept there
/// then.
/// @throws traces::FileError as save_part does, and if the part, or another one there, is damaged or not of this origin
RecordingSummary kept_share(const std::filesystem::path& folder, const PartOrigin& origin,
                            const std::function<RecordingSummary()>& make);

/// The answer of all parts of one run, partial if shards are missing. It does not depend on their order.
/// @param set  parts of analyze
/// @throws traces::FileError naming the part whose state cannot be merged
/// @throws QuestionError if the shards hold no position
Analysis merge_parts(const PartSet& set);

}  // namespace specdec::planner
