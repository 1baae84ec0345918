#include "analysis/planning/published.hpp"

#include <algorithm>

#include "analysis/core/checks.hpp"
#include "analysis/planning/published_acceptance.hpp"
#include "analysis/theory/operations.hpp"
#include "analysis/theory/optimal_gamma.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"

namespace specdec::planning {
namespace {

// ---------------------------------------------------------------------------------------- what the paper prints

struct Table1Print {
  double alpha;
  std::int64_t gamma;
  double operations;
  double speed;
};
constexpr Table1Print table_1_prints[] = {
    {0.6, 2, 1.53, 1.96}, {0.7, 3, 1.58, 2.53}, {0.8, 2, 1.23, 2.44},
    {0.8, 5, 1.63, 3.69}, {0.9, 2, 1.11, 2.71}, {0.9, 10, 1.60, 6.86},
};

/// Section 3.6; alpha as in Table 3, translation at temperature 0.
constexpr double bigram_alpha = 0.20;
constexpr std::int64_t bigram_gamma = 3;
constexpr Printed bigram_speedup = {1.25, 0.005};

struct LeniencePrint {
  double lenience;
  double alpha;
  Printed speedup;
};
constexpr double lenience_c = 0.015;
/// A.5 with Table 5, row T5-small. No gamma is printed.
constexpr LeniencePrint stochastic_prints[] = {
    {1.0, 0.62, {2.5, 0.05}}, {0.5, 0.71, {3.1, 0.05}}, {0.3, 0.76, {3.6, 0.05}}, {0.1, 0.84, {5.0, 0.5}}};
/// A.5, last paragraph.
constexpr std::int64_t argmax_gamma = 8;
constexpr LeniencePrint argmax_prints[] = {
    {1.0, 0.75, {3.3, 0.05}}, {0.5, 0.75, {3.3, 0.05}}, {0.3, 0.80, {3.9, 0.05}}, {0.1, 0.87, {4.9, 0.05}}};

constexpr double two_digits = 0.005;
constexpr double three_digits = 0.0005;

// ------------------------------------------------------------------------------------------------------ recomputed

double speedup(double alpha, std::int64_t gamma, double c) {
  return theory::walltime_improvement(core::AcceptanceRate(alpha), gamma, c);
}

theory::OptimalGamma best(double alpha, double c) { return theory::optimal_gamma(core::AcceptanceRate(alpha), c); }

/// `value(alpha, c)` grows with alpha and falls with c, so its extremes over the rounding of both lie at corners.
template <class Value>
Comparison compare_over_rounding(const Printed& printed, const Printed& alpha, const Printed& c, const Value& value) {
  return compare(printed, value(alpha.value, c.value), value(alpha.value - alpha.half_unit, c.value + c.half_unit),
                 value(alpha.value + alpha.half_unit, std::max(0.0, c.value - c.half_unit)));
}

}  // namespace

Comparison compare(const Printed& printed, double computed, double lowest, double highest) {
  core::require_in("compare", "computed", computed, lowest, highest);
  const double slack = 1e-12 * printed.value;  // 1.5 +- 0.05 is not exact in binary
  const double from = printed.value - printed.half_unit - slack;
  const double to = printed.value + printed.half_unit + slack;
  const Agreement agreement = from <= computed && computed <= to ? Agreement::at_printed_inputs
                              : lowest <= to && from <= highest  ? Agreement::within_input_rounding
                                                                 : Agreement::cannot_follow;
  return {printed.value, printed.half_unit, computed, lowest, highest, agreement};
}

std::vector<Table1Row> table_1() {
  std::vector<Table1Row> rows;
  for (const Table1Print& p : table_1_prints) {
    const double operations = theory::operations_factor(core::AcceptanceRate(p.alpha), p.gamma, 0.0);
    const double speed = speedup(p.alpha, p.gamma, 0.0);
    rows.push_back({p.alpha, p.gamma, compare({p.operations, two_digits}, operations, operations, operations),
                    compare({p.speed, two_digits}, speed, speed, speed)});
  }
  return rows;
}

std::vector<Table4Row> table_4() {
  std::vector<Table4Row> rows;
  for (const PublishedAcceptance& p : published_acceptances()) {
    if (!p.measured) continue;
    const auto& [gamma, c, speed, expected] = *p.measured;
    const auto value = [gamma = gamma](double alpha, double draft_cost) { return speedup(alpha, gamma, draft_cost); };
    const theory::OptimalGamma optimum = best(p.alpha, c);
    rows.push_back({p.task, p.draft_model, p.temperature, gamma, p.alpha, c,
                    compare_over_rounding({expected, 0.05}, {p.alpha, two_digits}, {c, two_digits}, value),
                    optimum.gamma, optimum.speedup});
  }
  return rows;
}

BigramFigure bigram_figure() {
  const auto value = [](double alpha, double c) { return speedup(alpha, bigram_gamma, c); };
  return {bigram_alpha, bigram_gamma, 0.0,
          compare_over_rounding(bigram_speedup, {bigram_alpha, two_digits}, {0.0}, value),
          theory::expected_tokens_limit(core::AcceptanceRate(bigram_alpha))};
}

std::vector<LenienceRow> stochastic_lenience() {
  std::vector<LenienceRow> rows;
  for (const LeniencePrint& p : stochastic_prints) {
    const auto value = [](double alpha, double c) { return best(alpha, c).speedup; };
    rows.push_back({p.lenience, p.alpha, lenience_c, std::nullopt, best(p.alpha, lenience_c).gamma,
                    compare_over_rounding(p.speedup, {p.alpha, two_digits}, {lenience_c, three_digits}, value)});
  }
  return rows;
}

std::vector<LenienceRow> argmax_lenience() {
  std::vector<LenienceRow> rows;
  for (const LeniencePrint& p : argmax_prints) {
    const auto value = [](double alpha, double c) { return speedup(alpha, argmax_gamma, c); };
    rows.push_back({p.lenience, p.alpha, lenience_c, argmax_gamma, argmax_gamma,
                    compare_over_rounding(p.speedup, {p.alpha, two_digits}, {lenience_c, three_digits}, value)});
  }
  return rows;
}

}  // namespace specdec::planning
