#include "analysis/theory/rejection_sampling.hpp"

#include <algorithm>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::theory {

double rejection_sampling_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q) {
  core::require_same_size("rejection_sampling_acceptance", "target distribution", p.size(), "draft distribution",
                          q.size());
  double acceptance = 1;
  for (std::size_t x = 0; x < p.size(); ++x) {
    if (p[x] > q[x]) acceptance = std::min(acceptance, q[x] / p[x]);
  }
  return acceptance;
}

double matching_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q) {
  core::require_same_size("matching_acceptance", "target distribution", p.size(), "draft distribution", q.size());
  return core::sum_of_terms(p.size(), [&](std::size_t x) { return p[x] * q[x]; });
}

}  // namespace specdec::theory
