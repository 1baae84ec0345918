#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "analysis/estimate/adaptive_drafting.hpp"
#include "analysis/estimate/replay_estimates.hpp"
#include "analysis/planning/confidence_columns.hpp"
#include "analysis/planning/trace_analysis.hpp"

/// Internal to analysis/planning.
namespace specdec::planning {

/// The one from more positions, the first if both have as many; an empty one has none. Null if both are empty.
const estimate::AcceptanceEstimate* of_more_positions(const std::optional<estimate::AcceptanceEstimate>& first,
                                                      const std::optional<estimate::AcceptanceEstimate>& second);

/// Alpha at the lower and the upper ends of its brackets, for the i.i.d. figures beside a replay.
struct AlphaEnds {
  std::optional<double> lower, upper;
};

/// The ends from two estimates of alpha. Exact values take precedence, unless they come from fewer positions.
/// @param bracketed  whether both ends of brackets are replayed: one replay cannot be mixed with a bracket
AlphaEnds alpha_ends(const std::optional<estimate::AcceptanceEstimate>& mean,
                     const std::optional<estimate::AcceptanceEstimate>& emitted, bool bracketed);

/// The exact replay of a recording, of the upper ends of brackets beside the lower ones as soon as there are any, and
/// adaptive drafting over it.
class RecordingReplay {
 public:
  /// @param depths  as ReplayColumns
  RecordingReplay(std::int64_t depths, const TraceAnalysisOptions& options);

  void add(const estimate::Observations& seen, const traces::PositionBatch& batch, bool proposes_one_token);
  /// Ends the last sequence.
  void end();
  /// Adds the sequences of another object with the same arguments. Both must have ended.
  void merge(RecordingReplay& other);
  template <class Archive>
  void exchange(Archive& archive) {
    bool has_upper = upper_.has_value();
    archive(says_nothing_, lacks_tokens_, columns_, lower_, has_upper, confidence_);
    if (has_upper) {
      begin_upper();
      archive(*upper_);
    }
    if (adaptive_) archive(*adaptive_);
  }

  const ReplayColumns& columns() const { return columns_; }
  /// True once a batch says nothing of acceptance, from when on nothing is replayed, ...
  bool says_nothing() const { return says_nothing_; }
  /// ... for lack of the emitted tokens.
  bool lacks_tokens() const { return lacks_tokens_; }
  bool is_bracketed() const { return upper_.has_value(); }

  /// Sets the result's replay and adaptive drafting, and its longest draft where that ends them.
  void finish(const AlphaEnds& alpha, bool proposes_one_token, TraceAnalysis& result, std::vector<Note>& notes);

  /// By task, with the alphas of each.
  std::map<std::int32_t, estimate::ReplayReport> lower_by_task(const std::map<std::int32_t, double>& alphas) const;
  /// Empty without brackets.
  std::map<std::int32_t, estimate::ReplayReport> upper_by_task(const std::map<std::int32_t, double>& alphas) const;

 private:
  void begin_adaptive(const TraceAnalysisOptions& options);
  void begin_upper();
  void add_adaptive(const estimate::Observations& seen, bool proposes_one_token);
  void finish_adaptive(bool proposes_one_token, TraceAnalysis& result, std::vector<Note>& notes) const;

  std::int64_t max_gamma_;
  ReplayColumns columns_;
  estimate::ReplayEstimates lower_;
  std::optional<estimate::ReplayEstimates> upper_;
  ConfidenceColumns confidence_;
  std::optional<estimate::AdaptiveDrafting> adaptive_;
  bool says_nothing_ = false;
  bool lacks_tokens_ = false;
};

}  // namespace specdec::planning
