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

/// A run and its value. Regrets are means over the points.
struct NextRun {
  std::int64_t gamma = 0;
  double batch = 1;
  double context = 0;
  /// Minutes of the server: its start and benchmark_waves requests one after the other in each place of the batch.
  double minutes = 0;
  double regret_now = 0;
  double regret_after = 0;
};

inline constexpr double server_start_minutes = 3;
inline constexpr double benchmark_waves = 8;

/// The run that saves most expected regret per minute (worlds::RunValues), among plain decoding and the gammas that are
/// the best in at least 2% of the worlds of a point, at that point. Empty where the expected regret now is below
/// regret_that_matters, or no run saves a tenth of that.
/// Source:   docs/theory.md#the-next-run
/// @throws std::invalid_argument if there are no points; std::domain_error for a value outside its range
std::optional<NextRun> next_run(const NextRunQuestion& question);

}  // namespace specdec::planning
