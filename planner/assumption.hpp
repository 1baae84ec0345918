#pragma once

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "traces/note.hpp"

namespace specdec::planner {

/// Something that the answer rests on, with the source of its value: "user", "file", "preset", "fitted" (to
/// --calibrate), "found" (by a search) or "default".
struct Assumption {
  std::string name;
  nlohmann::ordered_json value;
  std::string source;

  friend bool operator==(const Assumption&, const Assumption&) = default;
};

/// {"name", "value", "source"}
inline void to_json(nlohmann::ordered_json& json, const Assumption& assumption) {
  json = {{"name", assumption.name}, {"value", assumption.value}, {"source", assumption.source}};
}

/// A built-in preset that an answer uses.
struct UsedPreset {
  /// "hardware", "model", "kernel_times", "loss" or "acceptance".
  std::string kind;
  std::string name;
  /// Where the preset's figures were published.
  std::vector<std::string> sources;

  friend bool operator==(const UsedPreset&, const UsedPreset&) = default;
};

/// {"kind", "name", "sources"}
inline void to_json(nlohmann::ordered_json& json, const UsedPreset& preset) {
  json = {{"kind", preset.kind}, {"name", preset.name}, {"sources", preset.sources}};
}

/// What an answer, or a part of one, is from, and what is to be said of it.
struct Provenance {
  std::vector<std::string> files;
  std::vector<UsedPreset> presets;
  std::vector<Assumption> assumptions;
  std::vector<Note> warnings;
};

/// Appends the elements of `more` that are not present yet.
template <class Value>
void append_new(std::vector<Value>& values, const std::vector<Value>& more) {
  for (const Value& one : more) {
    if (std::find(values.begin(), values.end(), one) == values.end()) values.push_back(one);
  }
}

}  // namespace specdec::planner
