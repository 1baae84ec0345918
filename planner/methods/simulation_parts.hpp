#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "planner/methods/comparison.hpp"
#include "planner/parts/part_files.hpp"

/// Parts of a simulation: each holds the runs of its sequences.
namespace specdec::planner {

/// @param given  names of the options that were given, so that a merge asks the same question
/// @throws as the other save_part
void save_part(const std::filesystem::path& path, validation::MethodShare& found, const std::vector<std::string>& given,
               const PartOrigin& origin);

/// The options that were given in the runs of all parts, by name with their values.
nlohmann::ordered_json given_options(const PartSet& set);

/// The answer of all parts of one simulation.
/// @param set  parts of simulate
/// @param question  the one that the parts answer
/// @throws traces::FileError naming the part if a model or text file is not what it was when the part was made, or if
///   its state cannot be merged
Simulation merge_simulation(const PartSet& set, const SimulationQuestion& question,
                            const std::filesystem::path& shipped_models);

}  // namespace specdec::planner
