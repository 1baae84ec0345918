#include "planner/parts/part_header.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include "analysis/core/build_facts.hpp"
#include "traces/file_error.hpp"
#include "traces/formats/part_file.hpp"

namespace specdec::planner {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

/// The types of a header's members, by their place; those of each file in "recording/files".
enum class Kind { object, text, text_or_nothing };
struct Member {
  const char* place;
  Kind kind;
};
constexpr std::array members_of_header = {Member{"/version", Kind::text}, Member{"/made_with", Kind::text},
                                          Member{"/options", Kind::object}, Member{"/other_options", Kind::object},
                                          Member{"/recording/metadata", Kind::object}};
constexpr std::array members_of_file = {Member{"/path", Kind::text}, Member{"/fingerprint", Kind::text},
                                        Member{"/sha256", Kind::text_or_nothing}};

bool is_of(Kind kind, const ordered_json& value) {
  if (kind == Kind::object) return value.is_object();
  return value.is_string() || (kind == Kind::text_or_nothing && value.is_null());
}

template <std::size_t count>
void require_members(const fs::path& path, const std::array<Member, count>& members, const ordered_json& json,
                     const std::string& of) {
  for (const Member& member : members) {
    const ordered_json::json_pointer place(member.place);
    const ordered_json value = json.contains(place) ? json.at(place) : ordered_json();
    if (!is_of(member.kind, value))
      refuse_part(path, of + member.place, shown_member(value), "what docs/reference/formats.md describes");
  }
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
  return object.contains(key) ? shown_member(object.at(key)) : "not stated";
}

std::string text_of(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

void refuse_part(const fs::path& path, std::string field, std::string found, std::string expected) {
  throw traces::FileError(path, traces::FileError::whole_file(), std::move(field), std::move(found),
                          std::move(expected));
}

std::string shown_member(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : text_of(value);
}

PartHeader PartHeader::read(const fs::path& path) {
  const ordered_json json = ordered_json::parse(traces::read_part_header(path), nullptr, false);
  if (json.is_discarded()) refuse_part(path, "header", "no JSON", "what docs/reference/formats.md describes");
  return of(path, json);
}

PartHeader PartHeader::of(const fs::path& path, const ordered_json& json) {
  require_members(path, members_of_header, json, "header ");
  const ordered_json& recording = json.at("recording");
  PartHeader header{path,
                    json.at("version"),
                    json.at("made_with"),
                    json.at("options"),
                    json.at("other_options"),
                    recording.at("metadata"),
                    recording.value("files", ordered_json()),
                    json};
  if (!header.files.is_array()) refuse_part(path, "header /recording/files", "no list", "what docs/reference/formats.md describes");
  for (const ordered_json& file : header.files) require_members(path, members_of_file, file, "header, file ");
  return header;
}

ordered_json header_members(const std::string& version, const ordered_json& options, const ordered_json& other_options,
                            const ordered_json& metadata, const std::vector<ordered_json>& files) {
  ordered_json known = ordered_json::array();
  for (ordered_json file : files) {
    file["fingerprint"] = traces::content_fingerprint(file.at("path").get<std::string>());
    known.push_back(std::move(file));
  }
  return {{"version", version},
          {"made_with", core::build_facts()},
          {"options", options},
          {"other_options", other_options},
          {"recording", {{"metadata", metadata}, {"files", std::move(known)}}}};
}

void require_same_recording(const PartHeader& first, const PartHeader& other, const std::string& as_first) {
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
    refuse_part(other.path, fmt::format("file {} of the recording", i + 1), shown_member(other.files[i].at("path")),
                fmt::format("of the same content as {}{}", shown_member(first.files[i].at("path")), as_first));
  }
}

void require_member(const PartHeader& run, const PartHeader& kept, const std::string& key) {
  const ordered_json found = kept.json.value(key, ordered_json());
  if (found == run.json.at(key)) return;
  refuse_part(kept.path, key, shown_member(found), shown_member(run.json.at(key)) + ", as in this run");
}

void write_part(const fs::path& path, const ordered_json& header, std::string state) {
  traces::write_part_file(path, {text_of(header), std::move(state)});
}

}  // namespace specdec::planner
