#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "analysis/core/run_hooks.hpp"
#include "planner/recordings/recording_summary.hpp"

namespace specdec::planner {

/// The processes that do one analysis together: this class is a process on its own.
class Team {
 public:
  virtual ~Team() = default;

  /// The rank of this process, from 0.
  virtual std::int64_t rank() const { return 0; }
  /// Rank 0 calls it once it can read the recording; the others begin then.
  /// @param done  units that are not dealt
  virtual void begin(const std::set<std::int64_t>& done);
  /// The next unit that no process was given.
  virtual std::int64_t next() { return deal(); }
  /// The progress of this process, which is that of all: units are dealt in order.
  virtual void tell(double /*share*/) {}
  /// Merges the summaries of all processes into that of rank 0; false for the others, whose summary is used up.
  virtual bool gather(RecordingSummary&) { return true; }

 protected:
  /// On rank 0, from any thread.
  std::int64_t deal();

 private:
  std::mutex lock_;
  std::set<std::int64_t> done_;
  std::int64_t last_ = -1;
};

/// Settings by which a team divides a recording and keeps finished work.
struct Division {
  /// RecordingUnits::positions; empty for usual_unit_positions.
  std::optional<std::int64_t> unit_positions = {};
  /// The folder of a Checkpoint; empty for none.
  std::optional<std::filesystem::path> checkpoint = {};
  /// Checkpoint::Run::version and options.
  std::string version = {};
  nlohmann::ordered_json options = nlohmann::ordered_json::object();
  /// Told on rank 0, if there is a checkpoint of a run before, how many units it has finished.
  std::function<void(std::size_t units)> taken_up = {};
};

/// The positions of a unit: those of 16 MiB of the recording's files, but at most 2^20 units; 65536 where the recording
/// does not say how many positions it has.
std::int64_t usual_unit_positions(const traces::PositionSource& source);

/// The summary of the units that a process of a team is given.
/// @throws as RecordingSummary::of and Checkpoint do
RecordingSummary summary_by(Team& team, const RecordingFiles& recording, const traces::Shard& shard,
                            const AnalysisQuestion& question, const Division& division,
                            const core::RunHooks& hooks = {});

}  // namespace specdec::planner
