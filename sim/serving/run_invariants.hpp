#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/serving/engine_state.hpp"
#include "sim/serving/run_measures.hpp"
#include "sim/serving/serving_simulation.hpp"

namespace specdec::sim {

// Internal header of the library; it is not installed.

/// Checks the invariants of a run, those of simulate_serving(question, checks). All throw std::logic_error if one does
/// not hold.
class RunInvariants {
 public:
  /// References must outlive the object.
  RunInvariants(const ServingQuestion& question, const RunMeasures& measures)
      : question_(question), measures_(measures) {}

  /// Before an iteration that begins now. @param served  requests so far
  void check_iteration(EngineState& state, std::size_t served, double now);
  /// Checks the running request i, which ends. @param outcome  that of the request before its end
  void check_ended(const RunningRequests& running, std::size_t i, const ServedRequest& outcome) const;
  void check_end(const ServingResult& result, const CacheBlocks& blocks);

 private:
  /// Sums over the requests that run one by one.
  struct HeldByRunning {
    std::int64_t blocks = 0, positions = 0;
    std::size_t scheduled = 0;
  };

  void require(bool holds, std::string_view what) const;
  HeldByRunning check_running(const RunningRequests& running) const;
  void check_order(const EngineState& state, std::size_t served) const;

  const ServingQuestion& question_;
  const RunMeasures& measures_;
  /// The last time at which something was checked.
  double checked_at_ = 0;
};

}  // namespace specdec::sim
