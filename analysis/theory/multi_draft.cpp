#include "analysis/theory/multi_draft.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/math/tools/roots.hpp>
#include <boost/math/tools/toms748_solve.hpp>
#include <cmath>
#include <cstddef>
#include <set>
#include <stdexcept>
#include <vector>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::theory {
namespace {

void require_inputs(std::string_view function, const core::TargetDistribution& p, const core::DraftDistribution& q,
                    std::int64_t k) {
  core::require_same_size(function, "target distribution", p.size(), "draft distribution", q.size());
  core::require_in(function, "k", k, 1, most_drafts);
}

double sum_of(std::span<const double> row) {
  return core::sum_of_terms(row.size(), [&](std::size_t x) { return row[x]; });
}

/// 1 - (1 - x)^n.
double at_least_once(double x, std::int64_t n) {
  return -std::expm1(static_cast<double>(n) * std::log1p(-std::min(x, 1.0)));
}

/// Replaces p by norm(max(0, p - q)). Returns the mass that was left; p is unchanged if that is 0.
double leave_residual(std::vector<double>& p, std::span<const double> q) {
  const double mass = core::sum_of_terms(p.size(), [&](std::size_t x) { return std::max(0.0, p[x] - q[x]); });
  if (mass > 0)
    for (std::size_t x = 0; x < p.size(); ++x) p[x] = std::max(0.0, p[x] - q[x]) / mass;
  return mass;
}

double overlap_at(const core::TargetDistribution& p, const core::DraftDistribution& q, double rho) {
  return core::sum_of_terms(p.size(), [&](std::size_t x) { return std::min(p[x] / rho, q[x]); });
}

/// (1 - (1 - b)^k) / b: how often a draft that would be accepted is taken.
double taken_per_overlap(double b, std::int64_t k) { return b > 0 ? at_least_once(b, k) / b : static_cast<double>(k); }

/// Corrected probabilities are >= 0 up to rounding.
bool is_lossless(double b, double rho, std::int64_t k) { return taken_per_overlap(b, k) <= rho * (1 + 4e-16); }

}  // namespace

double recursive_acceptance_of(const core::TargetDistribution& p, const core::DraftDistribution& q,
                               std::span<const std::int64_t> drafts, Replacement replacement) {
  constexpr std::string_view function = "recursive_acceptance_of";
  require_inputs(function, p, q, static_cast<std::int64_t>(drafts.size()));
  std::vector<double> target(p.probabilities().begin(), p.probabilities().end());
  std::vector<double> draft(q.probabilities().begin(), q.probabilities().end());
  double rejected = 1;
  for (const std::int64_t token : drafts)
    core::require_in(function, "draft", token, std::int64_t{0}, static_cast<std::int64_t>(p.size()) - 1);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    const auto x = static_cast<std::size_t>(drafts[i]);
    rejected *= std::max(0.0, draft[x] - target[x]) / (draft[x] > 0 ? draft[x] : 1);
    if (rejected == 0 || i + 1 == drafts.size() || leave_residual(target, draft) == 0) break;
    if (replacement == Replacement::with) continue;
    draft[x] = 0;
    const double left = sum_of(draft);
    if (!(left > 0)) break;
    for (double& probability : draft) probability /= left;
  }
  return 1 - rejected;
}

double k_seq_least_rho(const core::TargetDistribution& p, const core::DraftDistribution& q, std::int64_t k) {
  require_inputs("k_seq_least_rho", p, q, k);
  const double most = static_cast<double>(k);
  // 1 - (1 - b)^k - rho b, computed from the complements, since the terms may agree in all their digits.
  const auto f = [&](double rho) {
    const double missing =
        core::sum_of_terms(p.size(), [&](std::size_t x) { return std::max(0.0, p[x] - rho * q[x]); });
    const double rejected =
        core::sum_of_terms(p.size(), [&](std::size_t x) { return std::max(0.0, q[x] - p[x] / rho); });
    return missing - std::pow(rejected, most);
  };
  const double at_least = f(1);
  if (overlap_at(p, q, 1) == 0 || at_least <= 0) return 1;
  const double at_most = f(most);
  if (at_most >= 0) return most;
  // If f is nearly flat on one side of the root, interpolation may approach it from the other side alone.
  boost::math::tools::eps_tolerance<double> is_narrow;
  std::uintmax_t interpolations = 20;
  const auto [below, above] =
      boost::math::tools::toms748_solve(f, 1.0, most, at_least, at_most, is_narrow, interpolations);
  return is_narrow(below, above) ? above : boost::math::tools::bisect(f, below, above, is_narrow).second;
}

core::AcceptanceRate k_seq_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                      std::int64_t k, double rho) {
  require_inputs("k_seq_acceptance", p, q, k);
  core::require_in("k_seq_acceptance", "rho", rho, 1, core::largest_double);
  const double b = overlap_at(p, q, rho);
  if (b > 0 && !is_lossless(b, rho, k))
    core::require_in("k_seq_acceptance", "rho", rho, k_seq_least_rho(p, q, k), core::largest_double);
  const double taken = taken_per_overlap(b, k);
  const auto accepted = [&](std::size_t x) { return std::min(p[x] / rho, q[x]) * taken; };
  const auto corrected = [&](std::size_t x) { return std::max(0.0, p[x] - accepted(x)); };
  return core::AcceptanceRate::from_masses(core::sum_of_terms(p.size(), accepted),
                                           core::sum_of_terms(p.size(), corrected));
}

core::AcceptanceRate distinct_drafts_acceptance(const core::TargetDistribution& p,
                                                std::span<const std::int64_t> drafts) {
  std::set<std::int64_t> named;
  core::CompensatedSum accepted;
  for (const std::int64_t token : drafts) {
    core::require_in("distinct_drafts_acceptance", "draft", token, 0, static_cast<std::int64_t>(p.size()) - 1);
    if (!named.insert(token).second)
      throw std::domain_error(fmt::format("distinct_drafts_acceptance: draft {} is named twice", token));
    accepted.add(p[static_cast<std::size_t>(token)]);
  }
  // The tokens between the named ones.
  core::CompensatedSum rejected;
  std::size_t first = 0;
  const auto add_up_to = [&](std::size_t end) {
    rejected.add(core::sum_of_terms(end - first, [&](std::size_t i) { return p[first + i]; }));
    first = end + 1;
  };
  for (const std::int64_t token : named) add_up_to(static_cast<std::size_t>(token));
  if (first < p.size()) add_up_to(p.size());
  return core::AcceptanceRate::from_masses(accepted.value(), rejected.value());
}

}  // namespace specdec::theory
