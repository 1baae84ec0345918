#include "analysis/theory/optimal_gamma.hpp"

#include <algorithm>
#include <boost/math/special_functions/log1p.hpp>
#include <cmath>

#include "analysis/core/checks.hpp"
#include "analysis/theory/extended.hpp"

namespace specdec::theory {
namespace {

constexpr std::int64_t largest_practical_gamma = std::int64_t{1} << 53;

using Piece = core::StepCost::Piece;

// Differences between two speedups below this are ignored.
long double four_ulp(long double speedup) {
  const auto rounded = static_cast<double>(speedup);
  return 4 * (static_cast<long double>(std::nextafter(rounded, std::numeric_limits<double>::infinity())) - rounded);
}

// The first gamma in [low, high) for which the predicate fails, else high; the predicate holds up to some gamma.
template <class Predicate>
std::int64_t first_failure(std::int64_t low, std::int64_t high, Predicate holds) {
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (holds(middle)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// The same in steps that double from low on, since most optima are small.
template <class Predicate>
std::int64_t first_failure_from(std::int64_t low, std::int64_t high, Predicate holds) {
  constexpr std::int64_t largest_step = std::numeric_limits<std::int64_t>::max() / 2;
  for (std::int64_t step = 1; low < high; step = 2 * std::min(step, largest_step)) {
    const std::int64_t probe = low + std::min(step, high - low) - 1;
    if (!holds(probe)) return first_failure(low, probe, holds);
    low = probe + 1;
  }
  return high;
}

// survival(gamma + 1) and E[K | gamma] of a single rate, by the exponential of double, which takes a tenth of the time.
struct RoughTokens {
  long double survival;
  long double expected;
};

class Speedup {
 public:
  Speedup(const core::AcceptanceProfile& acceptance, const core::StepCost& cost)
      : acceptance_(acceptance), cost_(cost) {}

  // True if two speedups, or the sides of a comparison, differ by more than the error of RoughTokens, 1e-13 of each.
  static bool clearly_differ(long double a, long double b) { return std::abs(a - b) > 1e-11L * (a + b); }

  // Empty where the error could be larger.
  std::optional<RoughTokens> roughly(std::int64_t gamma) const {
    const auto exponent = static_cast<double>((static_cast<long double>(gamma) + 1) * acceptance_.tail().log_alpha());
    const double rejection = acceptance_.tail().rejection();
    if (acceptance_.measured_positions() > 0 || rejection == 0 || !(exponent > -100)) return std::nullopt;
    return RoughTokens{std::exp(exponent), -std::expm1(exponent) / static_cast<long double>(rejection)};
  }

  long double at(std::int64_t gamma) const {
    return extended::expected_tokens(acceptance_, gamma) / cost_.extended(gamma);
  }

  // True if gamma + 1 is faster than gamma, both on one piece: survival(gamma + 1) cost(gamma) > slope E[K]. If
  // most drafts survive, both sides nearly cancel, and the complements are compared instead.
  bool rises(const Piece& piece, std::int64_t gamma) const {
    const long double cost = piece.cost_at_first + piece.slope * static_cast<long double>(gamma - piece.first);
    if (const std::optional<RoughTokens> rough = roughly(gamma)) {
      const long double gained = rough->survival * cost, paid = piece.slope * rough->expected;
      if (clearly_differ(gained, paid)) return gained > paid;
    }
    const long double lost = extended::one_minus_survival(acceptance_, gamma + 1);
    if (lost > 0.5L) {
      return extended::survival(acceptance_, gamma + 1) * cost >
             piece.slope * extended::expected_tokens(acceptance_, gamma);
    }
    const long double cost_at_minus_one = piece.cost_at_first - piece.slope * static_cast<long double>(piece.first + 1);
    return cost_at_minus_one + piece.slope * extended::expected_waste(acceptance_, gamma) > lost * cost;
  }

  // The smallest best gamma of a piece; `end` if the speedup still rises there.
  std::int64_t best_of(const Piece& piece, std::int64_t end) const {
    return first_failure_from(piece.first, end, [&](std::int64_t gamma) { return rises(piece, gamma); });
  }

  // True if the speedup of gamma is `best` up to 4 ulp.
  bool ties(std::int64_t gamma, long double best) const {
    const std::optional<RoughTokens> rough = roughly(gamma);
    if (rough && clearly_differ(rough->expected / cost_.extended(gamma), best)) return false;
    return std::abs(at(gamma) - best) < four_ulp(best);
  }

  // The supremum over the last piece if the speedup never stops rising; empty if it does.
  std::optional<long double> supremum_of_endless_rise(const Piece& piece) const {
    const std::int64_t beyond = acceptance_.measured_positions();
    const long double alive = acceptance_.survival(beyond) * static_cast<long double>(acceptance_.tail().alpha());
    if (alive == 0) return std::nullopt;
    if (piece.slope == 0) return extended::expected_tokens_limit(acceptance_) / piece.cost_at_first;
    if (acceptance_.tail().rejection() == 0 && rises(piece, largest_practical_gamma)) return alive / piece.slope;
    return std::nullopt;
  }

 private:
  const core::AcceptanceProfile& acceptance_;
  const core::StepCost& cost_;
};

GammaRange ties_of(const Speedup& speedup, std::int64_t gamma, long double best) {
  return {gamma > 0 && speedup.ties(gamma - 1, best) ? gamma - 1 : gamma,
          speedup.ties(gamma + 1, best) ? gamma + 1 : gamma};
}

// delta - ln(1 + delta) = d for d > 0. Newton's method from a start within a few percent of the root.
long double solve_log_excess(long double d) {
  const long double root = std::sqrt(2 * d);
  long double delta = d < 1 ? root * (1 + root / 3) : d + std::log1p(d + root);
  for (int i = 0; i < 30; ++i) {
    const long double step = (-boost::math::log1pmx(delta) - d) * (1 + delta) / delta;
    delta -= step;
    if (std::abs(step) <= delta * std::numeric_limits<long double>::epsilon()) break;
  }
  return delta;
}

}  // namespace

OptimalGamma optimal_gamma(const core::AcceptanceProfile& acceptance, const core::StepCost& cost) {
  const Speedup speedup(acceptance, cost);
  std::int64_t best = 0;
  long double best_speedup = 1;
  auto pieces = cost.pieces();
  const auto supremum = speedup.supremum_of_endless_rise(pieces.back());
  if (supremum) pieces.pop_back();
  for (const Piece& piece : pieces) {
    const std::int64_t candidate = speedup.best_of(piece, std::min(piece.last, largest_practical_gamma));
    const long double candidate_speedup = speedup.at(candidate);
    if (candidate_speedup > best_speedup) {
      best = candidate;
      best_speedup = candidate_speedup;
    }
  }
  if (supremum && *supremum > best_speedup) {
    return {OptimumKind::unbounded,
            largest_practical_gamma,
            static_cast<double>(*supremum),
            {largest_practical_gamma, GammaRange::unbounded}};
  }
  if (best == largest_practical_gamma && !supremum && speedup.rises(pieces.back(), best)) {
    return {OptimumKind::too_large, best, static_cast<double>(best_speedup), {best, GammaRange::unbounded}};
  }
  const GammaRange ties = ties_of(speedup, best, best_speedup);
  return {OptimumKind::attained, ties.first, static_cast<double>(best_speedup), ties};
}

OptimalGamma optimal_gamma(const core::AcceptanceProfile& acceptance, double c) {
  return optimal_gamma(acceptance, core::StepCost{.c = c});
}

std::optional<RealOptimum> optimal_gamma_real(const core::AcceptanceRate& rate, double c) {
  core::require_in("optimal_gamma_real", "c", c, 0, core::largest_double);
  if (rate.alpha() == 0 || c >= 1) return RealOptimum{};
  if (c == 0 || rate.rejection() == 0) return std::nullopt;
  const long double log_reciprocal = -rate.log_alpha();
  if (log_reciprocal * rate.alpha() <= static_cast<long double>(rate.rejection()) * c) return RealOptimum{};
  const long double delta = solve_log_excess(log_reciprocal * (1 - static_cast<long double>(c)) / c);
  const long double gamma = std::log1p(delta) / log_reciprocal - 1;
  const long double speedup = log_reciprocal / (c * static_cast<long double>(rate.rejection()) * (1 + delta));
  return RealOptimum{static_cast<double>(std::max(0.0L, gamma)), static_cast<double>(std::max(1.0L, speedup))};
}

std::optional<std::int64_t> gamma_reaching_share(const core::AcceptanceRate& rate, double share) {
  core::require_in("gamma_reaching_share", "share", share, 0, std::nextafter(1.0, 0.0));
  if (share == 0 || rate.alpha() == 0) return 0;
  if (rate.rejection() == 0) return std::nullopt;
  const long double tokens = std::log1p(-static_cast<long double>(share)) / rate.log_alpha();
  if (tokens > static_cast<long double>(largest_practical_gamma)) return std::nullopt;
  // The answer is ceil(tokens) - 1; if rounding made tokens an integer, or almost one, the smaller of the amount
  // reached and the amount left decides.
  const auto count = static_cast<std::int64_t>(tokens);
  const bool reached = share < 0.5 ? rate.one_minus_power(count) >= share : rate.power(count) <= 1 - share;
  return reached ? count - 1 : count;
}

double tie_cost(const core::AcceptanceRate& rate, std::int64_t gamma) {
  core::require_in("tie_cost", "gamma", gamma, 1, core::largest_integer);
  const auto drafts = static_cast<long double>(gamma);
  const long double survival = extended::power(rate, drafts);
  return static_cast<double>(survival / (survival + rate.rejection() * extended::power_sum_derivative(rate, drafts)));
}

}  // namespace specdec::theory
