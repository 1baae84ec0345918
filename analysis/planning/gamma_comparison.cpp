#include "analysis/planning/gamma_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "analysis/core/normal_interval.hpp"
#include "analysis/planning/draft_scan.hpp"

namespace specdec::planning {
std::vector<GammaComparison> compare_gammas(const estimate::AcceptanceCurve& acceptance, const cost::RoundCost& cost,
                                            const PlanPoint& point, std::int64_t first, std::int64_t last,
                                            double run_error) {
  std::vector<GammaComparison> rows;
  std::vector<estimate::TokensPerStep> tokens;
  std::vector<cost::RoundPoint> places;
  for (std::int64_t gamma = first; gamma <= last; ++gamma) {
    tokens.push_back(acceptance.tokens_per_step(gamma));
    places.push_back({gamma, point.batch, point.context, tokens.back().full_accepts});
    GammaComparison row;
    row.batch = point.batch;
    row.context = point.context;
    row.gamma = gamma;
    row.tokens_per_step = tokens.back().value;
    row.seconds_per_output_token = cost.round(places.back()).total() / row.tokens_per_step;
    rows.push_back(row);
  }
  const auto fastest = std::min_element(rows.begin(), rows.end(), [](const auto& a, const auto& b) {
    return a.seconds_per_output_token < b.seconds_per_output_token;
  });
  if (fastest == rows.end()) return rows;
  fastest->fastest = true;
  const auto best = static_cast<std::size_t>(fastest - rows.begin());
  const LogError of_best = error_of_tokens(tokens[best]);
  const double of_runs = core::normal_half_width_95 * std::numbers::sqrt2 * run_error;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    estimate::Estimate& slower = rows[i].slower;
    slower.value = rows[i].seconds_per_output_token / fastest->seconds_per_output_token;
    slower.method = "the fastest of the drafts compared";
    if (i == best) continue;
    const LogError its = error_of_tokens(tokens[i]), of_rounds = error_of_ratio(cost, places[i], places[best]);
    const double below = core::half_of_both(of_rounds.below, of_runs);
    const double above = core::half_of_both(of_rounds.above, of_runs);
    slower.ci95 = {slower.value * std::exp(-std::hypot(below, its.above, of_best.below)),
                   slower.value * std::exp(std::hypot(above, its.below, of_best.above))};
    slower.method = "ratio of seconds per output token to the fastest";
  }
  return rows;
}

}  // namespace specdec::planning
