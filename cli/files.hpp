#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "traces/note.hpp"

namespace specdec::cli {

/// Refuses a path that write_whole could not write, before any long work starts.
/// @throws UsageError naming the option and the path
void require_writable(std::string_view option, const std::string& path);

/// Refuses an output that is one of the files that are read, under whatever name: writing it would lose what it holds.
/// @param inputs  words that may be paths; those that name no file are passed over
/// @throws UsageError naming the option and the path
void require_no_input(std::string_view option, const std::string& path, const std::vector<std::string>& inputs);

/// Writes all of `content` or leaves what was there: a temporary file beside the target takes its name at the end.
/// Devices and pipes are written directly.
/// @throws UsageError naming the option and the path
void write_whole(std::string_view option, const std::string& path, std::string_view content);

/// {"path", "size_bytes", "modified", "sha256"}: identifies an input file. The hash is null above 64 MB unless
/// `always_hash` asks for it. For a stream it is what was read, when it was read.
/// @throws UsageError naming the option and the path when it cannot be read
nlohmann::ordered_json file_facts(std::string_view option, const std::string& path, bool always_hash = false);

/// The same with no hash.
/// @throws UsageError as file_facts does
nlohmann::ordered_json unhashed_facts(std::string_view option, const std::string& path);

/// The SHA-256 of a text in base64, as policies of pages name it.
std::string base64_sha256(std::string_view text);

/// file_facts of files that have been read.
std::vector<nlohmann::ordered_json> facts_of(const std::vector<std::string>& files);

/// Those of each file once, in the order of their names.
std::vector<nlohmann::ordered_json> facts_of_each(const std::vector<std::string>& files);

/// Warns ("same_content") of every file whose content is that of one before it, as far as file_facts took its hash: two
/// names of one recording count the same texts twice.
/// @param files  file_facts
std::vector<Note> same_content(const std::vector<nlohmann::ordered_json>& files);

}  // namespace specdec::cli
