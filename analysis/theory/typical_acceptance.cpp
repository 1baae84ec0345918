#include "analysis/theory/typical_acceptance.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::theory {
namespace {

core::AcceptanceRate acceptance_above(double threshold, const core::TargetDistribution& p,
                                      const core::DraftDistribution& q) {
  core::require_same_size("typical_acceptance", "target distribution", p.size(), "draft distribution", q.size());
  return core::AcceptanceRate::from_masses(
      core::sum_of_terms(p.size(), [&](std::size_t x) { return p[x] > threshold ? q[x] : 0; }),
      core::sum_of_terms(p.size(), [&](std::size_t x) { return p[x] > threshold ? 0 : q[x]; }));
}

}  // namespace

double entropy_nats(const core::TargetDistribution& p) {
  core::CompensatedSum entropy;
  for (const double probability : p.probabilities())
    if (probability > 0) entropy.add(-probability * std::log(probability));
  return std::max(0.0, entropy.value());
}

double typical_threshold(const core::TargetDistribution& p, const TypicalRule& rule) {
  core::require_in("typical_threshold", "epsilon", rule.epsilon, 0, 1);
  core::require_in("typical_threshold", "delta", rule.delta, 0, 1);
  return std::min(rule.epsilon, rule.delta * std::exp(-entropy_nats(p)));
}

core::AcceptanceRate typical_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                        const TypicalRule& rule) {
  return acceptance_above(typical_threshold(p, rule), p, q);
}

std::vector<double> typical_output(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                   const TypicalRule& rule) {
  const double threshold = typical_threshold(p, rule);
  const double rejected = acceptance_above(threshold, p, q).rejection();
  std::vector<double> output(p.size());
  for (std::size_t x = 0; x < p.size(); ++x) output[x] = (p[x] > threshold ? q[x] : 0) + rejected * p[x];
  return output;
}

double typical_distance(const core::TargetDistribution& p, const core::DraftDistribution& q, const TypicalRule& rule) {
  const std::vector<double> output = typical_output(p, q, rule);
  return core::sum_of_terms(p.size(), [&](std::size_t x) { return std::abs(output[x] - p[x]) / 2; });
}

}  // namespace specdec::theory
