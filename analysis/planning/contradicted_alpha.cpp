#include "analysis/planning/contradicted_alpha.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "analysis/core/normal_interval.hpp"
#include "analysis/estimate/serving_summary.hpp"
#include "analysis/theory/acceptance_inversion.hpp"

namespace specdec::planning {
namespace {

constexpr double level = 0.05;

struct Rate {
  std::int64_t at = 1;
  double value = 0, standard_error = 0;
};

double standard_error(const estimate::Interval& ci95) { return (ci95.hi - ci95.lo) / (2 * core::normal_half_width_95); }

std::vector<Rate> rates_by_position(std::span<const CountedRun> runs) {
  estimate::ServingSummaries summaries;
  for (const CountedRun& run : runs) {
    traces::ServingCounts counts = *run.counts;
    counts.labels.clear();
    summaries.add(counts);
  }
  const estimate::ServingSummary summary = summaries.summaries().front();
  const bool alone = summary.basis == estimate::IntervalBasis::iid_rounds;
  const double widening = alone ? std::sqrt(BenchAcceptance::lone_run_design_effect) : 1;
  std::vector<Rate> rates;
  for (const estimate::PositionAcceptance& position : summary.positions) {
    if (!position.conditional || !position.conditional->ci95) continue;
    rates.push_back(
        {position.position, position.conditional->value, widening * standard_error(*position.conditional->ci95)});
  }
  return rates;
}

std::vector<Rate> rates_by_gamma(std::span<const CountedRun> runs) {
  const BenchAcceptance acceptance(runs);
  std::set<std::int64_t> gammas;
  for (const CountedRun& run : runs) gammas.insert(run.gamma);
  std::vector<Rate> rates;
  for (const std::int64_t gamma : gammas) {
    const estimate::TokensPerStep tokens = acceptance.tokens_per_step(gamma);
    const auto alpha = [&](double per_step) {
      const double most = static_cast<double>(gamma) + 1;
      return theory::alpha_from_acceptance_length(std::clamp(per_step, 1.0, most), gamma).alpha();
    };
    rates.push_back({gamma, alpha(tokens.value), standard_error({alpha(tokens.ci95.lo), alpha(tokens.ci95.hi)})});
  }
  return rates;
}

}  // namespace

std::optional<ContradictedAlpha> contradicted_alpha(std::span<const CountedRun> runs) {
  if (runs.empty()) return std::nullopt;
  ContradictedAlpha found;
  std::vector<Rate> rates = rates_by_position(runs);
  found.by_position = rates.size() > 1;
  if (!found.by_position) rates = rates_by_gamma(runs);
  const auto n = static_cast<double>(rates.size());
  for (std::size_t i = 0; i < rates.size(); ++i) {
    for (std::size_t j = i + 1; j < rates.size(); ++j) {
      const double error = core::half_of_both(rates[i].standard_error, rates[j].standard_error);
      if (rates[i].standard_error == 0 || rates[j].standard_error == 0) continue;
      const double z = std::abs(rates[i].value - rates[j].value) / error;
      const double p = n * (n - 1) / 2 * std::erfc(z / std::sqrt(2.0));
      if (p >= found.p_value) continue;
      found = {found.by_position, rates[i].at, rates[j].at, rates[i].value, rates[j].value, p};
    }
  }
  if (found.p_value >= level) return std::nullopt;
  return found;
}

}  // namespace specdec::planning
