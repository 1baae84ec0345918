#include "planner/parts/part_files.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "planner/parts/part_header.hpp"
#include "planner/question_error.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/part_file.hpp"

namespace specdec::planner {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// A part without its state.
struct PartOfRun : PartHeader {
  std::string command;
  traces::Shard shard;

  static PartOfRun read(const fs::path& path) { return of(PartHeader::read(path)); }

  static PartOfRun of(PartHeader known) {
    PartOfRun part{std::move(known), {}, {}};
    const ordered_json command = part.json.value("command", ordered_json());
    if (!command.is_string())
      refuse_part(part.path, "header /command", shown_member(command), "what docs/reference/formats.md describes");
    part.command = command;
    std::array<std::int64_t, 2> numbers{};
    for (const auto& [place, number] : {std::pair("/shard/number", &numbers[0]), std::pair("/shard/of", &numbers[1])}) {
      const ordered_json::json_pointer pointer(place);
      const ordered_json value = part.json.contains(pointer) ? part.json.at(pointer) : ordered_json();
      if (!value.is_number_integer() || value < 0) {
        refuse_part(part.path, fmt::format("header {}", place), shown_member(value), "what docs/reference/formats.md describes");
      }
      *number = value.get<std::int64_t>();
    }
    if (!(1 <= numbers[0] && numbers[0] <= numbers[1] && numbers[1] <= traces::most_shards)) {
      refuse_part(part.path, "shard", fmt::format("{}/{}", numbers[0], numbers[1]),
                  fmt::format("I/N with 1 <= I <= N <= {}", traces::most_shards));
    }
    part.shard = {numbers[0] - 1, numbers[1]};
    return part;
  }
};

void require_same(const PartOfRun& first, const PartOfRun& other, const std::string& as_first) {
  if (other.command != first.command)
    refuse_part(other.path, "command", other.command, fmt::format("{}{}", first.command, as_first));
  if (other.shard.of != first.shard.of)
    refuse_part(other.path, "shard", other.shard.name(), fmt::format("one of {}{}", first.shard.of, as_first));
  require_same_recording(first, other, as_first);
}

void require_same(const PartOfRun& first, const PartOfRun& other) {
  require_same(first, other, fmt::format(", as {} says", first.path.string()));
}

ordered_json header_of(const PartOrigin& origin, const ordered_json& metadata) {
  ordered_json header = {{"command", origin.command}};
  header.update(header_members(origin.version, origin.options, origin.other_options, metadata, origin.files));
  header["shard"] = {{"number", origin.shard.index + 1}, {"of", origin.shard.of}};
  return header;
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
std::map<std::int64_t, PartOfRun> headers_of(const std::vector<fs::path>& paths, const std::string& version) {
  std::map<std::int64_t, PartOfRun> parts;
  std::optional<PartOfRun> first;
  for (const fs::path& path : paths) {
    PartOfRun header = PartOfRun::read(path);
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
std::string missing_in(const std::map<std::int64_t, PartOfRun>& parts) {
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

std::vector<Note> notes_of(const std::map<std::int64_t, PartOfRun>& parts) {
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
    const traces::Shard there = PartOfRun::read(*other).shard;
    if (there.of == shard.of) return;
    refuse("--part", part.string(),
           fmt::format("where all parts are of {} shards: {} is {}", shard.of, other->string(), there.name()));
  }
}

void save_part(const fs::path& path, const PartOrigin& origin, const PartContent& content) {
  ordered_json header = header_of(origin, content.metadata);
  header.update(content.counts);
  if (const auto other = other_part(path, origin.shard))
    require_same(PartOfRun::read(*other), PartOfRun::of(PartHeader::of(path, header)));
  write_part(path, header, content.state);
}

std::optional<fs::path> kept_part(const fs::path& folder, const PartOrigin& origin) {
  const fs::path path = folder / name_of_part(origin.shard);
  const std::vector<fs::path> there = fs::is_directory(folder) ? listed_in(folder) : std::vector<fs::path>();
  if (there.empty()) return std::nullopt;
  const bool is_there = std::find(there.begin(), there.end(), path) != there.end();
  const PartOfRun known = PartOfRun::read(is_there ? path : there.front());
  PartOfRun own = PartOfRun::of(PartHeader::of(path, header_of(origin, ordered_json::object())));
  own.metadata = known.metadata;  // that of the same files
  for (const char* const member : {"version", "made_with"}) require_member(own, known, member);
  require_same(own, known, ", as in this run");
  return is_there ? std::optional(path) : std::nullopt;
}

PartSet read_parts(const std::vector<std::string>& paths, const std::string& version, bool partial) {
  const std::map<std::int64_t, PartOfRun> parts = headers_of(listed(paths), version);
  const PartOfRun& first = parts.begin()->second;
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
