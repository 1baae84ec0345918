#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/planning/measured_preference.hpp"
#include "analysis/planning/regret.hpp"
#include "analysis/theory/optimal_gamma.hpp"

/// The number of tokens to draft: the closed forms of analysis/theory combined into one answer.
namespace specdec::planning {

struct PlanQuestion {
  core::AcceptanceProfile acceptance;
  /// The largest gamma that the acceptance was measured at, >= 1, if that is not the number of its positions.
  std::optional<std::int64_t> measured_at = {};
  /// The smallest gamma that it was measured at.
  std::int64_t measured_from = 1;
  /// False if the measurements are not a survival function, so that they give no rate for further drafts.
  bool monotone = true;
  SearchSpace space = {};
  /// Draft operations per token / target operations per token, dimensionless, >= 0.
  double c_hat = 0;
  /// Relative loss of speedup up to which a gamma counts as near-optimal, in (0, 1).
  double tolerance = 0.01;
  /// Largest relative loss of speedup, by the reading for which it is smallest, at which the best gamma up to the
  /// longest measured one, or plain decoding, is preferred to one beyond it, [0, 1).
  double prefer_measured = measured_preference;
  /// Other profiles that extend the same measurement to all gammas.
  std::vector<core::AcceptanceProfile> readings = {};
  /// The ends of its 95% interval by the sample's size, of which the outermost count at each gamma.
  std::vector<core::AcceptanceProfile> ci95 = {};
  /// The gamma in use, in [0, min(space.max_gamma, largest_known_gamma)].
  std::optional<std::int64_t> deployed = {};
  /// Largest acceptable loss of the gamma in use relative to the recommended one, in [0, 1].
  std::optional<double> max_regret = {};
  /// Length of a generation, >= 1.
  std::optional<std::int64_t> tokens = {};
  /// The range of the true rate, if `acceptance` is a single rate.
  std::optional<RateInterval> interval = {};
};

/// The figures of one gamma.
struct PlanRow {
  std::int64_t gamma;
  double expected_tokens;
  double speedup;
  double operations_factor;
  double memory_access_factor;
  /// True if the acceptance or the cost of verification lies beyond what was measured.
  bool extrapolated;
  /// For a generation of `tokens` tokens; empty if not requested or if it would take too long to compute.
  std::optional<double> finite_speedup;
  std::optional<double> finite_steps;
  /// Over the interval of rates, if there is one, relative to the best of all gammas, including those above max_gamma.
  std::optional<double> worst_regret;
};

/// The reason why a gamma is recommended.
enum class Basis {
  optimum,
  share_of_limit,  ///< there is no optimum; the smallest gamma within the tolerance of the supremum
  max_gamma,       ///< the optimum lies beyond max_gamma; this is the best gamma up to it
  measured,        ///< the best up to the longest measured one: nothing is known beyond, or too little gained
  sure,            ///< the best beyond it that surely gains, where the best of all does not
  minimax_regret,  ///< smallest worst regret over the interval of rates
  not_worth_it,    ///< plain decoding is fastest, except for unmeasured gammas that surely gain too little
  none,            ///< the speedup grows without bound
};

/// A gamma at which the speedup comes within a share of its supremum.
struct ShareOfLimit {
  double share;
  std::int64_t gamma;
};

/// The gamma in use, compared with the best of all gammas that the acceptance covers, including those above max_gamma.
struct DeployedGamma {
  std::int64_t gamma;
  double speedup;
  double regret;
  std::optional<double> worst_regret;  ///< over the interval of rates
  /// The largest loss relative to the recommended gamma by one reading or at one end of the interval; 0 if there is
  /// none, as for that gamma itself. The largest regret if nothing is recommended.
  double behind_recommended;
  bool exceeds_max_regret;  ///< true if behind_recommended does
};

struct FinitePlan {
  std::int64_t tokens;
  /// The best gamma of the rows, with the speedup and the steps of its generation.
  std::int64_t gamma;
  double speedup;
  double expected_steps;
  std::int64_t searched_up_to;  ///< all rows up to this gamma were computed
  bool complete;                ///< all rows were computed
};

struct IntervalPlan {
  /// Among the allowed gammas, relative to all that the acceptance covers.
  MinimaxGamma minimax;
  bool best_lies_above;       ///< true if max_gamma excludes the best gamma of some rate
  std::int64_t best_at_low;   ///< no_max_gamma if there is none
  std::int64_t best_at_high;  ///< no_max_gamma if there is none
  std::vector<BestStretch> best;
  bool all_listed;  ///< false if `best` stops before the end of the interval
};

struct Plan {
  /// True if some gamma is faster than plain decoding (for an interval, at some rate in it), and plain decoding is not
  /// preferred because of what was measured.
  bool worth_it;
  /// Gammas above this one are neither recommended nor shown.
  std::int64_t max_gamma;
  std::optional<core::AcceptanceRate> break_even;  ///< empty if no rate pays
  theory::OptimalGamma best;                       ///< among the allowed gammas
  theory::OptimalGamma unrestricted;               ///< among all that the acceptance covers
  double least_best_speedup;                       ///< that of `best` by the reading that gives the least
  std::optional<PlanRow> best_row;                 ///< row of `best` if it is attained
  std::optional<double> gamma_real;                ///< for one rate and the paper's costs, if max_gamma does not bind
  std::optional<double> oracle_speedup;            ///< for the paper's costs; infinity if unbounded
  Basis basis;
  std::optional<PlanRow> recommended;         ///< empty if the basis is none
  std::vector<theory::GammaRange> near_best;  ///< within the tolerance of `best`
  std::vector<ShareOfLimit> shares_of_limit;  ///< if no optimum is attained and the supremum is finite
  std::vector<PlanRow> rows;                  ///< in order of gamma
  std::optional<DeployedGamma> deployed;
  std::optional<FinitePlan> finite;
  std::optional<IntervalPlan> interval;

