#include "analysis/core/kernels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "analysis/core/checks.hpp"
#include "analysis/core/compensated_sum.hpp"

namespace specdec::core {
namespace {

template <class Term>
double sum_over_tokens(std::string_view function, const TargetDistribution& p, const DraftDistribution& q, Term term) {
  require_same_size(function, "target distribution", p.size(), "draft distribution", q.size());
  return sum_of_terms(p.size(), [&](std::size_t x) { return term(p[x], q[x]); });
}

AcceptanceRate row_acceptance(std::size_t row, std::span<const double> target, std::span<const double> draft,
                              double tolerance) {
  try {
    return acceptance_rate(TargetDistribution(target, tolerance), DraftDistribution(draft, tolerance));
  } catch (const std::domain_error& error) {
    throw std::domain_error(fmt::format("row {}: {}", row, error.what()));
  }
}

}  // namespace

double overlap(const TargetDistribution& p, const DraftDistribution& q) {
  return sum_over_tokens("overlap", p, q, [](double px, double qx) { return std::min(px, qx); });
}

double rejected_mass(const TargetDistribution& p, const DraftDistribution& q) {
  return sum_over_tokens("rejected_mass", p, q, [](double px, double qx) { return std::max(0.0, qx - px); });
}

double missing_mass(const TargetDistribution& p, const DraftDistribution& q) {
  return sum_over_tokens("missing_mass", p, q, [](double px, double qx) { return std::max(0.0, px - qx); });
}

AcceptanceRate acceptance_rate(const TargetDistribution& p, const DraftDistribution& q) {
  return AcceptanceRate::from_masses(overlap(p, q), rejected_mass(p, q));
}

std::vector<AcceptanceRate> acceptance_rates(std::span<const double> target_rows, std::span<const double> draft_rows,
                                             std::size_t vocab, double tolerance) {
  require_same_size("acceptance_rates", "target_rows", target_rows.size(), "draft_rows", draft_rows.size());
  if (vocab == 0 || target_rows.size() % vocab != 0) {
    throw std::invalid_argument(
        fmt::format("acceptance_rates: {} entries are no whole number of rows of {}", target_rows.size(), vocab));
  }
  std::vector<AcceptanceRate> rates;
  rates.reserve(target_rows.size() / vocab);
  for (std::size_t begin = 0; begin < target_rows.size(); begin += vocab) {
    rates.push_back(
        row_acceptance(begin / vocab, target_rows.subspan(begin, vocab), draft_rows.subspan(begin, vocab), tolerance));
  }
  return rates;
}

double d_lk(const TargetDistribution& p, const DraftDistribution& q) {
  return sum_over_tokens("d_lk", p, q, [](double px, double qx) { return std::abs(px - qx) / 2; });
}

double d_lk_by_lemma(const TargetDistribution& p, const DraftDistribution& q) { return 1 - overlap(p, q); }

bool residual_distribution(const TargetDistribution& p, const DraftDistribution& q, std::span<double> out) {
  require_same_size("residual_distribution", "out", out.size(), "target distribution", p.size());
  const double missing = missing_mass(p, q);
  for (std::size_t x = 0; x < p.size(); ++x) out[x] = missing > 0 ? std::max(0.0, p[x] - q[x]) / missing : p[x];
  return missing > 0;
}

}  // namespace specdec::core
