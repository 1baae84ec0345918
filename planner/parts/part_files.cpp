#include "planner/parts/part_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "analysis/core/build_facts.hpp"
#include "planner/question_error.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/part_file.hpp"

namespace specdec::planner {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// The types of a header's members, by their place; those of each file in "recording/files".
enum class Kind { object, list, text, text_or_nothing, count };
struct Member {
  const char* place;
  Kind kind;
};
constexpr Member members_of_header[] = {
    {"/version", Kind::text},         {"/made_with", Kind::text},       {"/options", Kind::object},
    {"/other_options", Kind::object}, {"/command", Kind::text},         {"/recording/metadata", Kind::object},
    {"/shard/number", Kind::count},   {"/recording/files", Kind::list}, {"/shard/of", Kind::count}};
constexpr Member members_of_file[] = {
    {"/path", Kind::text}, {"/fingerprint", Kind::text}, {"/sha256", Kind::text_or_nothing}};

bool is_of(Kind kind, const ordered_json& value) {
  if (kind == Kind::object) return value.is_object();
  if (kind == Kind::list) return value.is_array();
  if (kind == Kind::count) return value.is_number_integer() && value >= 0;
  return value.is_string() || (kind == Kind::text_or_nothing && value.is_null());
}

/// A value of a header for a message: texts without quotes.
std::string shown_member(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>()
                           : value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

void require_members(const fs::path& path, std::span<const Member> members, const ordered_json& json,
                     const std::string& of) {
  for (const Member& member : members) {
    const ordered_json::json_pointer place(member.place);
    const ordered_json value = json.contains(place) ? json.at(place) : ordered_json();
    if (!is_of(member.kind, value))
      refuse_part(path, of + member.place, shown_member(value), "what docs/reference/formats.md describes");
  }
}

/// The header of a part, which says what its state is of.
struct Header {
  fs::path path;
  ordered_json json;
  traces::Shard shard;

  /// @throws traces::FileError naming the member that is not as docs/reference/formats.md describes it
  Header(fs::path its_path, ordered_json its_json) : path(std::move(its_path)), json(std::move(its_json)) {
    require_members(path, members_of_header, json, "header ");
    for (const ordered_json& file : at("/recording/files"))
      require_members(path, members_of_file, file, "header, file ");
    const auto number = at("/shard/number").get<std::int64_t>(), of = at("/shard/of").get<std::int64_t>();
    if (!(1 <= number && number <= of && of <= traces::most_shards)) {
      refuse_part(path, "shard", fmt::format("{}/{}", number, of),
                  fmt::format("I/N with 1 <= I <= N <= {}", traces::most_shards));
    }
    shard = {number - 1, of};
  }
  static Header read(const fs::path& path) {
    ordered_json json = ordered_json::parse(traces::read_part_header(path), nullptr, false);
    if (json.is_discarded()) refuse_part(path, "header", "no JSON", "what docs/reference/formats.md describes");
    return {path, std::move(json)};
  }

  const ordered_json& at(const char* place) const { return json.at(ordered_json::json_pointer(place)); }
};

/// The first key of two objects whose values differ, or that one of them lacks.
std::optional<std::string> differing_key(const ordered_json& a, const ordered_json& b) {
  for (const auto* object : {&a, &b}) {
    for (const auto& [key, value] : object->items()) {
      if (!a.contains(key) || !b.contains(key) || a.at(key) != b.at(key)) return key;
    }
  }
  return std::nullopt;
}

/// @param as_first  words for the first in messages: ", as 1-of-2.part says"
void require_same(const Header& first, const Header& other, const std::string& as_first) {
  const auto entry_of = [](const ordered_json& object, const std::string& key) {
    return object.contains(key) ? shown_member(object.at(key)) : "not stated";
  };
  if (const std::string command = other.at("/command"); command != first.at("/command"))
    refuse_part(other.path, "command", command, shown_member(first.at("/command")) + as_first);
  if (other.shard.of != first.shard.of)
    refuse_part(other.path, "shard", other.shard.name(), fmt::format("one of {}{}", first.shard.of, as_first));
  const auto& options = other.at("/options");
  if (const auto key = differing_key(first.at("/options"), options)) {
    std::string option = "--" + *key;
    std::replace(option.begin(), option.end(), '_', '-');
    refuse_part(other.path, option, entry_of(options, *key), entry_of(first.at("/options"), *key) + as_first);
  }
  const auto& metadata = other.at("/recording/metadata");
  if (const auto key = differing_key(first.at("/recording/metadata"), metadata)) {
    refuse_part(other.path, "metadata " + *key, entry_of(metadata, *key),
                entry_of(first.at("/recording/metadata"), *key) + as_first);
  }
  const ordered_json &files = other.at("/recording/files"), &own = first.at("/recording/files");
  if (files.size() != own.size()) {
    refuse_part(other.path, "recording", fmt::format("of {} files", files.size()),
                fmt::format("of {}{}", own.size(), as_first));
  }
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (files[i].at("fingerprint") == own[i].at("fingerprint")) continue;
    refuse_part(other.path, fmt::format("file {} of the recording", i + 1), shown_member(files[i].at("path")),
                fmt::format("of the same content as {}{}", shown_member(own[i].at("path")), as_first));
  }
}

void require_same(const Header& first, const Header& other) {
  require_same(first, other, fmt::format(", as {} says", first.path.string()));
}

ordered_json header_of(const PartOrigin& origin, const ordered_json& metadata) {
  ordered_json files = ordered_json::array();
  for (ordered_json file : origin.files) {
    file["fingerprint"] = traces::content_fingerprint(file.at("path").get<std::string>());
    files.push_back(std::move(file));
  }
  return {{"command", origin.command},
          {"version", origin.version},
          {"made_with", core::build_facts()},
          {"options", origin.options},
          {"other_options", origin.other_options},
          {"recording", {{"metadata", metadata}, {"files", std::move(files)}}},
          {"shard", {{"number", origin.shard.index + 1}, {"of", origin.shard.of}}}};
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
std::map<std::int64_t, Header> headers_of(const std::vector<fs::path>& paths, const std::string& version) {
  std::map<std::int64_t, Header> parts;
  std::optional<Header> first;
  for (const fs::path& path : paths) {
    const Header header = Header::read(path);
    if (const std::string its = header.at("/version"); its != version)
      refuse_part(path, "version", its, version + ", which is to merge it");
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
std::string missing_in(const std::map<std::int64_t, Header>& parts) {
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

std::vector<Note> notes_of(const std::map<std::int64_t, Header>& parts) {
  std::vector<Note> notes;
  const std::int64_t of = parts.begin()->second.shard.of;
  if (std::ssize(parts) < of) {
    notes.push_back({"parts_missing", fmt::format("the answer is that of {} of {} shards; missing: {}", parts.size(),
                                                  of, missing_in(parts))});
  }
  std::set<std::string> builds;
  for (const auto& [index, header] : parts) builds.insert(header.at("/made_with"));
  if (builds.size() > 1) {
    notes.push_back({"parts_differ_in_build",
                     fmt::format("the parts were made by different builds or on different processors ({}): last digits "
                                 "may differ from those of one run",
                                 fmt::join(builds, "; "))});
  }
  return notes;
}

}  // namespace

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
    const traces::Shard there = Header::read(*other).shard;
    if (there.of == shard.of) return;
    refuse("--part", part.string(),
           fmt::format("where all parts are of {} shards: {} is {}", shard.of, other->string(), there.name()));
  }
}

void save_part(const fs::path& path, const PartOrigin& origin, const PartContent& content) {
  ordered_json header = header_of(origin, content.metadata);
  header.update(content.counts);
  if (const auto other = other_part(path, origin.shard)) require_same(Header::read(*other), Header(path, header));
  traces::write_part_file(path, {shown_member(header), content.state});
}

std::optional<fs::path> kept_part(const fs::path& folder, const PartOrigin& origin) {
  const fs::path path = folder / name_of_part(origin.shard);
  const std::vector<fs::path> there = fs::is_directory(folder) ? listed_in(folder) : std::vector<fs::path>();
  if (there.empty()) return std::nullopt;
  const bool is_there = std::find(there.begin(), there.end(), path) != there.end();
  const Header known = Header::read(is_there ? path : there.front());
  // The metadata is that of the same files.
  const Header own(path, header_of(origin, known.at("/recording/metadata")));
  for (const char* const member : {"version", "made_with"}) {
    if (const std::string found = known.json.at(member); found != own.json.at(member))
      refuse_part(known.path, member, found, shown_member(own.json.at(member)) + ", as in this run");
  }
  require_same(own, known, ", as in this run");
  return is_there ? std::optional(path) : std::nullopt;
}

PartSet read_parts(const std::vector<std::string>& paths, const std::string& version, bool partial) {
  const std::map<std::int64_t, Header> parts = headers_of(listed(paths), version);
  const Header& first = parts.begin()->second;
  PartSet set;
  set.partial = std::ssize(parts) < first.shard.of;
  if (!partial && set.partial) {
    throw QuestionError(fmt::format("PART lacks the shards {}; --partial answers from the others", missing_in(parts)));
  }
  set.command = first.at("/command");
  set.options = first.at("/options");
  set.options.update(first.at("/other_options"));
  set.files = first.at("/recording/files").get<std::vector<ordered_json>>();
  set.notes = notes_of(parts);
  for (const auto& [index, header] : parts) {
    fill_in(set.files, header.at("/recording/files"));
    set.parts.push_back({header.path, header.shard});
  }
  set.metadata = first.at("/recording/metadata");
  for (ordered_json& file : set.files) {
    set.fingerprints.push_back(file.at("fingerprint"));
    file.erase("fingerprint");
  }
  return set;
}

void refuse_part(const fs::path& path, std::string field, std::string found, std::string expected) {
  throw traces::FileError(path, traces::FileError::whole_file(), std::move(field), std::move(found),
                          std::move(expected));
}

std::string state_of_part(const fs::path& path) { return traces::read_part_file(path).state; }

}  // namespace specdec::planner
