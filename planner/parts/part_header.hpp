#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace specdec::planner {

/// The header of every kept state, which says what the state is of.
struct PartHeader {
  std::filesystem::path path;
  std::string version, made_with;
  nlohmann::ordered_json options, other_options, metadata, files;
  /// All of it, with the members of the kind of file.
  nlohmann::ordered_json json;

  /// That of a file that was written.
  /// @throws traces::FileError naming the member that is not as docs/reference/formats.md describes it
  static PartHeader read(const std::filesystem::path& path);
  static PartHeader of(const std::filesystem::path& path, const nlohmann::ordered_json& json);
};

/// The members that every header has, of this build.
/// @param files  objects whose "path" is looked at for its "fingerprint"
nlohmann::ordered_json header_members(const std::string& version, const nlohmann::ordered_json& options,
                                      const nlohmann::ordered_json& other_options,
                                      const nlohmann::ordered_json& metadata,
                                      const std::vector<nlohmann::ordered_json>& files);

/// @throws traces::FileError that names the other's path, and what of it is not as in the first: an option, a member of
///   the metadata or the content of a file
/// @param as_first  words for the first in the message: ", as 1-of-2.part says"
void require_same_recording(const PartHeader& first, const PartHeader& other, const std::string& as_first);

/// The same of a member of the header, of this run and of a file that was kept by one before.
void require_member(const PartHeader& run, const PartHeader& kept, const std::string& key);

/// Writes a header and a state to a file, whole.
void write_part(const std::filesystem::path& path, const nlohmann::ordered_json& header, std::string state);

/// @throws traces::FileError about the whole file
[[noreturn]] void refuse_part(const std::filesystem::path& path, std::string field, std::string found,
                              std::string expected);

/// A value of a header for a message: texts without quotes.
std::string shown_member(const nlohmann::ordered_json& value);

}  // namespace specdec::planner
