#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/planning/deployment_plan.hpp"

namespace specdec::planning {

struct NextRunQuestion {
  /// Both non-null; a cost in seconds that has an answer at all points and gammas.
  const estimate::AcceptanceCurve* acceptance = nullptr;
  const cost::RoundCost* cost = nullptr;
  /// Covariance of the logarithms of two rounds' seconds.
  std::function<double(const cost::RoundPoint&, const cost::RoundPoint&)> covariance;
  /// A run also determines the acceptance at its gamma: it has the traffic that is planned for.
  bool tells_acceptance = true;
  /// The points at which gammas are chosen and runs may be made; at least one.
  std::vector<PlanPoint> points;
  /// Gammas 0 to this one are compared, and may be run; >= 1.
  std::int64_t max_gamma = 16;
  /// Only runs without speculation are candidates: none was made, and every speedup is over one.
  bool lacks_plain_run = false;
  /// The gain that drafts must exceed, >= 0.
  double min_gain = 0.05;
  /// Standard deviation of ln(measured / true) of a run, > 0.
  double run_error = 0.02;
  /// Tokens per request, > 0.
  double output_tokens = 256;
};

/// A run and its value. Regrets are shares of the time per output token, means over the points.
struct NextRun {
  std::int64_t gamma = 0;
  double batch = 1;
  double context = 0;
  /// Minutes of the server: its start and benchmark_waves requests one after the other in each place of the batch.
  double minutes = 0;
  double regret_now = 0;
  double regret_after = 0;
  /// Number of runs that it was chosen from.
  std::int64_t candidates = 0;
};

inline constexpr double server_start_minutes = 3;
inline constexpr double benchmark_waves = 8;
/// A run that lowers the regret by less than this is not worth its minutes.
inline constexpr double least_lowered_regret = 1e-4;

/// E[max_i (a_i + b_i X + c_i Y)], X and Y independent standard normal variables; by quadrature over their quantiles.
/// Shape: a, b, c (n), n >= 1
/// @throws std::invalid_argument for other sizes
/// Accuracy: absolute error <= 2e-3 of the largest |b_i| + |c_i|
double expected_maximum(std::span<const double> a, std::span<const double> b, std::span<const double> c);

/// The run whose outcome is expected to lower the regret of the choice of gammas most per minute:
///
///   u_p(g) = ln E(g) - ln R(g, p) - [g > 0] ln(1 + min_gain)
///   value(x) = mean over points p of E_y[max_g E[u_p(g) | y]] - max_g E[u_p(g)]
///
/// with y the run's ln R(x) and ln E(gamma), each with error run_error;
/// E[u | y] is linear in y, by the covariances of ln R, and of the acceptance's errors: normal with their half-widths
/// over 1.96, correlated between gammas by exp(-(ln((g + 1) / (g' + 1)) / .9)^2 / 2). The current regret is that of
/// 4000 draws from both. Empty if no run lowers it by least_lowered_regret. Source:   Raiffa and Schlaifer 1961 (value
/// of sample information); docs/theory.md#the-next-run
/// @throws std::invalid_argument if there are no points; std::domain_error for a value outside its range
std::optional<NextRun> next_run(const NextRunQuestion& question);

}  // namespace specdec::planning
