#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "analysis/core/row_statistics.hpp"
#include "analysis/core/standardisation.hpp"
#include "analysis/estimate/observations.hpp"
#include "analysis/estimate/text_source_tests.hpp"
#include "traces/position_batch.hpp"
#include "traces/position_source.hpp"
#include "traces/trace_metadata.hpp"

namespace specdec::estimate {

/// Options for the analysis of a recording.
struct ObserveOptions {
  /// The acceptance rule; if empty, the recording's, or else rejection.
  std::optional<traces::AcceptanceRule> rule;
  /// Treat stored log-probabilities as those of the distributions that were sampled from, whatever the recording says.
  bool assume_processed = false;
  /// Largest distance of a row's sum from 1; if empty, the tolerance of the stored type (traces::row_sum_tolerance).
  std::optional<double> tolerance;
  /// Values of l in (0, 1]. Full tier only.
  std::vector<double> lenience;
  /// Bins of Observations::by_confidence, >= 0; 0 for none. Full tier only.
  std::int64_t confidence_bins = 0;
  /// Compute Observations::rejection_sampling_acceptance. Full tier only.
  bool rejection_sampling = false;
  std::int64_t threads = 1;
  /// Reshaping of full rows; if empty, raw rows are reshaped as the recording says the text was sampled, and
  /// processed ones are left alone. The other tiers cannot be reshaped: their normaliser is lost.
  std::optional<core::Standardisation> target;
  std::optional<core::Standardisation> draft;
};

/// The chosen rule cannot be evaluated on this recording; what() says why and what to record instead.
class RuleUndefined : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// The text's sampling settings; those that the recording does not state are taken to be off.
core::Standardisation sampling_of(const traces::TraceMetadata& metadata);

/// The rule that an analysis follows: the option, else the recording's, else rejection.
traces::AcceptanceRule effective_rule(const traces::TraceMetadata& metadata, const ObserveOptions& options);

/// Throws unless the rule is defined for data of this tier. Accepted lengths are refused for another rule than the one
/// that the recording names, but for temperature 0, where all rules are one. Raw log-probabilities, and those of
/// unknown space, of text sampled at a temperature other than 1 or with top-k, top-p or min-p, are refused for
/// rejection in the top-k and scalar tiers unless options.assume_processed: the normaliser of the reshaped distribution
/// is lost. At temperature 0 the scalar tier is judged by ranks, whose presence Observer checks. Full rows of unknown
/// space are refused there too, since they might silently be reshaped twice.
///
/// Source:   docs/theory.md#what-a-recording-says-of-acceptance
/// @throws RuleUndefined
void require_rule_defined(const traces::TraceMetadata& metadata, traces::Tier tier, traces::AcceptanceRule rule,
                          const ObserveOptions& options);

/// Converts recorded positions to the columns that estimators read, for any tier and any rule.
///
///   full     every column, by core::row_statistics; rows that are reshaped are standardised in double and passed
///            it as log-probabilities in F32. Lenience follows the rule: sum min(p / l, q) for rejection,
///            min(1, p(x) / l) for greedy-draft and p(x) >= l max p for greedy and for every rule at temperature 0,
///            x = argmax q; the last one by the rows as stored
///   top-k    brackets [lower, upper] of overlap, a_t and D_LK; a recorded overlap replaces its bracket; no
///            overlap or D_LK if the lists are not those that were sampled from
///   scalar   a_t = exp(min(0, log q - log p)) of rejection, ranks for the greedy rules, mean acceptance = overlap
///   accepted length   a_t = 1 if a round from here accepts a token, else 0
///
/// At temperature 0 rejection is greedy: both distributions put all mass on their argmax.
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

  /// The observations of the batch; spans in it point into the batch. The same for any number of threads.
  /// @throws RuleUndefined if the rule is undefined for the batch's tier, or needs a column that is missing
  /// @throws traces::FileError naming file, tensor and row if a row is not a distribution, a value is not a
  ///   probability, or a token was emitted to which the target gives probability 0 (unless the text is from elsewhere,
  ///   or options.target reshapes rows in another way than the text was sampled; a_t is then 1 if q > 0, else 0). In
  ///   probabilities of F16 a 0 may stand for up to 2^-25: if nothing was cut off, a_t by rejection is then [0, 1]
  Observations observe(const traces::PositionSource& source, const traces::PositionBatch& batch);

  /// True if the draft proposes its most probable token instead of a sample: under the greedy rules, and at
  /// temperature 0.
  bool proposes_one_token() const;

  /// The depths at which a recording is replayed: 1 under rules that know no other, else those of its scalar positions,
  /// or max_gamma for accepted lengths.
  /// @param depths  PositionSource::depths()
  std::int64_t replayed_depths(std::int64_t depths, std::int64_t max_gamma) const;

  /// True if the rows seen so far determine lenience. Under the greedy rule and at temperature 0 they do not if
  /// every row of the target has all mass on one token.
  bool lenience_tells() const { return found_.lenience_tells; }

  /// The test of whether the text is the target's own, by all batches so far; none if options.target reshapes the rows.
  TextSourceResult text_source() const { return text_source_.result(); }

  /// Adds what another observer of the same recording and with the same options found in batches that this one did not
  /// see. Afterwards notes(), text_source() and lenience_tells() are those of all.
  void merge(const Observer& other);

  /// The observer's findings so far.
  template <class Archive>
  void exchange(Archive& archive) {
    archive(text_source_, found_.largest_sum_error, found_.lenience_tells, found_.not_greedy, found_.underflowed,
            found_.one_depth_of_stateful_draft, found_.unused_depths);
  }

  /// Notes for the reader: one per kind, over all batches so far. The first one, if the tests say so, is that the text
  /// is not the target's own.
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
  std::vector<std::unique_ptr<Workspace>> workspaces_;  // one per thread
  TextSourceAccumulator text_source_;
  struct Found {
    double largest_sum_error = 0;
    bool lenience_tells = true;
    std::int64_t not_greedy = 0;
    std::int64_t underflowed = 0;
    bool one_depth_of_stateful_draft = false;
    std::int64_t unused_depths = 1;
  };
  Found found_;
};

}  // namespace specdec::estimate
