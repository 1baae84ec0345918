#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "analysis/core/acceptance_profile.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/planning/measured_preference.hpp"
#include "analysis/planning/regret.hpp"
#include "analysis/theory/optimal_gamma.hpp"

/// How many tokens to draft: the closed forms of analysis/theory put together into one answer.
namespace specdec::planning {

struct PlanQuestion {
  core::AcceptanceProfile acceptance;
  /// The largest gamma that the acceptance was measured at, >= 1, where that is not the number of its positions.
  std::optional<std::int64_t> measured_at = {};
  /// The smallest gamma that it was measured at.
  std::int64_t measured_from = 1;
  /// False where the measurements are no survival function, so that they give no rate to go on with.
  bool monotone = true;
  SearchSpace space = {};
  /// Draft operations per token / target operations per token, dimensionless, >= 0.
  double c_hat = 0;
  /// Relative loss of speedup up to which a gamma counts as near-optimal, in (0, 1).
  double tolerance = 0.01;
  /// Largest relative loss of speedup, by the reading that has it smallest, at which the best gamma that was measured,
  /// or plain decoding, is preferred to one beyond, [0, 1).
  double prefer_measured = measured_preference;
  /// Other profiles that carry the same measurement to all gammas.
  std::vector<core::AcceptanceProfile> readings = {};
  /// The gamma in use, in [0, min(space.max_gamma, largest_known_gamma)].
  std::optional<std::int64_t> deployed = {};
  /// Largest acceptable loss of the gamma in use to the recommended one, in [0, 1].
  std::optional<double> max_regret = {};
  /// Length of a generation, >= 1.
  std::optional<std::int64_t> tokens = {};
  /// The rates that the single rate `acceptance` may really have.
  std::optional<RateInterval> interval = {};
};

/// What one gamma means.
struct PlanRow {
  std::int64_t gamma;
  double expected_tokens;
  double speedup;
  double operations_factor;
  double memory_access_factor;
  /// The acceptance or the cost of verification lies beyond what was measured.
  bool extrapolated;
  /// Of a generation of `tokens` tokens; nothing where it was not asked for or would take too long to compute.
  std::optional<double> finite_speedup;
  std::optional<double> finite_steps;
  /// Over the interval of rates, where there is one, against the best of all gammas, also those above max_gamma.
  std::optional<double> worst_regret;
};

/// Why a gamma is recommended.
enum class Basis {
  optimum,
  share_of_limit,  ///< nothing is optimal; the smallest gamma within the tolerance of the supremum
  max_gamma,       ///< the optimum lies beyond max_gamma, this is the best one up to it
  measured,        ///< the best one that was measured: nothing is known beyond, or too little is gained there
  minimax_regret,  ///< least worst regret over the interval of rates
  not_worth_it,    ///< plain decoding is fastest, but for gammas that were not measured and surely gain too little
  none,            ///< the speedup grows without bound
};

/// A gamma at which the speedup comes within a share of its supremum.
struct ShareOfLimit {
  double share;
  std::int64_t gamma;
};

/// The gamma in use, against the best of all gammas that the acceptance speaks of, also those above max_gamma.
struct DeployedGamma {
  std::int64_t gamma;
  double speedup;
  double regret;
  std::optional<double> worst_regret;  ///< over the interval of rates
  /// The largest loss to the recommended gamma by one reading or at one end of the interval; 0 where none is larger, as
  /// for that gamma itself. The largest regret where nothing is recommended.
  double behind_recommended;
  bool exceeds_max_regret;  ///< behind_recommended does
};

struct FinitePlan {
  std::int64_t tokens;
  /// The best gamma of the rows; its generation's speedup and steps.
  std::int64_t gamma;
  double speedup;
  double expected_steps;
  std::int64_t searched_up_to;  ///< all rows up to this gamma were computed
  bool complete;                ///< all rows were computed
};

struct IntervalPlan {
  /// Among the gammas allowed, against all that the acceptance speaks of.
  MinimaxGamma minimax;
  bool best_lies_above;       ///< max_gamma keeps out the best gamma of some rate
  std::int64_t best_at_low;   ///< no_max_gamma where none is attained
  std::int64_t best_at_high;  ///< no_max_gamma where none is attained
  std::vector<BestStretch> best;
  bool all_listed;  ///< false where `best` stops before the end of the interval
};

struct Plan {
  /// Some gamma is faster than plain decoding, for an interval at some rate of it; and plain decoding is not preferred
  /// for what was measured.
  bool worth_it;
  /// Gammas above this one are neither recommended nor shown.
  std::int64_t max_gamma;
  std::optional<core::AcceptanceRate> break_even;  ///< nothing where no rate pays
  theory::OptimalGamma best;                       ///< among the gammas allowed
  theory::OptimalGamma unrestricted;               ///< among all that the acceptance speaks of
  double least_best_speedup;                       ///< of `best` by the reading that says least of it
  std::optional<PlanRow> best_row;                 ///< of `best` where it is attained
  std::optional<double> gamma_real;      ///< for one rate and the paper's costs, where max_gamma does not bind
  std::optional<double> oracle_speedup;  ///< for the paper's costs; infinity where it has no bound
  Basis basis;
  std::optional<PlanRow> recommended;         ///< nothing where the basis is none
  std::vector<theory::GammaRange> near_best;  ///< within the tolerance of `best`
  std::vector<ShareOfLimit> shares_of_limit;  ///< where no optimum is attained and the supremum is finite
  std::vector<PlanRow> rows;                  ///< in order of gamma
  std::optional<DeployedGamma> deployed;
  std::optional<FinitePlan> finite;
  std::optional<IntervalPlan> interval;

