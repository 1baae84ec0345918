#include "analysis/planning/gamma_comparison.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "analysis/core/normal_interval.hpp"
#include "analysis/core/quantile.hpp"

namespace specdec::planning {
namespace {

/// Half-widths of a logarithm's error.
struct Widths {
  double below = 0, above = 0;
};

Widths of_tokens(const estimate::TokensPerStep& tokens) {
  return {std::log(tokens.value / tokens.ci95.lo) + std::log(tokens.value / tokens.readings.lo),
          std::log(tokens.ci95.hi / tokens.value) + std::log(tokens.readings.hi / tokens.value)};
}

Widths of_ratio(const cost::RoundCost& cost, const cost::RoundPoint& above, const cost::RoundPoint& below) {
  std::vector<double> ratios(cost.replicates()), divisors(cost.replicates());
  if (ratios.empty()) return {};
  cost.totals_of_replicates(above, ratios);
  cost.totals_of_replicates(below, divisors);
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] /= divisors[i];
  std::sort(ratios.begin(), ratios.end());
  const double value = cost.round(above).total() / cost.round(below).total();
  return {std::max(0.0, std::log(value / core::sorted_quantile(ratios, 0.025))),
          std::max(0.0, std::log(core::sorted_quantile(ratios, 0.975) / value))};
}

}  // namespace

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
  const Widths of_best = of_tokens(tokens[best]);
  const double of_runs = core::normal_half_width_95 * std::numbers::sqrt2 * run_error;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    estimate::Estimate& slower = rows[i].slower;
    slower.value = rows[i].seconds_per_output_token / fastest->seconds_per_output_token;
    slower.method = "the fastest of the drafts compared";
    if (i == best) continue;
    const Widths its = of_tokens(tokens[i]), of_rounds = of_ratio(cost, places[i], places[best]);
    const double below = core::half_of_both(of_rounds.below, of_runs);
    const double above = core::half_of_both(of_rounds.above, of_runs);
    slower.ci95 = {slower.value * std::exp(-std::hypot(below, its.above, of_best.below)),
                   slower.value * std::exp(std::hypot(above, its.below, of_best.above))};
    slower.method = "ratio of seconds per output token to the fastest";
  }
  return rows;
}

}  // namespace specdec::planning
