#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/estimate/acceptance_estimates.hpp"
#include "analysis/estimate/adaptive_drafting.hpp"
#include "analysis/estimate/beta_law.hpp"
#include "analysis/estimate/draft_calibration.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/observe.hpp"
#include "analysis/estimate/replay_estimates.hpp"
#include "analysis/estimate/text_source_tests.hpp"
#include "analysis/planning/position_acceptance.hpp"
#include "analysis/planning/replay_columns.hpp"
#include "traces/position_source.hpp"

/// Everything that a recording says about speculative decoding, in one pass over it.
namespace specdec::planning {

/// A way of sampling that the pair might be run at.
struct SweepSetting {
  enum class Applies { both, target, draft };
  Applies applies = Applies::both;
  core::Standardisation standardisation;
};

/// "both", "target" or "draft".
std::string_view name_of(SweepSetting::Applies applies);

struct TraceAnalysisOptions {
  /// The rule, what to assume, the leniences, the threads.
  estimate::ObserveOptions observe;
  /// Largest gamma to replay, [1, theory::largest_replayed_gamma].
  std::int64_t max_gamma = 16;
  /// Without it every speedup is left out.
  std::optional<core::StepCost> cost;
  /// With a cost: resample the best gamma and judge adaptive drafting. Without, only which gammas cannot be told apart.
  bool judges_drafting = true;
  std::vector<SweepSetting> sweep;
  /// Replay also a text that is not from the target.
  bool force_replay = false;
  estimate::TaskMix mix = estimate::TaskMix::random;
  std::uint64_t seed = 0;
};

struct LenienceEstimate {
  double lenience = 1;
  /// The mean acceptance under the rule when q is multiplied by l; see estimate::Observer.
  estimate::Estimate alpha;
  /// Total variation of a drafted position's token from p, when the residual of Algorithm 1 is kept and when it is
  /// scaled too; theory::LenientResidual's strict and lenient.
  estimate::Estimate distance_strict;
  estimate::Estimate distance_lenient;
};

struct SweepRow {
  SweepSetting setting;
  estimate::AcceptanceEstimate alpha;
  /// The best gamma and its speedup by Theorem 3.8 at alpha: the prefixes are still those of the recorded sampling, so
  /// there is no replay. Nothing without a cost.
  std::optional<std::int64_t> gamma;
  std::optional<double> speedup;
};

/// Exact replay of the recording, once for exact acceptance, else for the lower and the upper ends of its brackets.
struct ReplayAnalysis {
  estimate::ReplayReport lower;
  std::optional<estimate::ReplayReport> upper;
  std::vector<PositionAcceptance> positions;

  const estimate::ReplayReport& highest() const { return upper ? *upper : lower; }
};

/// One gamma by Eq. 1 and Theorem 3.8, where exact replay has nothing to say.
struct IidRow {
  std::int64_t gamma = 1;
  /// Nothing without an exact alpha; no speedup without a cost either.
  std::optional<double> tokens_per_step;
  std::optional<double> speedup;
};

struct TaskAnalysis {
  std::string name;  ///< empty for positions without a task
  std::int64_t positions = 0;
  std::int64_t sequences = 0;
  std::optional<estimate::AcceptanceEstimate> alpha;
  std::optional<estimate::AcceptanceEstimate> alpha_emitted;
  std::optional<estimate::ReplayReport> replay;
  std::optional<estimate::ReplayReport> replay_upper;
  std::vector<IidRow> iid;  ///< gammas 1 to the largest, where there is no replay
  /// Of mean acceptance, in the bins of BetaSummary; empty where that is unknown.
  estimate::BetaSummary::Histogram beta_histogram;
};

struct TraceAnalysis {
  traces::AcceptanceRule rule = traces::AcceptanceRule::rejection;
  std::int64_t positions = 0;
  std::int64_t sequences = 0;
  /// Positions by tier, those that occur.
  std::map<traces::Tier, std::int64_t> tiers;

  /// From the mean acceptance at each prefix, from the emitted tokens, and under every rule that the tier allows.
  std::optional<estimate::AcceptanceEstimate> alpha;
  std::optional<estimate::AcceptanceEstimate> alpha_emitted;
  std::array<std::optional<estimate::AcceptanceEstimate>, 3> alpha_by_rule;
  estimate::TextSourceResult text_source;
  estimate::BetaSummary law;
  /// The total variation distance of the pair, its mean.
  std::optional<estimate::AcceptanceEstimate> d_lk;
  std::optional<estimate::Estimate> kl_target_draft;
  std::optional<estimate::Estimate> kl_draft_target;
  std::optional<estimate::Estimate> target_entropy;
  std::optional<estimate::Estimate> draft_entropy;
  std::optional<estimate::Estimate> top1_agreement;

  std::optional<ReplayAnalysis> replay;
  /// Gammas 1 to the largest, where there is no replay.
  std::vector<IidRow> iid;
  std::vector<LenienceEstimate> lenience;
  /// By the probability of the drafted token, and by the draft's largest probability: see estimate::DraftCalibration.
  /// Where ObserveOptions::confidence_bins asked for it.
  std::vector<estimate::CalibratedBin> calibration;
  std::vector<estimate::CalibratedBin> calibration_by_top;
  std::vector<SweepRow> sweep;
  std::optional<estimate::AdaptiveReport> adaptive;
  std::vector<TaskAnalysis> tasks;
  /// Why something is missing, and what limits what is there.
  std::vector<Note> notes;

  /// The estimate to go by: of `alpha` and `alpha_emitted` the one of more positions, `alpha` where both have as many.
  const estimate::AcceptanceEstimate* best_alpha() const;
};

/// The pass. Feed it every batch of one source in order, then take the result.
///
/// Memory does not depend on the length of the recording, but for one sequence at a time of at most a million tokens.
class TraceAnalyzer {
 public:
  /// @throws std::domain_error if an option is out of range
  TraceAnalyzer(const traces::TraceMetadata& metadata, TraceAnalysisOptions options);
  ~TraceAnalyzer();

  /// The next batch. What it says, for others who follow the same pass; valid until the next call.
  /// @throws estimate::RuleUndefined if the rule has no meaning for what was recorded
  /// @throws traces::FileError where a row is no distribution
  const estimate::Observations& add(const traces::PositionSource& source, const traces::PositionBatch& batch);

  /// Ends the recording; call it once.
  /// @param task_names  the source's metadata, complete now
  TraceAnalysis finish(const std::vector<std::string>& task_names);

  /// The batch as it was replayed; valid as what add() gave. Null where replay means nothing for this recording.
  const ReplayColumns* replayed() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Reads a source to its end.
TraceAnalysis analyse(traces::PositionSource& source, const TraceAnalysisOptions& options);

}  // namespace specdec::planning
