#include "analysis/planning/published_tables.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"

namespace specdec::planning {
namespace {

/// Rounding of alphas and c, which are printed with two digits, and of speeds, which have one.
constexpr double alpha_rounding = 0.005, speed_rounding = 0.05;

double tokens(double alpha, std::int64_t gamma) { return theory::expected_tokens(core::AcceptanceRate(alpha), gamma); }

/// `value(alpha, c, speed)` that grows with alpha and falls with c and with speed: its extremes lie at corners.
template <class Value>
RoundedNumber over_rounding(const PublishedAcceptance& p, const Value& value) {
  const auto& [gamma, c, speed, expected] = *p.measured;
  return {value(p.alpha, c, speed), value(p.alpha - alpha_rounding, c + alpha_rounding, speed + speed_rounding),
          value(p.alpha + alpha_rounding, std::max(0.0, c - alpha_rounding), speed - speed_rounding)};
}

Table2Row table_2_row(const PublishedAcceptance& p) {
  const auto& [gamma, c, speed, expected] = *p.measured;
  const double drafts = static_cast<double>(gamma);
  const auto computed = [&, gamma = gamma](double alpha, double draft_cost) {
    return theory::walltime_improvement(core::AcceptanceRate(alpha), gamma, draft_cost);
  };
  // Its reciprocal falls if the speed falls: the extremes swap.
  const RoundedNumber ratio = over_rounding(
      p, [&](double alpha, double draft_cost, double measured) { return computed(alpha, draft_cost) / measured; });
  Table2Row row{
      &p,
      compare({speed, speed_rounding}, computed(p.alpha, c), computed(p.alpha - alpha_rounding, c + alpha_rounding),
              computed(p.alpha + alpha_rounding, std::max(0.0, c - alpha_rounding))),
      {1 / ratio.value - 1, 1 / ratio.highest - 1, 1 / ratio.lowest - 1},
      over_rounding(p,
                    [&, gamma = gamma](double alpha, double draft_cost, double measured) {
                      return tokens(alpha, gamma) / measured - draft_cost * drafts;
                    }),
      over_rounding(p, [&, gamma = gamma](double alpha, double,
                                          double measured) { return (tokens(alpha, gamma) / measured - 1) / drafts; }),
      std::nullopt};
  const double needed = speed * (1 + c * drafts);
  if (needed <= drafts + 1) row.alpha = theory::alpha_from_acceptance_length(needed, gamma).alpha();
  return row;
}

}  // namespace

std::vector<Table2Row> table_2() {
  std::vector<Table2Row> rows;
  for (const PublishedAcceptance& p : published_acceptances()) {
    if (p.measured) rows.push_back(table_2_row(p));
  }
  return rows;
}

Table2Errors errors_of(const std::vector<Table2Row>& rows) {
  Table2Errors errors{};
  const double share = 1 / static_cast<double>(rows.size());
  double squares = 0, logarithms = 0;
  for (const Table2Row& row : rows) {
    errors.mean += share * row.error.value;
    squares += share * row.error.value * row.error.value;
    logarithms += share * std::log1p(row.error.value);
    errors.largest = std::max(errors.largest, std::abs(row.error.value));
  }
  errors.root_mean_square = std::sqrt(squares);
  errors.geometric_ratio = std::exp(logarithms);
  return errors;
}

}  // namespace specdec::planning
