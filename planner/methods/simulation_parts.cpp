#include "planner/methods/simulation_parts.hpp"

#include <fmt/format.h>

#include <exception>
#include <stdexcept>

#include "analysis/core/state_archive.hpp"
#include "planner/question_error.hpp"
#include "traces/formats/part_file.hpp"

namespace specdec::planner {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr const char* given_key = "given_options";

validation::MethodShare share_of(const PartSet::Part& part) {
  const std::string state = state_of_part(part.path);
  try {
    validation::MethodShare found;
    core::StateReader reader(state);
    reader(found);
    if (!reader.at_end()) throw std::invalid_argument("there are bytes behind the state");
    for (const auto& [sequence, run] : found.runs) {
      if (!part.shard.holds(sequence)) throw std::invalid_argument("a sequence of another share");
    }
    return found;
  } catch (const std::exception& error) {
    refuse_part(part.path, "state", fmt::format("unreadable ({})", error.what()), "as it was written");
  }
}

/// @throws traces::FileError if a file has another content than when the parts were made
void require_same_files(const PartSet& set) {
  for (std::size_t i = 0; i < set.files.size(); ++i) {
    const auto path = set.files[i].at("path").get<std::string>();
    if (fs::exists(path) && traces::content_fingerprint(path) == set.fingerprints[i]) continue;
    refuse_part(set.parts.front().path, "file", path, "there with the content that it had in the run of this share");
  }
}

}  // namespace

void save_part(const fs::path& path, validation::MethodShare& found, const std::vector<std::string>& given,
               const PartOrigin& origin) {
  core::StateWriter writer;
  writer(found);
  save_part(path, origin, PartContent{{{"sequences", found.runs.size()}}, {{given_key, given}}, writer.bytes()});
}

ordered_json given_options(const PartSet& set) {
  ordered_json given = ordered_json::object();
  for (const ordered_json& name : set.metadata.value(given_key, ordered_json::array())) {
    const auto key = name.get<std::string>();
    if (!set.options.contains(key))
      refuse_part(set.parts.front().path, "given option", key, "one of the options of the part");
    given[key] = set.options.at(key);
  }
  return given;
}

Simulation merge_simulation(const PartSet& set, const SimulationQuestion& question, const fs::path& shipped_models) {
  require_same_files(set);
  validation::MethodShare all;
  for (const PartSet::Part& part : set.parts) {
    try {
      all.merge(share_of(part));
    } catch (const std::invalid_argument&) {
      refuse_part(part.path, "state", "of another question", "of that of " + set.parts.front().path.string());
    }
  }
  try {
    Simulation merged = simulation_of_shares(question, shipped_models, all);
    if (merged.results.empty()) throw QuestionError("PART holds no sequence");
    merged.partial = set.partial;
    append(merged.warnings, set.notes);
    return merged;
  } catch (const QuestionError&) {
    throw;
  } catch (const std::invalid_argument& error) {
    refuse_part(set.parts.front().path, "state", fmt::format("without an answer ({})", error.what()),
                "of the question in its header");
  }
}

}  // namespace specdec::planner
