#include <array>
#include <utility>

#include "analysis/theory/multi_draft.hpp"
#include "sim/tree_decoding.hpp"
#include "sim/validation/methods.hpp"
#include "sim/validation/planned_trees.hpp"

namespace specdec::validation {
namespace {

using TargetRow = core::TargetDistribution;
using DraftRow = core::DraftDistribution;

/// The rules by which siblings are drawn and judged, and the probability that one of those drawn is accepted.
struct SeveralRule {
  sim::SiblingDrafts siblings;
  sim::CandidateVerifier verify;
  double (*acceptance)(const TargetRow& p, const DraftRow& q, std::span<const std::int64_t> drafts);
};

/// A tree of drafts.
class TreeDecoder final : public MethodDecoder {
 public:
  TreeDecoder(const MethodContext& context, const DraftBenchFactory& benches, SeveralRule rule,
              std::vector<std::int64_t> parents)
      : context_(context), bench_(benches(context.standardisation(), sim::Proposing::sampled)), rule_(std::move(rule)) {
    options_.parents = std::move(parents);
    options_.siblings = rule_.siblings;
    options_.max_new_tokens = context.settings().max_new_tokens;
    options_.end_token = context.settings().end_token;
    options_.standardisation = context.standardisation();
    options_.verifier = [this](const sim::DraftedCandidates& candidates, const sim::UniformSource& uniforms,
                               std::int64_t round, std::int64_t slot) {
      const sim::CandidateVerdict verdict = rule_.verify(candidates, uniforms, round, slot);
      const std::vector<std::int64_t> drafts(candidates.drafted.begin(), candidates.drafted.end());
      sums_.book(rule_.acceptance(TargetRow(candidates.target_row), DraftRow(candidates.draft_row), drafts),
                 verdict.accepted.has_value());
      return verdict;
    };
  }

  MethodRun decode(std::span<const sim::Token> prompt, const sim::UniformSource& uniforms) override {
    sums_ = {};
    sim::Generation text = sim::decode_with_tree(*bench_.target, *bench_.model, prompt, options_, uniforms);
    return context_.run_of(std::move(text), sums_, &bench_);
  }

 private:
  const MethodContext& context_;
  DraftBench bench_;
  SeveralRule rule_;
  sim::TreeDecodingOptions options_;
  RoundSums sums_;
};

template <SeveralRule (*rule)(), std::vector<std::int64_t> (*tree)(const MethodSettings&)>
MethodDecoderFactory prepare_tree(const MethodContext& context, const DraftBenchFactory& benches,
                                  const DraftedLength&) {
  return [&context, benches, parents = tree(context.settings())] {
    return std::make_unique<TreeDecoder>(context, benches, rule(), parents);
  };
}

template <SeveralRule (*rule)(), std::vector<std::int64_t> (*tree)(const MethodSettings&)>
constexpr VerifierKind several(std::string_view name, ParametersUsed uses,
                               std::string (*lacks)(const MethodContext&) = nullptr) {
  uses.temperature = uses.cost = true;
  // The basis of the planned figures of every tree.
  uses.tree_acceptance = true;
  return {name, true, prepare_tree<rule, tree>, tree, lacks, uses};
}

SeveralRule recursive() {
  return {sim::SiblingDrafts::independent, sim::verify_recursively,
          [](const TargetRow& p, const DraftRow& q, std::span<const std::int64_t> drafts) {
            return theory::recursive_acceptance_of(p, q, drafts, theory::Replacement::with);
          }};
}

SeveralRule recursive_distinct() {
  return {sim::SiblingDrafts::without_replacement, sim::verify_recursively_without_replacement,
          [](const TargetRow& p, const DraftRow& q, std::span<const std::int64_t> drafts) {
            return theory::recursive_acceptance_of(p, q, drafts, theory::Replacement::without);
          }};
}

SeveralRule k_sequential() {
  return {sim::SiblingDrafts::independent, sim::verify_k_sequentially,
          [](const TargetRow& p, const DraftRow& q, std::span<const std::int64_t> drafts) {
            const auto k = static_cast<std::int64_t>(drafts.size());
            return theory::k_seq_acceptance(p, q, k, theory::k_seq_least_rho(p, q, k)).alpha();
          }};
}

SeveralRule most_probable() {
  return {sim::SiblingDrafts::most_probable, sim::verify_by_membership,
          [](const TargetRow& p, const DraftRow&, std::span<const std::int64_t> drafts) {
            return theory::distinct_drafts_acceptance(p, drafts).alpha();
          }};
}

std::string lacks_cost(const MethodContext& context) {
  return context.settings().cost ? "" : "the best size of a tree needs a cost";
}

}  // namespace

std::span<const VerifierKind> several_verifier_kinds() {
  static constexpr std::array kinds{
      several<recursive, chains_of>("recursive", {.gamma = true, .drafts = true}),
      several<recursive_distinct, chains_of>("recursive-distinct", {.gamma = true, .drafts = true}),
      several<k_sequential, chains_of>("k-sequential", {.gamma = true, .drafts = true}),
      several<recursive_distinct, full_tree_of>("tree", {.tree = true}),
      several<most_probable, full_tree_of>("static-tree", {.tree = true}),
      several<recursive_distinct, optimal_tree_of>("optimal-tree", {.tree_nodes = true}),
      several<recursive_distinct, best_tree_of>("best-tree", {.tree_nodes = true}, lacks_cost),
  };
  return kinds;
}

}  // namespace specdec::validation
