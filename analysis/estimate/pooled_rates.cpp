#include "analysis/estimate/pooled_rates.hpp"

#include <cmath>

#include "analysis/core/normal_interval.hpp"
#include "analysis/estimate/group_shrinkage.hpp"

namespace specdec::estimate {
namespace {

double log_odds(double rate) { return std::log(rate / (1 - rate)); }
double rate_of(double log_odds_of_rate) { return 1 / (1 + std::exp(-log_odds_of_rate)); }

/// The rate with the standard error of its interval; empty if it has none in log-odds.
std::optional<GroupValue> value_of(const std::optional<Estimate>& rate) {
  if (!rate || !rate->ci95 || !(0 < rate->value && rate->value < 1)) return std::nullopt;
  const double value = log_odds(rate->value);
  double width = 0, sides = 0;
  for (const double end : {rate->ci95->lo, rate->ci95->hi}) {
    if (!(0 < end && end < 1)) continue;
    width += std::abs(log_odds(end) - value);
    ++sides;
  }
  if (!(width > 0)) return std::nullopt;
  const double error = width / sides / core::normal_half_width_95;
  return GroupValue{value, error * error};
}

Interval rates_of(const Interval& of_log_odds) { return {rate_of(of_log_odds.lo), rate_of(of_log_odds.hi)}; }

Estimate estimate_of(const NormalMixture& law) {
  return {rate_of(law.quantile(0.5)), rates_of(law.central95()), "groups drawn towards their mean"};
}

}  // namespace

std::optional<PooledRates> pooled_rates(std::span<const std::optional<Estimate>> rates) {
  std::vector<GroupValue> values;
  std::vector<std::optional<std::size_t>> places;
  for (const std::optional<Estimate>& rate : rates) {
    const std::optional<GroupValue> value = value_of(rate);
    places.push_back(value ? std::optional(values.size()) : std::nullopt);
    if (value) values.push_back(*value);
  }
  if (values.size() < 2) return std::nullopt;
  const GroupShrinkage pooled(values);
  PooledRates result;
  for (const std::optional<std::size_t>& place : places) {
    result.groups.push_back(place ? std::optional(estimate_of(pooled.group(*place))) : std::nullopt);
  }
  result.common = estimate_of(pooled.common_mean());
  result.another = estimate_of(pooled.new_group());
  result.spread = {pooled.spread(), pooled.spread_ci95(), "likelihood of the groups' log-odds"};
  return result;
}

}  // namespace specdec::estimate
