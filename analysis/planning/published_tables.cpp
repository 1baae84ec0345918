#include "analysis/planning/published_tables.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/theory/acceptance_inversion.hpp"
#include "analysis/theory/optimal_gamma.hpp"
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

std::vector<const PublishedAcceptance*> strict_settings() {
  std::vector<const PublishedAcceptance*> settings;
  for (const PublishedAcceptance& p : published_acceptances()) {
    if (p.lenience == 1) settings.push_back(&p);
  }
  return settings;
}

bool is_same_pair(const PublishedAcceptance& a, const PublishedAcceptance& b) {
  return a.task == b.task && a.target_model == b.target_model && a.draft_model == b.draft_model;
}

std::optional<double> largest_paying_c(double alpha) {
  const double limit = theory::expected_tokens_limit(core::AcceptanceRate(alpha));
  double largest = 0;
  // E is at most its limit, so no larger gamma allows more than the bound.
  for (std::int64_t gamma = 1; (limit / (1 + published_min_gain) - 1) / static_cast<double>(gamma) > largest; ++gamma) {
    largest = std::max(largest, (tokens(alpha, gamma) / (1 + published_min_gain) - 1) / static_cast<double>(gamma));
  }
  return largest > 0 ? std::optional(largest) : std::nullopt;
}

/// The cost of a draft whose lenience is published.
double draft_cost(const PublishedAcceptance& p) {
  if (p.draft_model == "unigram" || p.draft_model == "bigram") return 0;
  if (p.is_of_shipped_pair()) return 0.05;
  return p.draft_model == "T5-small" ? 0.015 : 0.04;
}

/// The same pair at all leniences, from 1 down.
std::vector<const PublishedAcceptance*> leniences_of(const PublishedAcceptance& strict) {
  std::vector<const PublishedAcceptance*> settings;
  for (const PublishedAcceptance& p : published_acceptances()) {
    if (is_same_pair(p, strict) && p.temperature == strict.temperature) settings.push_back(&p);
  }
  std::sort(settings.begin(), settings.end(), [](const auto* a, const auto* b) { return a->lenience > b->lenience; });
  return settings;
}

/// True if l alpha_l can lie on or above the line between its neighbours.
bool can_be_concave(const PublishedAcceptance& above, const PublishedAcceptance& p, const PublishedAcceptance* below) {
  const double low = below == nullptr ? 0 : below->lenience;
  const double low_value = below == nullptr ? 0 : low * (below->alpha - alpha_rounding);
  const double share = (p.lenience - low) / (above.lenience - low);
  const double line = low_value + share * (above.lenience * (above.alpha - alpha_rounding) - low_value);
  return p.lenience * (p.alpha + alpha_rounding) >= line;
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

std::vector<Table3Row> table_3() {
  std::vector<Table3Row> rows;
  for (const PublishedAcceptance* p : strict_settings()) {
    const auto limit = [](double alpha) { return theory::expected_tokens_limit(core::AcceptanceRate(alpha)); };
    rows.push_back({p,
                    tokens(p->alpha, 3),
                    {limit(p->alpha), limit(p->interval.low.alpha()), limit(p->interval.high.alpha())},
                    p->alpha,
                    largest_paying_c(p->alpha)});
  }
  return rows;
}

std::vector<Table3Cost> table_3_costs() {
  std::vector<Table3Cost> rows;
  for (const PublishedAcceptance* p : strict_settings()) {
    for (const double c : {0.01, 0.02, 0.05, 0.1, 0.2, 0.5}) {
      const theory::OptimalGamma best = theory::optimal_gamma(core::AcceptanceRate(p->alpha), c);
      rows.push_back({p, c, best.gamma, best.speedup});
    }
  }
  return rows;
}

std::vector<TemperaturePair> temperature_pairs() {
  std::vector<TemperaturePair> pairs;
  const std::vector<const PublishedAcceptance*> settings = strict_settings();
  for (const PublishedAcceptance* argmax : settings) {
    if (argmax->temperature != 0) continue;
    const auto standard = std::find_if(settings.begin(), settings.end(), [&](const PublishedAcceptance* other) {
      return other->temperature == 1 && is_same_pair(*argmax, *other);
    });
    if (standard == settings.end()) continue;
    pairs.push_back(
        {argmax,
         *standard,
         {argmax->alpha - (*standard)->alpha, argmax->interval.low.alpha() - (*standard)->interval.high.alpha(),
          argmax->interval.high.alpha() - (*standard)->interval.low.alpha()}});
  }
  return pairs;
}

std::vector<Table5Row> table_5() {
  std::vector<Table5Row> rows;
  for (const PublishedAcceptance* strict : strict_settings()) {
    const std::vector<const PublishedAcceptance*> settings = leniences_of(*strict);
    if (settings.size() < 2) continue;
    const double c = draft_cost(*strict);
    double strict_speedup = 0;
    for (std::size_t i = 0; i < settings.size(); ++i) {
      const PublishedAcceptance& p = *settings[i];
      const theory::OptimalGamma best = theory::optimal_gamma(core::AcceptanceRate(p.alpha), c);
      if (i == 0) strict_speedup = best.speedup;
      Table5Row row{&p, c, std::nullopt, best.speedup, best.speedup / strict_speedup, p.lenience * p.alpha, {}};
      if (best.attained()) row.gamma = best.gamma;
      if (i > 0 && p.temperature > 0)
        row.is_concave = can_be_concave(*settings[i - 1], p, i + 1 < settings.size() ? settings[i + 1] : nullptr);
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace specdec::planning
