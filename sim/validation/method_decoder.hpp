#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/core/standardisation.hpp"
#include "sim/drafting.hpp"
#include "sim/generation.hpp"
#include "sim/validation/evidence.hpp"
#include "sim/validation/method_source.hpp"

/// What a method is made of while it runs. A method decodes a prompt and says what became of it; nobody needs to know
/// how it works inside.
namespace specdec::validation {

/// What the closed forms say of the rounds of a text, beside what happened.
struct RoundSums {
  /// Drafts that stayed, the sum of their closed-form acceptances, and the variance that these leave.
  Comparison accepted;
  /// Drafts (of several for one position: positions) that were judged by themselves.
  double judged = 0;
  /// Total variation between the law of a token and the target's, summed over tokens.
  double distance = 0;

  void add(const RoundSums& other);
  /// Books a draft that was judged: it stays with probability `acceptance`.
  void book(double acceptance, bool stayed, double its_distance = 0);
};

/// What the calls of a text's drafts have cost.
struct DraftUse {
  /// Calls of the source's draft model.
  double model_calls = 0;
  /// Those of other models, each as the weights that it reads over the target's. Tables cost nothing.
  double other_calls = 0;
};

/// Sums over the tokens of a text whose target was left early.
struct EarlyExitSums {
  double blocks = 0;
  /// KL of the law of each token from the target's, in nats.
  double kullback_leibler = 0;
};

/// Searches of beams beside plain searches of the same width.
struct BeamSums {
  /// Of the plain ones.
  double plain_operations = 0;
  /// Searches whose beams, their order or their scores are not those of the plain one.
  std::int64_t different = 0;
};

/// One text of one method.
struct MethodRun {
  sim::Counters counters = {};
  RoundSums rounds = {};
  /// In plain steps of the target; 0 where settings have no cost.
  double cost = 0;
  /// Weights that were read, each call reading all of its model, over the target's.
  double weight_reads = 0;
  /// Where the target is left early.
  std::optional<EarlyExitSums> early_exit = {};
  /// Where beams are searched; a token is then a step of the search, and plain decoding is plain search.
  std::optional<BeamSums> beams = {};
  /// What was generated.
  std::vector<sim::Token> text = {};
};

/// Decodes prompts by one method, in one thread.
class MethodDecoder {
 public:
  virtual ~MethodDecoder() = default;
  /// @param prompt  at least one token
  virtual MethodRun decode(std::span<const sim::Token> prompt, const sim::UniformSource& uniforms) = 0;

 protected:
  MethodDecoder() = default;
  MethodDecoder(const MethodDecoder&) = default;
  MethodDecoder& operator=(const MethodDecoder&) = default;
};

/// Called once for every thread, by one thread.
using MethodDecoderFactory = std::function<std::unique_ptr<MethodDecoder>()>;

/// Source, settings, and what follows from both. The source and the settings must outlive it.
class MethodContext {
 public:
  MethodContext(const MethodSource& source, const MethodSettings& settings);

  const MethodSource& source() const { return source_; }
  const MethodSettings& settings() const { return settings_; }
  /// 0 for a source without models.
  std::int64_t vocab_size() const { return vocab_size_; }
  core::Standardisation standardisation() const { return {.temperature = settings_.temperature}; }
  /// Operations for one token, 0 for models of tables.
  double target_operations() const { return target_operations_; }
  double draft_operations() const { return draft_operations_; }

  /// Completes a run of rounds: steps' costs, and weights that were read. A step costs v(n) + overhead, n tokens being
  /// scored, and 1 where nothing is drafted. A call of the draft model costs c, one of another model as much more as it
  /// reads weights.
  void price(MethodRun& run, std::span<const sim::Step> steps, const DraftUse& use) const;

 private:
  const MethodSource& source_;
  const MethodSettings& settings_;
  std::int64_t vocab_size_ = 0;
  double target_operations_ = 0;
  double draft_operations_ = 0;
};

/// A draft of one thread and the target that verifies it.
struct DraftBench {
  sim::OwnedModel target;
  /// Keeps alive what it stands on.
  std::shared_ptr<sim::Draft> draft;
  /// The language model that drafts, where the draft is one: several drafts of one position are drawn from its rows.
  std::optional<sim::OwnedModel> model;
  /// What was used for a text, by its counters; empty for drafts that cost nothing.
  std::function<DraftUse(const sim::Counters& counters)> use;
};

/// Makes the bench of a thread. `standardisation` is that of the rows, `proposing` how they become proposals; a draft
/// whose proposals are no samples of rows does not look at them.
using DraftBenchFactory =
    std::function<DraftBench(const core::Standardisation& standardisation, sim::Proposing proposing)>;

}  // namespace specdec::validation
