#include "traces/metadata_merger.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "traces/file_error.hpp"

namespace specdec::traces {

void MetadataMerger::add(const std::filesystem::path& path, const TraceMetadata& metadata) {
  if (first_.empty()) first_ = path;
  add_tasks(path, metadata.task_names);
  TraceMetadata rest = metadata;
  rest.task_names.clear();
  for (auto& [key, value] : to_strings(rest)) {
    if (key == "logprob_space" && metadata.logprob_space == LogprobSpace::unknown) continue;
    const auto [found, inserted] = strings_.try_emplace(key, value, path);
    if (inserted || found->second.first == value) continue;
    if (metadata.other.count(key) == 1) {
      differing_.insert(key);
      continue;
    }
    sink_(FileError(path, "metadata " + key, value,
                    fmt::format("{}, as {} says", found->second.first, found->second.second.string())));
  }
}

void MetadataMerger::add_vocab(const std::filesystem::path& path, std::int64_t vocab) {
  const std::string value = fmt::format("{}", vocab);
  const auto [found, inserted] = strings_.try_emplace("vocab_size", value, path);
  if (inserted || found->second.first == value) return;
  sink_(FileError(path, "vocabulary", value + " tokens",
                  fmt::format("{}, as in {}", found->second.first, found->second.second.string())));
}

TraceMetadata MetadataMerger::merged() const {
  std::map<std::string, std::string> strings;
  for (const auto& [key, value] : strings_) strings.emplace(key, value.first);
  TraceMetadata metadata = metadata_from_strings(strings, first_);
  metadata.task_names = task_names_;
  return metadata;
}

void MetadataMerger::add_notes(std::vector<Note>& notes) const {
  for (const std::string& key : differing_) {
    notes.push_back({"metadata_differs", fmt::format("metadata {} differs between files; {} is {}", key,
                                                     strings_.at(key).second.string(), strings_.at(key).first)});
  }
}

/// One of two lists must begin with the other: names may become known while a trace is written.
void MetadataMerger::add_tasks(const std::filesystem::path& path, const std::vector<std::string>& names) {
  const std::size_t shared = std::min(names.size(), task_names_.size());
  for (std::size_t i = 0; i < shared; ++i) {
    if (names[i] == task_names_[i]) continue;
    sink_(FileError(path, fmt::format("metadata tasks, name {}", i), names[i],
                    fmt::format("{}, as {} says", task_names_[i], tasks_from_.string())));
    return;
  }
  if (names.size() <= shared) return;
  task_names_ = names;
  tasks_from_ = path;
}

}  // namespace specdec::traces
