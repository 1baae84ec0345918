#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/planning/engine_config.hpp"

namespace specdec::planning {

/// The name by which an engine finds a model.
struct ServedModel {
  /// A repository ("org/name") or a path; empty if unknown.
  std::string name;
  /// Where no repository was named: the others of the same shape, for which the plan holds too.
  std::vector<std::string> alike;
};

/// The model that a name stands for: a repository for itself; likewise a path, or a folder that holds weights; a
/// preset's name for the first of its repositories that is instruction-tuned, else for the first. llama.cpp takes GGUF
/// files only. An engine would not find any other name.
/// @param asked  as the user or a file gives it; may be empty
ServedModel served_model(Engine engine, std::string_view asked);

}  // namespace specdec::planning
