#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/planning/deployment_plan.hpp"

namespace specdec::planning {

struct NextRunQuestion {
  /// With a cost in seconds.
  DeploymentDraft draft;
  /// The plan's own question: max_gamma, min_gain and draws.
  DeploymentQuestion plan;
  /// The points at which gammas are chosen and runs may be made; at least one.
  std::vector<PlanPoint> points;
  /// A run also determines the acceptance at its gamma: it has the traffic that is planned for.
  bool tells_acceptance = true;
  /// Only runs without speculation are candidates: none was made, and every speedup is over one.
  bool lacks_plain_run = false;
  /// Standard deviation of ln(measured / true) of a run, > 0.
  double run_error = 0.02;
  /// Tokens per request, > 0.
  double output_tokens = 256;
};

/// A run and its value.
struct NextRun {
  std::int64_t gamma = 0;
  double batch = 1;
  double context = 0;
  /// Minutes of the server: its start and benchmark_waves requests one after the other in each place of the batch.
  double minutes = 0;
  double regret_after = 0;
};

/// Expected regrets are means over the points.
struct RunValues {
  double regret = 0;
  /// What saves a tenth of regret_that_matters, most per minute first.
  std::vector<NextRun> runs;

  /// The first; none where the regret is below regret_that_matters.
  std::optional<NextRun> next() const {
    return runs.empty() || regret < regret_that_matters ? std::nullopt : std::optional(runs.front());
  }
};

inline constexpr double server_start_minutes = 3;
inline constexpr double benchmark_waves = 8;

/// The expected regret that runs save (worlds::RunValues): of plain decoding and of the gammas that are the best in at
/// least 2% of the worlds of a point, at that point.
/// Source:   docs/theory.md#the-next-run
/// @throws std::invalid_argument if there are no points; std::domain_error for a value outside its range
RunValues run_values(const NextRunQuestion& question);

}  // namespace specdec::planning
