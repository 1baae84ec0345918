#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "planner/recordings/recording_summary.hpp"
#include "traces/formats/durable_file.hpp"

namespace specdec::planner {

/// Results of the units that a run finished, kept in a folder so that a run that was killed goes on from there. Each
/// process has one file there, "RANK.checkpoint", which docs/scale.md describes: its units and the summary of all of
/// them. It is replaced whole, so that at any moment the folder holds only units that are finished, each once.
class Checkpoint {
 public:
  /// The facts that a run must share with the one that it goes on from.
  struct Run {
    std::string version;                       ///< the program's
    nlohmann::ordered_json options;            ///< those that decide the answer, by name
    traces::Shard shard;                       ///< the share that the run reads
    std::int64_t unit_positions = 1;           ///< RecordingUnits::positions
    traces::TraceMetadata metadata;            ///< the recording's, before it was read
    std::vector<std::filesystem::path> files;  ///< the recording's
  };

  /// @param rank  this process's among those of the run, from 0; the process of rank 0 locks the folder
  /// @throws traces::FileError if the folder cannot be written, or another run writes there
  Checkpoint(std::filesystem::path folder, std::int64_t rank, const Run& run);

  /// Takes up what all processes of the run before left, and leaves it in the file of rank 0: for that rank, before any
  /// other writes. Empty if there was nothing.
  /// @throws traces::FileError that names the file that is damaged, or of another version, build, recording or option
  std::optional<RecordingSummary> take_up();
  /// Those that this process finished, with those that it took up.
  const std::set<std::int64_t>& units() const { return units_; }

  /// Adds a unit. It is written with those before it at once, unless writing would take more than a twentieth of the
  /// time.
  void add(std::int64_t unit, RecordingSummary& so_far);
  /// Writes what add() has not written.
  void flush(RecordingSummary& so_far);

 private:
  using Clock = std::chrono::steady_clock;

  std::filesystem::path file_of(std::int64_t rank) const;
  void write(RecordingSummary& so_far);

  std::filesystem::path folder_;
  std::int64_t rank_;
  nlohmann::ordered_json header_;
  std::optional<traces::FolderLock> lock_;
  std::set<std::int64_t> units_;
  bool is_written_ = true;
  Clock::time_point begin_ = Clock::now();
  Clock::duration writing_ = {};
};

/// Refuses a folder for checkpoints that is the recording itself.
/// @throws QuestionError
void require_place_of_checkpoint(const std::filesystem::path& folder, const std::vector<std::string>& recording);

}  // namespace specdec::planner
