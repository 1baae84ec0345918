#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analysis/planning/engine_config.hpp"

namespace specdec::planning {

/// The name by which an engine finds a model.
struct ServedModel {
  /// A repository ("org/name") or a path; empty where none is known.
  std::string name;
  /// Other repositories of the same shape, which the plan holds for as well.
  std::vector<std::string> alike;
};

/// What a name stands for: a repository for itself; a path, or a folder that holds weights, too; a preset's name for
/// the first of its repositories that is tuned for instructions, else for the first. llama.cpp takes GGUF files alone.
/// Another name is nothing that an engine would find.
/// @param asked  as the user or a file says it; may be empty
ServedModel served_model(Engine engine, std::string_view asked);

}  // namespace specdec::planning
