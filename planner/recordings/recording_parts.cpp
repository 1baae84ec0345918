#include "planner/recordings/recording_parts.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "planner/question_error.hpp"
#include "planner/recordings/part_header.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/part_file.hpp"

namespace specdec::planner {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// A part without its state.
struct Header : PartHeader {
  traces::Shard shard;

  static Header read(const fs::path& path) { return of(PartHeader::read(path)); }

  static Header of(PartHeader known) {
    Header header{std::move(known), {}};
    std::array<std::int64_t, 2> numbers{};
    for (const auto& [place, number] : {std::pair("/shard/number", &numbers[0]), std::pair("/shard/of", &numbers[1])}) {
      const ordered_json::json_pointer pointer(place);
      const ordered_json value = header.json.contains(pointer) ? header.json.at(pointer) : ordered_json();
      if (!value.is_number_integer() || value < 0) {
        refuse_part(header.path, fmt::format("header {}", place), shown_member(value), "what docs/scale.md describes");
      }
      *number = value.get<std::int64_t>();
    }
    if (!(1 <= numbers[0] && numbers[0] <= numbers[1] && numbers[1] <= traces::most_shards)) {
      refuse_part(header.path, "shard", fmt::format("{}/{}", numbers[0], numbers[1]),
                  fmt::format("I/N with 1 <= I <= N <= {}", traces::most_shards));
    }
    header.shard = {numbers[0] - 1, numbers[1]};
    return header;
  }
};

void require_same(const Header& first, const Header& other, const std::string& as_first) {
  if (other.shard.of != first.shard.of)
    refuse_part(other.path, "shard", other.shard.name(), fmt::format("one of {}{}", first.shard.of, as_first));
  require_same_recording(first, other, as_first);
}

void require_same(const Header& first, const Header& other) {
  require_same(first, other, fmt::format(", as {} says", first.path.string()));
}

ordered_json header_of(const PartOrigin& origin, const traces::TraceMetadata& metadata) {
  ordered_json header = header_members(origin.version, origin.options, origin.other_options, metadata, origin.files);
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
std::map<std::int64_t, Header> headers_of(const std::vector<fs::path>& paths, const std::string& version) {
  std::map<std::int64_t, Header> parts;
  std::optional<Header> first;
  for (const fs::path& path : paths) {
    Header header = Header::read(path);
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

std::vector<Note> notes_of(const std::map<std::int64_t, Header>& parts) {
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

void require_place_of_part(const fs::path& part, const traces::Shard& shard,
                           const std::vector<std::string>& recording) {
  const fs::path folder = fs::weakly_canonical(fs::absolute(part)).parent_path();
  for (const std::string& file : recording) {
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

void save_part(const fs::path& path, RecordingSummary& summary, const PartOrigin& origin) {
  ordered_json header = header_of(origin, summary.metadata());
  header["sequences"] = summary.sequences();
  header["positions"] = summary.positions();
  if (const auto other = other_part(path, origin.shard))
    require_same(Header::read(*other), Header::of(PartHeader::of(path, header)));
  write_part(path, header, summary.state());
}

RecordingSummary kept_share(const fs::path& folder, const PartOrigin& origin,
                            const std::function<RecordingSummary()>& make) {
  const fs::path path = folder / name_of_part(origin.shard);
  const std::vector<fs::path> there = fs::is_directory(folder) ? listed_in(folder) : std::vector<fs::path>();
  const bool is_there = std::find(there.begin(), there.end(), path) != there.end();
  if (!there.empty()) {
    const Header known = Header::read(is_there ? path : there.front());
    Header own = Header::of(PartHeader::of(path, header_of(origin, {})));
    own.metadata = known.metadata;  // that of the same files
    for (const char* const member : {"version", "made_with"}) require_member(own, known, member);
    require_same(own, known, ", as in this run");
  }
  if (is_there) return summary_of_part(path);
  RecordingSummary summary = make();
  save_part(path, summary, origin);
  return summary;
}

MergedParts merge_parts(const std::vector<std::string>& paths, const std::string& version, bool partial) {
  const std::map<std::int64_t, Header> parts = headers_of(listed(paths), version);
  const Header& first = parts.begin()->second;
  const bool some_missing = std::ssize(parts) < first.shard.of;
  if (!partial && some_missing) {
    throw QuestionError(fmt::format("PART lacks the shards {}; --partial answers from the others", missing_in(parts)));
  }
  RecordingSummary all = summary_of_part(first.path);
  MergedParts merged{{}, first.options, first.files.get<std::vector<ordered_json>>(), notes_of(parts)};
  merged.options.update(first.other_options);
  for (auto part = std::next(parts.begin()); part != parts.end(); ++part) {
    RecordingSummary summary = summary_of_part(part->second.path);
    try {
      all.merge(summary);
    } catch (const std::invalid_argument&) {
      refuse_part(part->second.path, "state", "of another question or recording", "of that of " + first.path.string());
    }
    fill_in(merged.files, part->second.files);
  }
  merged.answer = answer_of(all, first.path);
  merged.answer.partial = merged.answer.partial || some_missing;
  for (ordered_json& file : merged.files) file.erase("fingerprint");
  return merged;
}

}  // namespace specdec::planner
