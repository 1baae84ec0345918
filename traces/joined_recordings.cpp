#include "traces/joined_recordings.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

namespace specdec::traces {
namespace {

using Strings = std::map<std::string, std::string>;

constexpr char open_value[] = "unknown";

/// Drops from `common` what `own` leaves open or, among other keys, gives different values.
void keep_common(Strings& common, const Strings& own, const TraceMetadata& metadata,
                 const std::filesystem::path& path) {
  for (auto entry = common.begin(); entry != common.end();) {
    const auto& [key, value] = *entry;
    const auto said = own.find(key);
    const bool open = said == own.end() || said->second == open_value || value == open_value;
    const bool contradicts = !open && said->second != value;
    if (contradicts && metadata.other.count(key) == 0 && key != "tasks") {
      throw FileError(path, "the metadata's " + key, said->second, value + " as in the recordings before it");
    }
    entry = open || contradicts ? common.erase(entry) : std::next(entry);
  }
}

void add_names(std::vector<std::string>& names, const std::vector<std::string>& more) {
  for (const std::string& name : more) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
}

}  // namespace

TraceMetadata common_metadata(const std::vector<std::unique_ptr<PositionSource>>& sources) {
  if (sources.empty()) throw std::invalid_argument("common_metadata: sources is empty, but must hold one at least");
  Strings common = to_strings(sources.front()->metadata());
  std::vector<std::string> names;
  for (const auto& source : sources) {
    keep_common(common, to_strings(source->metadata()), source->metadata(), source->files().front());
    add_names(names, source->metadata().task_names);
  }
  common.erase("tasks");
  TraceMetadata metadata = metadata_from_strings(common, sources.front()->files().front());
  metadata.task_names = std::move(names);
  return metadata;
}

JoinedRecordings::JoinedRecordings(std::vector<std::unique_ptr<PositionSource>> sources)
    : sources_(std::move(sources)), metadata_(common_metadata(sources_)) {}

std::vector<std::filesystem::path> JoinedRecordings::files() const {
  std::vector<std::filesystem::path> files;
  for (const auto& source : sources_) {
    for (std::filesystem::path& file : source->files()) files.push_back(std::move(file));
  }
  return files;
}

std::string JoinedRecordings::format() const {
  std::set<std::string> formats;
  for (const auto& source : sources_) formats.insert(source->format());
  return formats.size() == 1 ? *formats.begin() : "several formats";
}

std::vector<Note> JoinedRecordings::notes() const {
  std::vector<Note> notes;
  for (const auto& source : sources_) {
    append(notes, source->notes());
  }
  return notes;
}

std::int64_t JoinedRecordings::depths() const {
  std::int64_t depths = 1;
  for (const auto& source : sources_) depths = std::max(depths, source->depths());
  return depths;
}

bool JoinedRecordings::read(PositionBatch& batch) {
  while (!sources_[current_]->read(batch)) {
    if (current_ + 1 == sources_.size()) return false;
    ++current_;
    first_position_ = positions_;
    first_sequence_ = sequences_;
    task_ids_.clear();
  }
  sequence_.clear();
  for (const std::int64_t sequence : batch.sequence) sequence_.push_back(first_sequence_ + sequence);
  batch.sequence = sequence_;
  batch.first += first_position_;
  adopt_tasks(batch);
  positions_ = batch.first + batch.size;
  sequences_ = sequence_.back() + 1;
  return true;
}

void JoinedRecordings::adopt_tasks(PositionBatch& batch) {
  const std::vector<std::string>& names = sources_[current_]->metadata().task_names;
  for (std::size_t id = task_ids_.size(); id < names.size(); ++id) {
    add_names(metadata_.task_names, {names[id]});
    const auto found = std::find(metadata_.task_names.begin(), metadata_.task_names.end(), names[id]);
    task_ids_.push_back(static_cast<std::int32_t>(found - metadata_.task_names.begin()));
  }
  if (batch.task.empty() || metadata_.task_names.empty()) return;
  task_.clear();
  for (const std::int32_t task : batch.task) {
    if (task >= std::ssize(task_ids_)) {
      throw FileError(sources_[current_]->files().front(), "task", fmt::format("{} and has no name", task),
                      "named, as the tasks of the other recordings are");
    }
    task_.push_back(task < 0 ? task : task_ids_[static_cast<std::size_t>(task)]);
  }
  batch.task = task_;
}

FileError JoinedRecordings::refusal(std::int64_t position, Role role, std::string found, std::string expected) const {
  return sources_[current_]->refusal(position - first_position_, role, std::move(found), std::move(expected));
}

}  // namespace specdec::traces
