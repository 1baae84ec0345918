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
#include "analysis/core/state_archive.hpp"
#include "analysis/core/step_cost.hpp"
#include "analysis/estimate/acceptance_estimates.hpp"
#include "analysis/estimate/adaptive_drafting.hpp"
#include "analysis/estimate/draft_calibration.hpp"
#include "analysis/estimate/estimate.hpp"
#include "analysis/estimate/observe.hpp"
#include "analysis/estimate/replay_estimates.hpp"
#include "analysis/estimate/text_source_tests.hpp"
#include "analysis/planning/position_acceptance.hpp"
#include "analysis/planning/replay_columns.hpp"
#include "traces/position_source.hpp"

/// All results for speculative decoding that a recording gives, in one pass over it.
namespace specdec::planning {

/// Sampling settings at which the pair might be run.
struct SweepSetting {
  enum class Applies { both, target, draft };
  Applies applies = Applies::both;
  core::Standardisation standardisation;

  template <class Archive>
  void exchange(Archive& archive) {
    core::Standardisation& s = standardisation;
    archive(applies, s.temperature, s.top_k, s.top_p, s.min_p, s.temperature_last);
  }
};

constexpr SweepSetting::Applies last_enumerator(SweepSetting::Applies) { return SweepSetting::Applies::draft; }

/// "both", "target" or "draft".
std::string_view name_of(SweepSetting::Applies applies);

struct TraceAnalysisOptions {
  /// The rule, what to assume, the leniences, the threads.
  estimate::ObserveOptions observe;
  /// Largest gamma to replay, [1, theory::largest_replayed_gamma].
  std::int64_t max_gamma = 16;
  /// If empty, there are no speedups.
  std::optional<core::StepCost> cost;
  /// With a cost: judge adaptive drafting.
  bool judges_drafting = true;
  std::vector<SweepSetting> sweep;
  /// Whether somebody asked for the leniences and for the sweep: if not, they may be missing without a note.
  bool asked_for_lenience = true;
  bool asked_for_sweep = true;
  /// Also replay a text that is not from the target.
  bool force_replay = false;
};

struct LenienceEstimate {
  double lenience = 1;
  /// The mean acceptance under the rule with q multiplied by l; see estimate::Observer.
  estimate::Estimate alpha;
  /// Total variation of a drafted position's token from p, with the residual of Algorithm 1 as it is and scaled
  /// too; theory::LenientResidual's strict and lenient.
  estimate::Estimate distance_strict;
  estimate::Estimate distance_lenient;
};

struct SweepRow {
  SweepSetting setting;
  estimate::AcceptanceEstimate alpha;
  /// The best gamma and its speedup by Theorem 3.8 at alpha: the prefixes are still those of the recorded sampling, so
  /// there is no replay. Empty without a cost.
  std::optional<std::int64_t> gamma;
  std::optional<double> speedup;
};

/// Exact replay of the recording, once if acceptance is exact, else for the lower and the upper ends of its brackets.
struct ReplayAnalysis {
  estimate::ReplayReport lower;
  std::optional<estimate::ReplayReport> upper;
  std::vector<PositionAcceptance> positions;

  const estimate::ReplayReport& highest() const { return upper ? *upper : lower; }
};

/// Says ("few_clusters") that intervals may be too narrow; empty if the clusters of this rate suffice.
std::optional<Note> few_clusters(const estimate::AcceptanceEstimate& alpha);

/// Says ("bracketed") that a recording determines acceptance within brackets only, and what would close them.
Note acceptance_in_brackets();

/// Says ("prompts_unknown") that intervals take texts of a recording for independent, since it does not say which of
/// them continue one prompt.
/// @param without_prompt  texts of which it does not say that, of all `texts`
Note texts_taken_as_independent(std::int64_t without_prompt, std::int64_t texts);

/// One gamma by Eq. 1 and Theorem 3.8, for recordings without exact replay.
struct IidRow {
  std::int64_t gamma = 1;
  /// Empty without an exact alpha; no speedup without a cost either.
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
  std::vector<IidRow> iid;  ///< gammas 1 to the largest, if there is no replay
};

struct TraceAnalysis {
  traces::AcceptanceRule rule = traces::AcceptanceRule::rejection;
  std::int64_t positions = 0;
  std::int64_t sequences = 0;
  /// The number of positions of each tier that occurs.
  std::map<traces::Tier, std::int64_t> tiers;

