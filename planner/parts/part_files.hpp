#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "traces/note.hpp"
#include "traces/sharded_recording.hpp"

/// The files in which runs with a share of the work leave what they found. docs/reference/formats.md describes the format.
namespace specdec::planner {

/// Where a part comes from, for its file's header.
struct PartOrigin {
  /// The command whose answer the parts give: "analyze".
  std::string command;
  traces::Shard shard;
  /// Version of the program that writes or merges it.
  std::string version;
  /// The options that decide the answer, by name, which all parts share; and the others, such as paths.
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
  nlohmann::ordered_json other_options = nlohmann::ordered_json::object();
  /// For each input file an object whose "path" it is, with whatever is to be said of it.
  std::vector<nlohmann::ordered_json> files;
};

/// The content of a part.
struct PartContent {
  /// Numbers of things in it, for whoever reads the header: "sequences", "positions".
  nlohmann::ordered_json counts = nlohmann::ordered_json::object();
  /// The metadata of the recording, which all parts share.
  nlohmann::ordered_json metadata = nlohmann::ordered_json::object();
  std::string state;
};

/// The file of a part: `path` itself, or one named by the shard if it is a folder.
std::filesystem::path part_path(const std::filesystem::path& path, const traces::Shard& shard);

/// Refuses, before anything is read, a part that would lie among the input files, or that its shard names beside parts
/// of another number of shards.
/// @param inputs  the paths that name the recording
/// @throws QuestionError, traces::FileError
void require_place_of_part(const std::filesystem::path& part, const traces::Shard& shard,
                           const std::vector<std::string>& inputs);

/// Writes a part. The input files are still looked at, for their fingerprints.
/// @throws traces::FileError if the file cannot be written, or is named by the shard and stands beside parts of another
///   command, other input files or other options
void save_part(const std::filesystem::path& path, const PartOrigin& origin, const PartContent& content);

/// The part of the origin's share that a folder keeps; empty if it keeps none.
/// @throws traces::FileError if that, or another one there, is damaged or not of this origin
std::optional<std::filesystem::path> kept_part(const std::filesystem::path& folder, const PartOrigin& origin);

/// The parts of one run, without their states.
struct PartSet {
  struct Part {
    std::filesystem::path path;
    traces::Shard shard;
  };
  std::string command;
  /// In the order of their shards.
  std::vector<Part> parts;
  /// True if shards are missing.
  bool partial = false;
  /// PartOrigin::options and other_options of the first shard.
  nlohmann::ordered_json options;
  /// PartOrigin::files; where one part knows of a file what another leaves null, it is filled in.
  std::vector<nlohmann::ordered_json> files;
  /// Fingerprints of the files, see traces::content_fingerprint.
  std::vector<std::string> fingerprints;
  /// PartContent::metadata.
  nlohmann::ordered_json metadata;
  /// Notes on the parts: "parts_missing", "parts_differ_in_build".
  std::vector<Note> notes;
};

/// @param paths    at least one, in any order; a folder stands for all its files *.part
/// @param version  the program's: parts of others are refused
/// @param partial  whether shards may be missing
/// @throws traces::FileError naming the part if it is none, is damaged, given twice, or of another version, command,
///   other options or other input files than the first
/// @throws QuestionError if shards are missing
PartSet read_parts(const std::vector<std::string>& paths, const std::string& version, bool partial);

/// @throws traces::FileError about the whole file
[[noreturn]] void refuse_part(const std::filesystem::path& path, std::string field, std::string found,
                              std::string expected);

/// @throws traces::FileError
std::string state_of_part(const std::filesystem::path& path);

}  // namespace specdec::planner
