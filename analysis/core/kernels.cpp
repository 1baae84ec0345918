#include "analysis/core/kernels.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::core {
namespace {

template <class Term>
double sum_over_tokens(std::string_view function, const TargetDistribution& p, const DraftDistribution& q, Term term) {
  require_same_size(function, "target distribution", p.size(), "draft distribution", q.size());
  return sum_of_terms(p.size(), [&](std::size_t x) { return term(p[x], q[x]); });
}

}  // namespace

double overlap(const TargetDistribution& p, const DraftDistribution& q) {
  return sum_over_tokens("overlap", p, q, [](double px, double qx) { return std::min(px, qx); });
}

double rejected_mass(const TargetDistribution& p, const DraftDistribution& q) {
  return sum_over_tokens("rejected_mass", p, q, [](double px, double qx) { return std::max(0.0, qx - px); });
}

AcceptanceRate acceptance_rate(const TargetDistribution& p, const DraftDistribution& q) {
  return AcceptanceRate::from_masses(overlap(p, q), rejected_mass(p, q));
}

double d_lk(const TargetDistribution& p, const DraftDistribution& q) {
  return sum_over_tokens("d_lk", p, q, [](double px, double qx) { return std::abs(px - qx) / 2; });
}

}  // namespace specdec::core