  /// What is recommended was measured or is plain decoding, and the best gamma, beyond what was measured, surely gains
  /// too little.
  bool prefers_measured() const {
    const bool by_measurement = basis == Basis::measured || prefers_plain();
    return by_measurement && (!best.attained() || best.gamma != recommended->gamma);
  }
  /// It is plain decoding.
  bool prefers_plain() const {
    return basis == Basis::not_worth_it && !interval && (!best.attained() || best.gamma > 0);
  }
};

/// The largest gamma that the acceptance speaks of: no_max_gamma, but the largest gamma measured where the measurements
/// are no survival function or their last conditional rate is 1. Such a rate, held for ever, would make every draft
/// accepted.
std::int64_t largest_known_gamma(const PlanQuestion& question);

/// Whether a row of this gamma goes beyond what the acceptance was measured at, to larger gammas.
bool beyond_measured(const PlanQuestion& question, std::int64_t gamma);
/// Whether it drafts less than the acceptance was measured at.
bool below_measured(const PlanQuestion& question, std::int64_t gamma);

/// Answers the question; the figures of an interval of rates are those of `acceptance`, usually its middle.
///
/// The rows are all gammas up to max_gamma where that is given. Otherwise they are all gammas up to a little beyond the
/// best and the deployed one; where these are large, round numbers and the neighbours of those that matter.
///
/// Source:   docs/theory.md#optimal-gamma
/// @throws std::domain_error if a value is outside the range stated beside it
Plan plan(const PlanQuestion& question);

/// What the gamma in use means beside a recommended one:
///
///   behind_recommended = max(0, max over readings and ends of 1 - S(deployed) / S(recommended))
///
/// @param question     with a deployed gamma
/// @param recommended  nothing where no gamma is
DeployedGamma judge_deployed(const PlanQuestion& question, std::optional<std::int64_t> recommended);

/// The one rate that would give the same accepted drafts per draft looked at as the measured positions do:
///
///   (E[K | n] - 1) / E[K | n - 1]
///
/// the maximum-likelihood estimate from n positions; the rate itself where the profile is one rate.
/// Source:   docs/theory.md#acceptance-inversion
core::AcceptanceRate pooled_rate(const core::AcceptanceProfile& acceptance);

}  // namespace specdec::planning
