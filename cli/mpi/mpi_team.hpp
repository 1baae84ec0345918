#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cli/shard_options.hpp"
#include "planner/recordings/team.hpp"

namespace specdec::cli {

/// The ranks of MPI_COMM_WORLD. Each does a share, or the units that are dealt to it. These are dealt by a thread of
/// rank 0, so that no rank waits for another's work. MPI must be initialised with MPI_THREAD_SERIALIZED at least.
class MpiTeam : public planner::Team, public ShareTeam {
 public:
  MpiTeam();
  ~MpiTeam() override;
  MpiTeam(const MpiTeam&) = delete;
  MpiTeam& operator=(const MpiTeam&) = delete;

  /// On rank 0 true at once; on the others once rank 0 has begun, or false if it ended without.
  bool has_work();
  /// Lets the others end if nothing was begun. What follows is MPI_Finalize.
  void end();

  std::int64_t rank() const override { return rank_; }
  void begin(const std::set<std::int64_t>& done) override;
  std::int64_t next() override;
  /// A line on standard error every ten seconds, of rank 0: what the ranks say is no terminal's.
  void tell(double share) override;
  /// In a tree: the halves of all ranks, then the quarters, and so on.
  bool gather(planner::RecordingSummary& own) override;

  traces::Shard own() override;
  /// In a folder of this rank alone, which lives as long as the team.
  std::string part() override;
  /// Sent to rank 0, which needs no folder that others see.
  std::vector<std::string> gathered() override;
  /// For a rank that ends otherwise than by its destructor.
  void remove_parts();

 private:
  void serve();
  /// For the unit after the one that is at work, so that nobody waits for it.
  void ask();

  int rank_ = 0, size_ = 1;
  bool has_begun_ = false;
  bool is_asked_ = false;
  /// Empty until a part is asked for.
  std::filesystem::path folder_;
  std::thread server_;
  std::chrono::steady_clock::time_point told_ = std::chrono::steady_clock::now();
};

}  // namespace specdec::cli
