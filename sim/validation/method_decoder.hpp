#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "sim/decoding.hpp"
#include "sim/drafting.hpp"
#include "sim/generation.hpp"
#include "sim/validation/evidence.hpp"
#include "sim/validation/method_source.hpp"

/// The parts of a running method. A method decodes a prompt and reports the outcome; callers need not
/// know how it works inside.
namespace specdec::validation {

/// The predictions of the closed forms for the rounds of a text, beside the outcome.
struct RoundSums {
  /// Accepted drafts, the sum of their closed-form acceptances, and the remaining variance.
  Comparison accepted;
  /// Drafts (of several for one position: positions) that were judged individually.
  double judged = 0;
  /// Total variation between the law of a token and the target's, summed over tokens.
  double distance = 0;

  void add(const RoundSums& other);
  /// Records a draft that was judged: it is accepted with probability `acceptance`.
  void book(double acceptance, bool stayed, double its_distance = 0);
};

/// The cost of the draft calls for a text.
struct DraftUse {
  /// Calls of the source's draft model.
  double model_calls = 0;
  /// Calls of other models, each weighted by the weights that it reads over the target's. Tables cost nothing.
  double other_calls = 0;
};

class MethodClock;
struct DraftBench;
struct RunTimes;

/// One text of one method.
struct MethodRun {
  sim::Counters counters = {};
  RoundSums rounds = {};
  /// In plain steps of the target; 0 if the settings have no cost.
  double cost = 0;
  /// Weights that were read, with each call reading all of its model, over the target's.
  double weight_reads = 0;
  /// Set if it was timed; see method_timing.hpp.
  std::shared_ptr<const RunTimes> times = {};
  /// The generated text.
  std::vector<sim::Token> text = {};

  /// The state without times and text, see analysis/core/state_archive.hpp.
  template <class Archive>
  void exchange(Archive& archive) {
    sim::Counters& c = counters;
    archive(c.drafted_at, c.accepted_at, c.operations, rounds.accepted.expected, rounds.accepted.measured,
            rounds.accepted.variance, rounds.judged, rounds.distance, cost, weight_reads);
    for (const auto count : c.counts()) archive(c.*count);
    archive.require(c.steps > 0 && c.tokens > 0 && c.drafted_at.size() == c.accepted_at.size());
    // Sums over all sequences of a run stay in range.
    constexpr std::int64_t many = std::int64_t{1} << 42;
    const auto is_count = [](std::int64_t count) { return 0 <= count && count < many; };
    for (const auto count : c.counts()) archive.require(is_count(c.*count));
    archive.require(std::all_of(c.drafted_at.begin(), c.drafted_at.end(), is_count) &&
                    std::all_of(c.accepted_at.begin(), c.accepted_at.end(), is_count));
  }
};

/// Decodes prompts by one method, on one thread.
class MethodDecoder {
 public:
  virtual ~MethodDecoder() = default;
  /// @param prompt  at least one token
  virtual MethodRun decode(std::span<const sim::Token> prompt, const sim::UniformSource& uniforms) = 0;
};

/// Called once for every thread, from one thread.
using MethodDecoderFactory = std::function<std::unique_ptr<MethodDecoder>()>;

/// Source, settings, and quantities derived from both. The source and the settings must outlive it.
class MethodContext {
 public:
  MethodContext(const MethodSource& source, const MethodSettings& settings);

  const MethodSource& source() const { return source_; }
  const MethodSettings& settings() const { return settings_; }
  /// 0 for a source without models.
  std::int64_t vocab_size() const { return vocab_size_; }
  core::Standardisation standardisation() const { return {.temperature = settings_.temperature}; }
  /// Of the target alone.
  sim::DecodingOptions decoding() const;
  /// Threads of each model: those of the settings if texts are decoded one at a time.
  std::int64_t model_threads() const { return settings_.timed ? settings_.threads : 1; }
  /// A new object of the source's models.
  sim::OwnedModel target() const { return source_.models.target(model_threads()); }
  sim::OwnedModel draft() const { return source_.models.draft(model_threads()); }
  /// Of what is decoded next; null if nothing is timed.
  MethodClock* clock() const { return clock_.get(); }
  /// Does what only tests need, whose time does not count.
  void outside_the_clock(const std::function<void()>& work) const;
  /// Operations for one token, 0 for table models.
  double target_operations() const { return target_operations_; }
  double draft_operations() const { return draft_operations_; }
  /// c if every operation takes the same time: those of the draft model over the target's. Empty if the target computes
  /// none.
  std::optional<double> operations_ratio() const;

  /// The run of a decoded text, with its steps' costs and the weights that were read. A step costs v(n) + overhead for
  /// n scored tokens, and 1 if nothing is drafted. A call of the draft model costs c, one of another model
  /// proportionally to the weights that it reads, or c with c_of_every_call.
  /// @param bench  that drafted; null if nothing did
  MethodRun run_of(sim::Generation text, const RoundSums& rounds, const DraftBench* bench) const;

 private:
  double cost_of(std::span<const sim::Step> steps, double draft_calls, const DraftUse& use) const;

  const MethodSource& source_;
  const MethodSettings& settings_;
  std::shared_ptr<MethodClock> clock_;
  std::int64_t vocab_size_ = 0;
  double target_operations_ = 0;
  double draft_operations_ = 0;
};

/// A draft of one thread and the target that verifies it.
struct DraftBench {
  sim::OwnedModel target;
  /// Keeps alive the objects it depends on, but for `model`.
  std::shared_ptr<sim::Draft> draft;
  /// The drafting language model, or null: several drafts of one position are drawn from its rows.
  sim::OwnedModel model;
  /// The draft's cost for a text, from its counters; empty for drafts that cost nothing.
  std::function<DraftUse(const sim::Counters& counters)> use;
};

/// Makes the bench of a thread. `standardisation` applies to the rows, `proposing` turns them into proposals; a draft
/// whose proposals are not samples of rows ignores them.
using DraftBenchFactory =
    std::function<DraftBench(const core::Standardisation& standardisation, sim::Proposing proposing)>;

}  // namespace specdec::validation
