#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "analysis/core/row_statistics.hpp"
#include "analysis/core/standardisation.hpp"
#include "analysis/estimate/observations.hpp"
#include "traces/position_batch.hpp"
#include "traces/position_source.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::estimate {

/// How a recording is to be looked at.
struct ObserveOptions {
  /// The acceptance rule; nothing takes the recording's, else rejection.
  std::optional<traces::AcceptanceRule> rule;
  /// Take stored log-probabilities for those of the distributions that were sampled from, whatever the recording says.
  bool assume_processed = false;
  /// How far a row may be from sum 1; nothing takes the tolerance of the stored type (core::row_sum_tolerance).
  std::optional<double> tolerance;
  /// Values of l in (0, 1]. Full tier only.
  std::vector<double> lenience;
  /// Bins of Observations::by_confidence, >= 0; 0 for none. Full tier only.
  std::int64_t confidence_bins = 0;
  /// Observations::rejection_sampling_acceptance. Full tier only.
  bool rejection_sampling = false;
  std::int64_t threads = 1;
  /// How full rows are reshaped; nothing reshapes raw rows as the recording says the text was sampled, and leaves
  /// processed ones. The other tiers cannot be reshaped: their normaliser is lost.
  std::optional<core::Standardisation> target;
  std::optional<core::Standardisation> draft;
};

/// The chosen rule cannot be evaluated on this recording; what() says why and what to record instead.
class RuleUndefined : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// What the text was sampled with; what the recording does not say is taken to be off.
core::Standardisation sampling_of(const traces::TraceMetadata& metadata);

/// The rule that an analysis follows: the option, else the recording's, else rejection.
traces::AcceptanceRule effective_rule(const traces::TraceMetadata& metadata, const ObserveOptions& options);

/// Throws unless the rule means something for numbers of this tier. Raw log-probabilities, and those of unknown space,
/// of text sampled at a temperature other than 1 or with top-k, top-p or min-p, are refused for rejection in the top-k
/// and scalar tiers unless options.assume_processed: the normaliser of the reshaped distribution is lost. At
/// temperature 0 the scalar tier is judged by ranks, whose presence Observer checks. Full rows of unknown space are
/// refused there too, since reshaping them twice would be silent.
///
/// Source:   docs/theory.md#what-a-recording-says-of-acceptance
/// @throws RuleUndefined
void require_rule_defined(const traces::TraceMetadata& metadata, traces::Tier tier, traces::AcceptanceRule rule,
                          const ObserveOptions& options);

/// Turns positions as they were recorded into what the estimators see, for any tier and any rule.
///
///   full     every column, by core::row_statistics; rows that are reshaped are standardised in double and handed to
///            it as log-probabilities in F32. Lenience follows the rule: sum min(p / l, q) for rejection,
///            min(1, p(x) / l) for greedy-draft and p(x) >= l max p for greedy, x = argmax q, the last one by the rows
///            as they are stored
///   top-k    brackets [lower, upper] of overlap, a_t and D_LK; a recorded overlap replaces its bracket; neither
///            overlap nor D_LK where the lists are not those that were sampled from
///   scalar   a_t = exp(min(0, log q - log p)) of rejection, ranks for the greedy rules, mean acceptance = overlap
///   accepted length   a_t = 1 where a round from here accepts a token, else 0
///
/// At temperature 0 rejection is greedy: both distributions stand on their argmax.
///
/// Source:   docs/theory.md#what-a-recording-says-of-acceptance
/// Assumes:  the batches come from one source, in order.
class Observer {
 public:
  /// @throws std::domain_error if an option is out of range
  Observer(traces::TraceMetadata metadata, ObserveOptions options);
  ~Observer();
  Observer(Observer&&) noexcept;
  Observer& operator=(Observer&&) noexcept;

  traces::AcceptanceRule rule() const { return rule_; }

  /// What the batch says; spans in it point into the batch. The same for any number of threads.
  /// @throws RuleUndefined if the rule has no meaning for the batch's tier, or needs a column that is not there
  /// @throws traces::FileError naming file, tensor and row where a row is no distribution, a value is no probability,
  ///   or a token was emitted that the target gives probability 0 (unless the text is from elsewhere, or
  ///   options.target reshapes rows in another way than the text was sampled; a_t is then 1 if q > 0, else 0). In
  ///   probabilities of F16 a 0 may stand for up to 2^-25: where nothing was cut off, a_t by rejection is then [0, 1]
  Observations observe(const traces::PositionSource& source, const traces::PositionBatch& batch);

  /// Whether the draft proposes its most probable token instead of a sample: under the greedy rules, and at
  /// temperature 0.
  bool proposes_one_token() const;

  /// Whether lenience can be told from what was seen: under the greedy rule it cannot where every row of the target
  /// stands on one token, as after temperature 0.
  bool lenience_tells() const { return lenience_tells_; }

  /// What a reader should know: one note a kind, over all batches so far.
  std::vector<Note> notes() const;

 private:
  struct Workspace;

  void observe_full(const traces::PositionSource& source, const traces::PositionBatch& batch, Observations& out);
  std::optional<core::RowFault> observe_lenience(const traces::TargetRow& stored, const traces::TargetRow& target,
                                                 const traces::DraftRow& draft, Workspace& work) const;
  void observe_row(const traces::PositionSource& source, const traces::PositionBatch& batch, std::int64_t i,
                   Workspace& work, Observations& out) const;
  void observe_top_k(const traces::PositionSource& source, const traces::PositionBatch& batch, Observations& out);
  void observe_scalar(const traces::PositionSource& source, const traces::PositionBatch& batch, Observations& out);
  void observe_logprobs(const traces::PositionSource& source, const traces::PositionBatch& batch,
                        Observations& out) const;
  void observe_ranks(const traces::PositionBatch& batch, Observations& out);
  void observe_accepted_length(const traces::PositionBatch& batch, Observations& out) const;
  bool forgives_impossible_tokens() const;
  bool may_have_underflowed(const traces::TargetRow& row, std::int64_t token) const;

  traces::TraceMetadata metadata_;
  ObserveOptions options_;
  traces::AcceptanceRule rule_;
  core::Standardisation target_;
  core::Standardisation draft_;
  std::vector<std::unique_ptr<Workspace>> workspaces_;  // one a thread
  double largest_sum_error_ = 0;
  bool lenience_tells_ = true;
  std::int64_t not_greedy_ = 0;
  std::int64_t underflowed_ = 0;
  bool one_depth_of_stateful_draft_ = false;
  std::int64_t unused_depths_ = 1;
};

}  // namespace specdec::estimate