  /// Rates from the mean acceptance at each prefix, from the emitted tokens, and under each rule that the tier allows.
  std::optional<estimate::AcceptanceEstimate> alpha;
  std::optional<estimate::AcceptanceEstimate> alpha_emitted;
  std::array<std::optional<estimate::AcceptanceEstimate>, 3> alpha_by_rule;
  estimate::TextSourceResult text_source;
  /// The mean of the pair's total variation distance.
  std::optional<estimate::AcceptanceEstimate> d_lk;

  std::optional<ReplayAnalysis> replay;
  /// The largest gamma of the replay, if the recording's accepted lengths tell of no longer draft.
  std::optional<std::int64_t> longest_draft;
  /// The reason why there is no replay; empty if there is one, or no position.
  std::string not_replayed;
  /// True if nothing is decided by the replay: the tests say that the text is not the target's own, and nobody forces
  /// the replay all the same.
  bool replay_refused = false;
  /// Gammas 1 to the largest, if there is no replay.
  std::vector<IidRow> iid;
  std::vector<LenienceEstimate> lenience;
  /// By the probability of the drafted token, and by the draft's largest probability: see estimate::DraftCalibration.
  /// Empty unless ObserveOptions::confidence_bins requested it.
  std::vector<estimate::CalibratedBin> calibration;
  std::vector<estimate::CalibratedBin> calibration_by_top;
  std::vector<SweepRow> sweep;
  std::optional<estimate::AdaptiveReport> adaptive;
  std::vector<TaskAnalysis> tasks;
  /// True if the tasks' figures are not independent: some text or prompt is in several tasks, or may be.
  bool tasks_share_clusters = false;
  /// Notes on what is missing and why, and on the limitations of the results.
  std::vector<Note> notes;

  /// The depths in the round at which the acceptance of drafts was recorded. If there are several, the estimates of
  /// alpha are those of a round's first draft, and behind the last depth the replay holds its acceptance.
  std::int64_t depths = 1;

  /// The preferred estimate: of `alpha` and `alpha_emitted` the one from more positions, `alpha` if both have as many.
  const estimate::AcceptanceEstimate* best_alpha() const;
};

/// A pass over a recording, or over some of its sequences. Feed it every batch in order, then take the result, which is
/// a function of the set of sequences: equal to the bit in whatever order they came, and however they were divided
/// among objects that were merged.
///
/// Memory does not depend on the length of the recording, except for one sequence at a time, of at most 1e6 tokens.
class TraceAnalyzer {
 public:
  /// @param depths  PositionSource::depths() of the whole recording
  /// @throws std::domain_error if an option is out of range
  TraceAnalyzer(const traces::TraceMetadata& metadata, std::int64_t depths, TraceAnalysisOptions options);
  ~TraceAnalyzer();
  TraceAnalyzer(TraceAnalyzer&&) noexcept;
  TraceAnalyzer& operator=(TraceAnalyzer&&) noexcept;

  /// Adds the next batch. Returns its observations, for others that follow the same pass; valid until the next call.
  /// @throws estimate::RuleUndefined if the rule has no meaning for what was recorded
  /// @throws traces::FileError if a row is not a distribution
  const estimate::Observations& add(const traces::PositionSource& source, const traces::PositionBatch& batch);

  /// Ends the recording.
  /// @param task_names  from the source's metadata, now complete
  TraceAnalysis finish(const std::vector<std::string>& task_names);

  /// Adds the sequences of another object with the same arguments, none of which is in this one. Ends those of both.
  void merge(TraceAnalyzer& other);

  /// Writes what was added, or replaces it by what an object with the same arguments wrote. Ends the last sequence.
  void exchange(core::StateWriter& archive);
  void exchange(core::StateReader& archive);

  std::int64_t positions() const;
  std::int64_t sequences() const;

  /// The batch as it was replayed; valid as long as the result of add(). Null if replay is undefined here.
  const ReplayColumns* replayed() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Reads a source to its end and analyses it.
TraceAnalysis analyse(traces::PositionSource& source, const TraceAnalysisOptions& options);

}  // namespace specdec::planning
