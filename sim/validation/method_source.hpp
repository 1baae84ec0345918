#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/core/step_cost.hpp"
#include "sim/model_factory.hpp"
#include "sim/serving/serving_simulation.hpp"
#include "traces/position_source.hpp"

namespace specdec::sim {
struct ExitWeights;
struct TransformerWeights;
struct EagleHead;
struct ParallelHeads;
}  // namespace specdec::sim

/// The models and texts that methods run on, and their parameters.
namespace specdec::validation {

/// The laws of target and draft if they are the same at every prefix. Shape: both (vocab), sum to 1.
struct FixedLaws {
  std::vector<double> target;
  std::vector<double> draft;
};

/// The models, prompts and drafts for methods. All vocabularies are the same. Parts that a source lacks are empty, and
/// methods that need them are not available for it.
struct MethodSource {
  sim::ModelPair models;
  /// The checkpoints of that pair, for methods that look into a model or run a part of it.
  std::shared_ptr<const sim::TransformerWeights> target_weights;
  std::shared_ptr<const sim::TransformerWeights> draft_weights;
  /// Heads made for target_weights.
  std::shared_ptr<const sim::EagleHead> eagle_head;
  std::shared_ptr<const sim::ParallelHeads> parallel_heads;
  /// Exits of the target before its last block, for methods that use them; plain ones if it has none.
  std::shared_ptr<const sim::ExitWeights> exits;
  /// Counted tables.
  sim::ModelFactory unigram;
  sim::ModelFactory bigram;
  /// Texts in which n-grams are counted.
  std::vector<std::vector<sim::Token>> texts;
  std::vector<sim::Prompt> prompts;
  /// The laws of the pair, if the models do not depend on the prefix: rounds of Algorithm 1 then run without models.
  std::optional<FixedLaws> fixed;
  /// The acceptance of every draft, for a source with nothing else: no models, no prompts, Algorithm 1 alone.
  std::optional<core::AcceptanceRate> alpha;
  /// Opens a recording, for a source with nothing else: methods are replayed over it, see recorded_methods.hpp.
  std::function<std::unique_ptr<traces::PositionSource>()> recording;
};

/// The parameters of all methods.
struct MethodSettings {
  std::int64_t gamma = 5;
  double temperature = 1;
  /// Tokens per method, rounded up to whole sequences.
  std::int64_t tokens = 4'608;
  /// A method ends earlier if half of the 95% interval of its tokens per step, given the prompts, is at most
  /// this share of them, which is checked after portions of sequences whose sizes depend on nothing else; empty for
  /// never.
  std::optional<double> until_relative_error;
  std::int64_t max_new_tokens = 64;
  /// Ends a text that writes it.
  std::optional<sim::Token> end_token;
  /// Texts are decoded one at a time, each after plain decoding of its prompt, and both are timed; `threads` are those
  /// of each model then.
  bool timed = false;
  double lenience = 0.5;
  /// For typical acceptance.
  double epsilon = 0.09;
  double delta = 0.3;
  /// For the policies threshold, product and confidence.
  double threshold = 0.4;
  /// Largest number of drafted tokens of a round if hindsight determines it: policies oracle and known-beta.
  std::int64_t most_drafts = 16;
  /// For the policy batch: gammas by batch, in increasing order, the first from batch 1 on; and the batch.
  std::vector<sim::GammaFrom> schedule;
  std::int64_t batch = 1;
  /// Number of the target's blocks that the draft early-exit runs.
  std::int64_t exit_layer = 2;
  /// Tokens that the hierarchical draft's own draft proposes per inner round.
  std::int64_t inner_gamma = 2;
  /// For input-copy: the share of replaced tokens in the text that it is given.
  double edit_share = 0.05;
  /// Number of chains for the verifiers of several chains.
  std::int64_t drafts = 3;
  /// For the full trees: children per node, levels.
  std::int64_t tree_children = 2;
  std::int64_t tree_depth = 3;
  /// For the optimal trees: the most nodes, the root included, and how often a node's child of each rank is the
  /// accepted one. The default is that of the shipped pair, rounded (docs/reference/methods.md#token-trees).
  std::int64_t tree_nodes = 16;
  std::vector<double> tree_acceptance = {0.5, 0.12, 0.055, 0.04, 0.025, 0.025};
  /// Tokens of the draft's longest n-gram, and of the longest suffix that is looked up.
  std::int64_t ngram_order = 3;
  /// In units of one plain step of the target; c is that of a call of the source's draft model.
  std::optional<core::StepCost> cost;
  /// True if a call of whatever model drafts costs c; else models beside the draft cost by the weights that they read.
  bool c_of_every_call = false;
  std::uint64_t seed = 1;
  std::int64_t threads = 1;
};

}  // namespace specdec::validation
