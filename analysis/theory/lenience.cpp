#include "analysis/theory/lenience.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"
#include "analysis/theory/extended.hpp"

namespace specdec::theory {
namespace {

void require_lenience(std::string_view function, double lenience) {
  if (0 < lenience && lenience <= 1) return;
  throw std::domain_error(fmt::format("{}: lenience is {}, but must be in (0, 1]", function, lenience));
}

void require_rows(std::string_view function, const core::TargetDistribution& p, const core::DraftDistribution& q,
                  double lenience) {
  require_lenience(function, lenience);
  core::require_same_size(function, "target distribution", p.size(), "draft distribution", q.size());
}

template <class Term>
double sum_over_tokens(const core::TargetDistribution& p, const core::DraftDistribution& q, Term term) {
  return core::sum_of_terms(p.size(), [&](std::size_t x) { return term(p[x], q[x]); });
}

}  // namespace

core::AcceptanceRate lenient_acceptance(const core::TargetDistribution& p, const core::DraftDistribution& q,
                                        double lenience) {
  require_rows("lenient_acceptance", p, q, lenience);
  return core::AcceptanceRate::from_masses(
      sum_over_tokens(p, q, [&](double px, double qx) { return std::min(px / lenience, qx); }),
      sum_over_tokens(p, q, [&](double px, double qx) { return std::max(0.0, qx - px / lenience); }));
}

std::vector<double> lenient_output(const core::TargetDistribution& p, const core::DraftDistribution& q, double lenience,
                                   LenientResidual residual) {
  require_rows("lenient_output", p, q, lenience);
  const double rejected = lenient_acceptance(p, q, lenience).rejection();
  const double scale = residual == LenientResidual::strict ? 1 : lenience;
  const double missing = sum_over_tokens(p, q, [&](double px, double qx) { return std::max(0.0, px - scale * qx); });
  std::vector<double> output(p.size());
  for (std::size_t x = 0; x < p.size(); ++x) {
    const double correction = missing > 0 ? std::max(0.0, p[x] - scale * q[x]) / missing : p[x];
    output[x] = std::min(p[x] / lenience, q[x]) + rejected * correction;
  }
  return output;
}

double lenient_distance(const core::TargetDistribution& p, const core::DraftDistribution& q, double lenience,
                        LenientResidual residual) {
  require_rows("lenient_distance", p, q, lenience);
  if (residual == LenientResidual::strict) {
    return sum_over_tokens(p, q, [&](double px, double qx) { return std::min(px / lenience, qx) - std::min(px, qx); });
  }
  const std::vector<double> output = lenient_output(p, q, lenience, residual);
  return core::sum_of_terms(p.size(), [&](std::size_t x) { return std::max(0.0, output[x] - p[x]); });
}

double exact_token_fraction(const core::AcceptanceRate& lenient_rate, std::int64_t gamma) {
  core::require_in("exact_token_fraction", "gamma", gamma, 0, std::numeric_limits<std::int64_t>::max());
  return static_cast<double>(extended::power(lenient_rate, static_cast<long double>(gamma)) /
                             extended::expected_tokens(lenient_rate, gamma));
}

bool argmax_lenient_accepts(const core::TargetDistribution& p, std::size_t draft_token, double lenience) {
  require_lenience("argmax_lenient_accepts", lenience);
  core::require_in("argmax_lenient_accepts", "draft_token", static_cast<std::int64_t>(draft_token), 0,
                   static_cast<std::int64_t>(p.size()) - 1);
  return p[draft_token] >= lenience * *std::max_element(p.probabilities().begin(), p.probabilities().end());
}

}  // namespace specdec::theory
