#pragma once

#include <cstdint>
#include <vector>

#include "analysis/cost/round_cost.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/planning/deployment_plan.hpp"

namespace specdec::planning {

/// A gamma compared with the fastest of a group.
struct GammaComparison {
  double batch = 1;
  double context = 0;
  std::int64_t gamma = 1;
  double tokens_per_step = 1;
  double seconds_per_output_token = 0;
  /// Its seconds per output token over those of the fastest, >= 1; the interval may contain values below 1. 1 without
  /// an interval for the fastest itself.
  estimate::Estimate slower;
  bool fastest = false;
};

/// The gammas from first to last at one point, compared with each other, without plain decoding:
///
///   slower(gamma) = (R(gamma) / E(gamma)) / (R(best) / E(best))
///
/// The half-widths of the logarithms add in squares: of R(gamma) / R(best), over the cost's replicates, and by the
/// error of one more run of each, and of E(gamma) and E(best), by their 95% intervals and readings. Source:
/// docs/theory.md#from-benchmark-runs
/// @param first  >= 1   @param last  >= first
/// @param run_error  standard deviation of ln(measured / true) of a run, >= 0, where replicates have one for all rounds
///                   with drafts
/// @throws as AcceptanceCurve::tokens_per_step and RoundCost::round
std::vector<GammaComparison> compare_gammas(const estimate::AcceptanceCurve& acceptance, const cost::RoundCost& cost,
                                            const PlanPoint& point, std::int64_t first, std::int64_t last,
                                            double run_error = 0);

}  // namespace specdec::planning
