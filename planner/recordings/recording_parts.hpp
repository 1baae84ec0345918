#pragma once

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "planner/recordings/recording_summary.hpp"
#include "traces/note.hpp"
#include "traces/sharded_recording.hpp"

namespace specdec::planner {

/// Where a part comes from, for its file's header.
struct PartOrigin {
  traces::Shard shard;
  /// Of the program that writes or merges it.
  std::string version;
  /// The options that decide the answer, by name, which all parts share; and the others, such as paths.
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
  nlohmann::ordered_json other_options = nlohmann::ordered_json::object();
  /// For each of RecordingSummary::files() an object whose "path" it is, with whatever is to be said of it.
  std::vector<nlohmann::ordered_json> files;
};

/// The file of a part: `path` itself, or one named by the shard if it is a folder.
std::filesystem::path part_path(const std::filesystem::path& path, const traces::Shard& shard);

/// Refuses, before anything is read, a part that would lie among the recording's own files, or that its shard names
/// beside parts of another number of shards.
/// @param recording  the paths that name it
/// @throws QuestionError, traces::FileError
void require_place_of_part(const std::filesystem::path& part, const traces::Shard& shard,
                           const std::vector<std::string>& recording);

/// Writes a summary to a file, of which docs/scale.md describes the format. The recording's files are still looked at,
/// for their fingerprints.
/// @throws traces::FileError if the file cannot be written, or is named by the shard and stands beside parts of another
///   recording or other options
void save_part(const std::filesystem::path& path, RecordingSummary& summary, const PartOrigin& origin);

/// The summary of a share that a folder keeps as a part; where it does not, what `make` gives, which is kept there
/// then.
/// @throws traces::FileError as save_part does, and if the part, or another one there, is damaged or not of this origin
RecordingSummary kept_share(const std::filesystem::path& folder, const PartOrigin& origin,
                            const std::function<RecordingSummary()>& make);

struct MergedParts {
  /// Partial if shards are missing.
  Analysis answer;
  /// PartOrigin::options and other_options of the first shard.
  nlohmann::ordered_json options;
  /// PartOrigin::files; where one part knows of a file what another leaves null, it is filled in.
  std::vector<nlohmann::ordered_json> files;
  /// What of the parts is to be said: "parts_missing", "parts_differ_in_build".
  std::vector<Note> notes;
};

/// The answer of all parts of one run. It does not depend on the order of the paths.
/// @param paths    at least one; of a folder, all files *.part in it
/// @param version  of the program: parts of others are refused
/// @param partial  whether shards may be missing
/// @throws traces::FileError naming the part if it is none, is damaged, given twice, or of another version, other
///   options or another recording than the first
/// @throws QuestionError if shards are missing, or hold no position
MergedParts merge_parts(const std::vector<std::string>& paths, const std::string& version, bool partial);

}  // namespace specdec::planner
