#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "analysis/core/run_hooks.hpp"
#include "planner/parts/part_files.hpp"
#include "planner/sweeps/sweep_rows.hpp"
#include "traces/note.hpp"
#include "traces/sharded_recording.hpp"

/// Many questions at once, and one table of their answers. Component `sweeps`.
namespace specdec::planner {

/// The questions of a sweep are all of plans or all of capacities.
enum class SweepCommand { plan, capacity };
/// "plan", "capacity".
std::string name_of(SweepCommand command);
std::optional<SweepCommand> sweep_command_named(std::string_view name);

/// Ends the question early, for instance at Ctrl-C; what it then gives is discarded.
using SweepInterrupt = std::function<bool()>;

/// One question of a sweep.
struct SweepPoint {
  /// Options that differ between points, and the first columns of its rows. All points of a sweep have the same keys.
  nlohmann::ordered_json varied = nlohmann::ordered_json::object();
  /// All that decides the answer, with the content of the files that it reads: points of the same question are one.
  std::string question;
  /// May be called by any thread.
  std::function<PointAnswer(const SweepInterrupt& interrupt)> answer;
};

struct SweepSettings {
  /// Version of the program; answers of other versions are not taken from the cache.
  std::string version;
  /// Folder in which each answer is kept as soon as there is one; made if it is missing.
  std::optional<std::filesystem::path> cache = {};
  /// Options beside those of the load whose values are given, not chosen: rows with different ones are not held against
  /// each other.
  std::vector<std::string> given = {};
  /// The share of the distinct points to answer.
  traces::Shard shard = {};
  /// Points that are answered at the same time, [1, 1024].
  std::int64_t threads = 1;
};

/// The answer to one point.
struct SweepAnswer {
  /// @param number  among the distinct points, counted from 0
  SweepAnswer(std::int64_t number, PointAnswer its);

  std::int64_t point = 0;
  PointAnswer answer;
  bool is_priced = true;
};

/// The answers to a sweep, or to a share of it.
struct Sweep {
  SweepCommand command = SweepCommand::plan;
  /// The options that vary.
  std::vector<std::string> varied;
  /// SweepSettings::given.
  std::vector<std::string> given;
  /// Distinct points, those of all shares, and points that only repeat one of them.
  std::int64_t points = 0, repeated = 0;
  /// In order of the points.
  std::vector<SweepAnswer> answers;
  /// Points whose answer was in the cache.
  std::int64_t from_cache = 0;
  /// True if it was interrupted, or shards are missing.
  bool partial = false;
  /// Those of the sweep itself.
  std::vector<Note> warnings;

  /// The table: the number of the point, counted from 1, what varies, and plan_columns or capacity_columns, then
  /// "warnings", the codes of those of the point, separated by spaces, null without any, "pareto" and "why".
  /// Takes the rows out of the answers.
  std::vector<nlohmann::ordered_json> take_rows();
  /// The sweep's own warnings, and those of the points: each that differs from others by its numbers alone once, with
  /// how many points have it and what it says of the first.
  std::vector<Note> all_warnings() const;
  /// Assumptions shared by the answers to all priced points.
  std::vector<Assumption> shared_assumptions() const;
  /// The options that say which work is done, not how: rows of different work are not held against each other.
  std::vector<std::string> work() const;
  /// Points that could not be priced.
  std::int64_t unpriced() const;
};

/// Answers the points, or those of a share. A point that cannot be priced has one row that says why. The rows depend on
/// nothing but the points.
/// @param points  at least one; each is given up once it is answered
/// @throws QuestionError for a cache that cannot be used, or if it was interrupted before a point was answered
/// @throws anything that answers throw except what says that the point cannot be priced: std::domain_error,
///   std::invalid_argument, traces::FileError
Sweep sweep(SweepCommand command, std::vector<SweepPoint> points, const SweepSettings& settings,
            const core::RunHooks& hooks = {});

/// Writes the answers of a share to a file.
/// @throws as the other save_part
void save_part(const std::filesystem::path& path, const Sweep& sweep, const PartOrigin& origin);

/// The sweep of which all parts are.
/// @param set  parts of sweep
/// @throws traces::FileError naming the part whose state cannot be merged
Sweep merge_sweep(const PartSet& set);

}  // namespace specdec::planner