  /// True if the recommendation lies within what was measured, is a surer gamma beyond, or plain decoding, and the best
  /// gamma, beyond the measurements, surely gains too little.
  bool prefers_measured() const {
    const bool by_measurement = basis == Basis::measured || basis == Basis::sure || prefers_plain();
    return by_measurement && (!best.attained() || best.gamma != recommended->gamma);
  }
  /// True if the recommendation is plain decoding.
  bool prefers_plain() const {
    return basis == Basis::not_worth_it && !interval && (!best.attained() || best.gamma > 0);
  }
};

/// The largest gamma that the acceptance covers: no_max_gamma, or the largest measured gamma if the measurements
/// are not a survival function or their last conditional rate is 1. Such a rate, held forever, would make every draft
/// accepted.
std::int64_t largest_known_gamma(const PlanQuestion& question);

/// True if a row of this gamma goes beyond the largest gamma that the acceptance was measured at.
bool beyond_measured(const PlanQuestion& question, std::int64_t gamma);
/// True if it drafts less than the smallest gamma that the acceptance was measured at.
bool below_measured(const PlanQuestion& question, std::int64_t gamma);

/// Answers the question; the figures of an interval of rates are those of `acceptance`, usually its middle.
///
/// The rows are all gammas up to max_gamma if that is given. Otherwise they are all gammas up to a little beyond the
/// best and the deployed one; if these are large, round numbers and the neighbours of the relevant gammas.
///
/// Source:   docs/theory.md#optimal-gamma
/// @throws std::domain_error if a value is outside the range stated beside it
Plan plan(const PlanQuestion& question);

/// The figures of the gamma in use beside a recommended one:
///
///   behind_recommended = max(0, max over readings and ends of 1 - S(deployed) / S(recommended))
///
/// @param question     with a deployed gamma
/// @param recommended  empty if no gamma is
DeployedGamma judge_deployed(const PlanQuestion& question, std::optional<std::int64_t> recommended);

/// The single rate that would give the same accepted drafts per examined draft as the measured positions:
///
///   (E[K | n] - 1) / E[K | n - 1]
///
/// the maximum-likelihood estimate from n positions; the rate itself if the profile is a single rate.
/// Source:   docs/theory.md#acceptance-inversion
core::AcceptanceRate pooled_rate(const core::AcceptanceProfile& acceptance);

}  // namespace specdec::planning
