#include "planner/parts/part_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "analysis/core/build_facts.hpp"
#include "planner/question_error.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/part_file.hpp"

namespace specdec::planner {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::string shown(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

/// What the members of a header are, by their place; of "recording/files" those of each file.
enum class Kind { object, text, text_or_nothing, count };
struct Member {
  const char* place;
  Kind kind;
};
constexpr std::array header_members = {Member{"/command", Kind::text},
                                       Member{"/version", Kind::text},
                                       Member{"/made_with", Kind::text},
                                       Member{"/shard/number", Kind::count},
                                       Member{"/shard/of", Kind::count},
                                       Member{"/options", Kind::object},
                                       Member{"/other_options", Kind::object},
                                       Member{"/recording/metadata", Kind::object}};
constexpr std::array file_members = {Member{"/path", Kind::text}, Member{"/fingerprint", Kind::text},
                                     Member{"/sha256", Kind::text_or_nothing}};

bool is_of(Kind kind, const ordered_json& value) {
  switch (kind) {
    case Kind::object:
      return value.is_object();
    case Kind::text:
      return value.is_string();
    case Kind::text_or_nothing:
      return value.is_string() || value.is_null();
    case Kind::count:
      break;
  }
  return value.is_number_integer() && value >= 0;
}

template <std::size_t count>
void require_members(const fs::path& path, const std::array<Member, count>& members, const ordered_json& json,
                     const std::string& of) {
  for (const Member& member : members) {
    const ordered_json::json_pointer place(member.place);
    const ordered_json value = json.contains(place) ? json.at(place) : ordered_json();
    if (!is_of(member.kind, value)) refuse_part(path, of + member.place, shown(value), "what docs/scale.md describes");
  }
}

/// A part without its state.
struct PartHeader {
  fs::path path;
  std::string command;
  traces::Shard shard;
  std::string version, made_with;
  ordered_json options, other_options, metadata, files;
};

PartHeader header_of(const fs::path& path, const ordered_json& json) {
  PartHeader header;
  header.path = path;
  require_members(path, header_members, json, "header ");
  header.command = json.at("command");
  header.version = json.at("version");
  header.made_with = json.at("made_with");
  const ordered_json& shard = json.at("shard");
  if (!(1 <= shard.at("number") && shard.at("number") <= shard.at("of") && shard.at("of") <= traces::most_shards)) {
    refuse_part(path, "shard", fmt::format("{}/{}", shown(shard.at("number")), shown(shard.at("of"))),
                fmt::format("I/N with 1 <= I <= N <= {}", traces::most_shards));
  }
  header.shard = {shard.at("number").get<std::int64_t>() - 1, shard.at("of").get<std::int64_t>()};
  header.options = json.at("options");
  header.other_options = json.at("other_options");
  header.metadata = json.at("recording").at("metadata");
  header.files = json.at("recording").value("files", ordered_json());
  if (!header.files.is_array())
    refuse_part(path, "header /recording/files", "no list", "what docs/scale.md describes");
  for (const ordered_json& file : header.files) require_members(path, file_members, file, "header, file ");
  return header;
}

PartHeader read_header(const fs::path& path) {
  const ordered_json json = ordered_json::parse(traces::read_part_header(path), nullptr, false);
  if (json.is_discarded()) refuse_part(path, "header", "no JSON", "what docs/scale.md describes");
  return header_of(path, json);
}

/// The first key of two objects whose values differ, or that one of them lacks.
std::optional<std::string> differing_key(const ordered_json& a, const ordered_json& b) {
  for (const auto* object : {&a, &b}) {
    for (const auto& [key, value] : object->items()) {
      if (!a.contains(key) || !b.contains(key) || a.at(key) != b.at(key)) return key;
    }
  }
  return std::nullopt;
}

std::string entry_of(const ordered_json& object, const std::string& key) {
  return object.contains(key) ? shown(object.at(key)) : "not stated";
}

void require_same(const PartHeader& first, const PartHeader& other) {
  const std::string as_first = fmt::format(", as {} says", first.path.string());
  if (other.command != first.command)
    refuse_part(other.path, "command", other.command, fmt::format("{}{}", first.command, as_first));
  if (other.shard.of != first.shard.of)
    refuse_part(other.path, "shard", other.shard.name(), fmt::format("one of {}{}", first.shard.of, as_first));
  if (const auto key = differing_key(first.options, other.options)) {
    std::string option = "--" + *key;
    std::replace(option.begin(), option.end(), '_', '-');
    refuse_part(other.path, option, entry_of(other.options, *key), entry_of(first.options, *key) + as_first);
  }
  if (const auto key = differing_key(first.metadata, other.metadata)) {
    refuse_part(other.path, "metadata " + *key, entry_of(other.metadata, *key),
                entry_of(first.metadata, *key) + as_first);
  }
  if (other.files.size() != first.files.size()) {
    refuse_part(other.path, "recording", fmt::format("of {} files", other.files.size()),
                fmt::format("of {}{}", first.files.size(), as_first));
  }
  for (std::size_t i = 0; i < first.files.size(); ++i) {
    if (other.files[i].at("fingerprint") == first.files[i].at("fingerprint")) continue;
    refuse_part(other.path, fmt::format("file {} of the recording", i + 1), shown(other.files[i].at("path")),
                fmt::format("of the same content as {}{}", shown(first.files[i].at("path")), as_first));
  }
}

/// The parts in a folder, by name.
std::vector<fs::path> listed_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == traces::part_extension) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

fs::path name_of_part(const traces::Shard& shard) { return shard.file_name() + std::string(traces::part_extension); }

/// A part beside one that its shard names, which all of the folder are to go with. Each was held against one when it
/// was written, so that any stands for all. Empty for a part that has another name, which goes with those that are
/// named beside it at the merge.
std::optional<fs::path> other_part(const fs::path& part, const traces::Shard& shard) {
  const fs::path folder = fs::absolute(part).parent_path();
  if (part.filename() != name_of_part(shard) || !fs::is_directory(folder)) return std::nullopt;
  for (const fs::path& one : listed_in(folder)) {
    if (one.filename() != part.filename()) return one;
  }
  return std::nullopt;
}

std::vector<fs::path> listed(const std::vector<std::string>& paths) {
  std::vector<fs::path> all;
  for (const std::string& path : paths) {
    if (!fs::is_directory(path)) {
      all.emplace_back(path);
      continue;
    }
    const std::vector<fs::path> found = listed_in(path);
    if (found.empty()) refuse_part(path, "folder", "without parts", "one with *.part files");
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

/// By shard, checked against each other.
std::map<std::int64_t, PartHeader> headers_of(const std::vector<fs::path>& paths, const std::string& version) {
  std::map<std::int64_t, PartHeader> parts;
  std::optional<PartHeader> first;
  for (const fs::path& path : paths) {
    PartHeader header = read_header(path);
    if (header.version != version) refuse_part(path, "version", header.version, version + ", which is to merge it");
    if (first) require_same(*first, header);
    if (!first) first = header;
    const auto [known, is_new] = parts.emplace(header.shard.index, header);
    if (!is_new) {
      refuse_part(path, "shard", fmt::format("{} again", header.shard.name()),
                  fmt::format("each shard once; {} is that one, too", known->second.path.string()));
    }
  }
  return parts;
}

/// "2, 5 and 6" of the shards that are missing.
std::string missing_in(const std::map<std::int64_t, PartHeader>& parts) {
  constexpr std::size_t most_named = 10;
  std::vector<std::string> missing;
  const std::int64_t of = parts.begin()->second.shard.of;
  for (std::int64_t index = 0; index < of; ++index) {
    if (parts.count(index) == 0) missing.push_back(traces::Shard{index, of}.name());
  }
  const std::size_t count = missing.size();
  if (count > most_named) missing.resize(most_named);
  std::string text = fmt::format("{}", fmt::join(missing, ", "));
  if (count > most_named) text += fmt::format(" and {} more", count - most_named);
  return text;
}

void fill_in(std::vector<ordered_json>& files, const ordered_json& more) {
  for (std::size_t i = 0; i < files.size(); ++i) {
    for (auto& [key, value] : files[i].items()) {
      if (value.is_null() && more[i].contains(key)) value = more[i].at(key);
    }
  }
}

std::vector<Note> notes_of(const std::map<std::int64_t, PartHeader>& parts) {
  std::vector<Note> notes;
  const std::int64_t of = parts.begin()->second.shard.of;
  if (std::ssize(parts) < of) {
    notes.push_back({"parts_missing", fmt::format("the answer is that of {} of {} shards; missing: {}", parts.size(),
                                                  of, missing_in(parts))});
  }
  std::set<std::string> builds;
  for (const auto& [index, header] : parts) builds.insert(header.made_with);
  if (builds.size() > 1) {
    notes.push_back({"parts_differ_in_build",
                     fmt::format("the parts were made by different builds or on different processors ({}): last digits "
                                 "may differ from those of one run",
                                 fmt::join(builds, "; "))});
  }
  return notes;
}

}  // namespace

void refuse_part(const fs::path& path, std::string field, std::string found, std::string expected) {
  throw traces::FileError(path, traces::FileError::whole_file(), std::move(field), std::move(found),
                          std::move(expected));
}

fs::path part_path(const fs::path& path, const traces::Shard& shard) {
  if (!fs::is_directory(path)) return path;
  return path / name_of_part(shard);
}

void require_place_of_part(const fs::path& part, const traces::Shard& shard, const std::vector<std::string>& inputs) {
  const fs::path folder = fs::weakly_canonical(fs::absolute(part)).parent_path();
  for (const std::string& file : inputs) {
    if (!fs::is_directory(file) || fs::weakly_canonical(file) != folder) continue;
    refuse("--part", part.string(),
           fmt::format("elsewhere: {} is the recording, which is not read with other files in it", file));
  }
  if (const auto other = other_part(part, shard)) {
    const traces::Shard there = read_header(*other).shard;
    if (there.of == shard.of) return;
    refuse("--part", part.string(),
           fmt::format("where all parts are of {} shards: {} is {}", shard.of, other->string(), there.name()));
  }
}

void save_part(const fs::path& path, const PartOrigin& origin, const PartContent& content) {
  ordered_json files = ordered_json::array();
  for (ordered_json file : origin.files) {
    file["fingerprint"] = traces::content_fingerprint(file.at("path").get<std::string>());
    files.push_back(std::move(file));
  }
  ordered_json header = {{"command", origin.command},
                         {"version", origin.version},
                         {"made_with", core::build_facts()},
                         {"shard", {{"number", origin.shard.index + 1}, {"of", origin.shard.of}}}};
  header.update(content.counts);
  header["options"] = origin.options;
  header["other_options"] = origin.other_options;
  header["recording"] = {{"metadata", content.metadata}, {"files", files}};
  if (const auto other = other_part(path, origin.shard)) require_same(read_header(*other), header_of(path, header));
  traces::write_part_file(path, {header.dump(-1, ' ', false, ordered_json::error_handler_t::replace), content.state});
}

PartSet read_parts(const std::vector<std::string>& paths, const std::string& version, bool partial) {
  const std::map<std::int64_t, PartHeader> parts = headers_of(listed(paths), version);
  const PartHeader& first = parts.begin()->second;
  PartSet set;
  set.partial = std::ssize(parts) < first.shard.of;
  if (!partial && set.partial) {
    throw QuestionError(fmt::format("PART lacks the shards {}; --partial answers from the others", missing_in(parts)));
  }
  set.command = first.command;
  set.options = first.options;
  set.options.update(first.other_options);
  set.files = first.files.get<std::vector<ordered_json>>();
  set.notes = notes_of(parts);
  for (const auto& [index, header] : parts) {
    fill_in(set.files, header.files);
    set.parts.push_back({header.path, header.shard});
  }
  set.metadata = first.metadata;
  for (ordered_json& file : set.files) {
    set.fingerprints.push_back(file.at("fingerprint"));
    file.erase("fingerprint");
  }
  return set;
}

std::string state_of_part(const fs::path& path) { return traces::read_part_file(path).state; }

}  // namespace specdec::planner
