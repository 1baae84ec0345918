#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/serving/engine_state.hpp"
#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// The scheduler of a serving engine: which requests take part in an iteration with how many positions, which give up
/// their blocks, and which are admitted.
class IterationScheduler {
 public:
  /// References must outlive the object. @param outcomes  [request]: tokens that requests had put out when they gave up
  /// their blocks, and how often they did
  IterationScheduler(const ServingQuestion& question, const RequestRounds& rounds, std::vector<ServedRequest>& outcomes,
                     EngineState& state)
      : question_(question), rounds_(rounds), outcomes_(outcomes), state_(state) {}

  /// Makes the engine's next iteration, which begins now; nobody takes part if all gave up their blocks.
  void schedule(double now);

 private:
  using Index = std::size_t;

  /// Requirements for admitting the next waiting request.
  struct Admission {
    std::size_t request = 0;
    double last_output = 0;
    std::int64_t put_out = 0, tokens = 0, found = 0, positions = 0, blocks = 0, of_others = 0;
    bool fits = false;
  };

  bool stays_in_step() const;
  void schedule_running(bool prompts_alone);
  void choose_verified();
  std::int64_t blocks_wanted(Index i, std::int64_t positions) const;
  bool make_room(Index i, std::int64_t wanted);
  void give_up_last();
  void take(Index i, std::int64_t positions, std::int64_t wanted);
  Admission next_admission() const;
  bool may_admit() const;
  bool has_prompts() const;
  void admit();
  void begin(const Admission& admitted);
  std::int64_t found_in_cache(const SimulatedRequest& asked, bool again) const;

  const ServingQuestion& question_;
  const RequestRounds& rounds_;
  std::vector<ServedRequest>& outcomes_;
  EngineState& state_;
  const ServingEngine& engine_ = question_.engine;
  const std::vector<SimulatedRequest>& requests_ = question_.requests;
  const std::int64_t largest_gamma_ = rounds_.largest_gamma();
  RunningRequests& running_ = state_.running;
  CacheBlocks& blocks_ = state_.blocks;
  EngineIteration& iteration_ = state_.iteration;
};

}  // namespace specdec::sim
