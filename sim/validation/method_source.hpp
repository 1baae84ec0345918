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

/// What methods are run on, and with which parameters.
namespace specdec::validation {

/// The target's and the draft's law where they are the same at every prefix. Shape: both (vocab), sum to 1.
struct FixedLaws {
  std::vector<double> target;
  std::vector<double> draft;
};

/// What the methods continue and draft with. All vocabularies are the same. What a source has not is empty, and the
/// methods that need it do not exist for it.
struct MethodSource {
  sim::ModelPair models;
  /// The checkpoints of that pair, for methods that look into a model or run a part of it.
  std::shared_ptr<const sim::TransformerWeights> target_weights;
  std::shared_ptr<const sim::TransformerWeights> draft_weights;
  /// Heads made for target_weights.
  std::shared_ptr<const sim::EagleHead> eagle_head;
  std::shared_ptr<const sim::ParallelHeads> parallel_heads;
  /// Ways out of the target before its last block, for methods that leave it there; plain ones where it has none.
  std::shared_ptr<const sim::ExitWeights> exits;
  /// Counted tables.
  sim::ModelFactory unigram;
  sim::ModelFactory bigram;
  /// Texts that n-grams are counted in.
  std::vector<std::vector<sim::Token>> texts;
  std::vector<sim::Prompt> prompts;
  /// Those of the pair, where the models know no prefix: rounds of Algorithm 1 then run without models.
  std::optional<FixedLaws> fixed;
  /// The acceptance of every draft, where that is all there is: no models, no prompts, Algorithm 1 alone.
  std::optional<core::AcceptanceRate> alpha;
  /// Opens a recording, where that is all there is: methods are replayed over it, see recorded_methods.hpp.
  std::function<std::unique_ptr<traces::PositionSource>()> recording;
};

/// The parameters of all methods.
struct MethodSettings {
  std::int64_t gamma = 5;
  double temperature = 1;
  /// Per method, rounded up to whole sequences.
  std::int64_t tokens = 4'608;
  /// A method ends earlier where half of the 95% interval that its tokens per step have, given the prompts, is at most
  /// this share of them, which is looked at after portions of sequences whose sizes depend on nothing else; nothing for
  /// never.
  std::optional<double> until_relative_error;
  std::int64_t max_new_tokens = 64;
  double lenience = 0.5;
  /// Of typical acceptance.
  double epsilon = 0.09;
  double delta = 0.3;
  /// Of the policies threshold, product and confidence.
  double threshold = 0.4;
  /// Drafted tokens of a round at most where hindsight says how many: policies oracle and known-beta.
  std::int64_t most_drafts = 16;
  /// Of the policy batch: gammas by batch, rising, the first from batch 1 on; and the batch.
  std::vector<sim::GammaFrom> schedule;
  std::int64_t batch = 1;
  /// Blocks of the target that the draft early-exit runs.
  std::int64_t exit_layer = 2;
  /// Thresholds of the systems that leave the target early, by softmax response and by saturation of the states.
  double exit_response = 0.7;
  double exit_saturation = 0.95;
  /// Tokens that the hierarchical draft's own draft proposes at a time.
  std::int64_t inner_gamma = 2;
  /// Of the text that input-copy is given, the share of tokens that have been replaced.
  double edit_share = 0.05;
  /// Of the system beam: texts that are kept, w, and those of its draft, u >= w.
  std::int64_t beams = 2;
  std::int64_t draft_beams = 4;
  /// Chains of the verifiers of several.
  std::int64_t drafts = 3;
  /// Of the full trees: children of a node, levels.
  std::int64_t tree_children = 2;
  std::int64_t tree_depth = 3;
  /// Of the optimal trees: nodes at most, the root included, and how often a node's child of each rank is the accepted
  /// one. The default is the shipped pair's, rounded (docs/methods.md#token-trees).
  std::int64_t tree_nodes = 16;
  std::vector<double> tree_acceptance = {0.5, 0.12, 0.055, 0.04, 0.025, 0.025};
  /// Tokens of the draft's longest n-gram, and of the longest suffix that is looked up.
  std::int64_t ngram_order = 3;
  /// In units of one plain step of the target; c is that of a call of the source's draft model.
  std::optional<core::StepCost> cost;
  std::uint64_t seed = 1;
  std::int64_t threads = 1;
};

}  // namespace specdec::validation
