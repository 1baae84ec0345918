#include "analysis/estimate/group_shrinkage.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "analysis/core/bisection.hpp"
#include "analysis/core/checks.hpp"

namespace specdec::estimate {
namespace {

/// Spreads at which the law of t is evaluated, the middles of as many equal parts of its range.
constexpr int spreads = 400;
constexpr double farthest_quantile = 40;

double normal_below(double x, double mean, double variance) {
  if (variance == 0) return x < mean ? 0 : 1;
  return 0.5 * std::erfc((mean - x) / std::sqrt(2 * variance));
}

struct WeightedMean {
  double mean = 0, weights = 0, squared_weights = 0;
};

WeightedMean weighted_mean(std::span<const GroupValue> values, double added_variance) {
  WeightedMean sum;
  for (const GroupValue& one : values) {
    const double weight = 1 / (one.variance + added_variance);
    sum.mean += weight * one.value;
    sum.weights += weight;
    sum.squared_weights += weight * weight;
  }
  sum.mean /= sum.weights;
  return sum;
}

/// The logarithm of the likelihood of a spread, up to a constant, the common mean integrated out.
double log_likelihood(std::span<const GroupValue> groups, double spread, const WeightedMean& sum) {
  double log = -0.5 * std::log(sum.weights);
  for (const GroupValue& one : groups) {
    const double variance = one.variance + spread * spread;
    log -= 0.5 * (std::log(variance) + (one.value - sum.mean) * (one.value - sum.mean) / variance);
  }
  return log;
}

}  // namespace

double NormalMixture::mean() const {
  double sum = 0;
  for (const Part& part : parts_) sum += part.weight * part.mean;
  return sum;
}

double NormalMixture::below(double x) const {
  double sum = 0;
  for (const Part& part : parts_) sum += part.weight * normal_below(x, part.mean, part.variance);
  return sum;
}

double NormalMixture::quantile(double p) const {
  core::require_in("NormalMixture::quantile", "p", p, core::least_positive, std::nextafter(1.0, 0.0));
  double lo = core::infinity, hi = -core::infinity;
  for (const Part& part : parts_) {
    lo = std::min(lo, part.mean - farthest_quantile * std::sqrt(part.variance));
    hi = std::max(hi, part.mean + farthest_quantile * std::sqrt(part.variance));
  }
  return core::bisected(lo, hi, [&](double x) { return below(x) < p; }).second;
}

NormalMixture NormalMixture::with_variance(double added) const {
  std::vector<Part> parts = parts_;
  for (Part& part : parts) part.variance += added;
  return NormalMixture(std::move(parts));
}

GroupShrinkage::GroupShrinkage(std::span<const GroupValue> groups) : groups_(groups.begin(), groups.end()) {
  if (groups.empty()) throw std::invalid_argument("GroupShrinkage: groups is empty, but must hold at least one");
  for (const GroupValue& one : groups) {
    core::require_in("GroupShrinkage", "value", one.value, -core::largest_double, core::largest_double);
    core::require_in("GroupShrinkage", "variance", one.variance, core::least_positive, core::largest_double);
  }
  std::vector<double> logs;
  for (int i = 0; i < spreads; ++i) {
    const double spread = (i + 0.5) / spreads * largest_group_spread;
    const WeightedMean sum = weighted_mean(groups, spread * spread);
    nodes_.push_back({0, spread, sum.mean, 1 / sum.weights});
    logs.push_back(log_likelihood(groups, spread, sum));
  }
  const double largest = *std::max_element(logs.begin(), logs.end());
  double total = 0;
  for (std::size_t i = 0; i < nodes_.size(); ++i) total += nodes_[i].weight = std::exp(logs[i] - largest);
  for (Node& node : nodes_) node.weight /= total;
}

NormalMixture GroupShrinkage::group(std::size_t index) const {
  const GroupValue& own = groups_.at(index);
  std::vector<NormalMixture::Part> parts;
  for (const Node& node : nodes_) {
    const double between = node.spread * node.spread, kept = between / (between + own.variance);
    parts.push_back({node.weight, node.mean + kept * (own.value - node.mean),
                     kept * own.variance + (1 - kept) * (1 - kept) * node.variance});
  }
  return NormalMixture(std::move(parts));
}

NormalMixture GroupShrinkage::new_group() const {
  std::vector<NormalMixture::Part> parts;
  for (const Node& node : nodes_) parts.push_back({node.weight, node.mean, node.variance + node.spread * node.spread});
  return NormalMixture(std::move(parts));
}

double GroupShrinkage::spread() const {
  double sum = 0;
  for (const Node& node : nodes_) sum += node.weight * node.spread;
  return sum;
}

double variance_between(std::span<const std::vector<GroupValue>> strata) {
  double excess = 0, scale = 0;
  for (const std::vector<GroupValue>& items : strata) {
    if (items.size() < 2) continue;
    const WeightedMean sum = weighted_mean(items, 0);
    for (const GroupValue& one : items) excess += (one.value - sum.mean) * (one.value - sum.mean) / one.variance;
    excess -= static_cast<double>(items.size()) - 1;
    scale += sum.weights - sum.squared_weights / sum.weights;
  }
  return scale > 0 ? std::max(0.0, excess / scale) : 0;
}

}  // namespace specdec::estimate
