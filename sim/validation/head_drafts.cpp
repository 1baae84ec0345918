#include "sim/validation/draft_makers.hpp"

#include <memory>

#include "sim/drafts/eagle.hpp"
#include "sim/drafts/parallel_heads.hpp"

namespace specdec::validation {
namespace {

/// A target that keeps its features, and the draft that reads them.
template <class HeadDraft, class Heads>
DraftBenchFactory head_drafts(const MethodContext& context, const std::shared_ptr<const Heads>& heads) {
  const double calls = operations_of(*heads) / context.target_operations();
  const sim::TransformerOptions options{.threads = static_cast<int>(context.model_threads()), .keep_features = true};
  return [weights = context.source().target_weights, heads, calls, options](
             const core::Standardisation& standardisation, sim::Proposing proposing) {
    const auto target = std::make_shared<sim::Transformer>(weights, options);
    return DraftBench{target, std::make_shared<HeadDraft>(heads, *target, standardisation, proposing), nullptr,
                      [calls](const sim::Counters& counters) {
                        return DraftUse{.other_calls = calls * static_cast<double>(counters.draft_calls)};
                      }};
  };
}

}  // namespace

std::string lacks_eagle_head(const MethodContext& context) {
  return context.source().eagle_head ? "" : "the source has no eagle head for its target";
}

DraftBenchFactory eagle_drafts(const MethodContext& context) {
  return head_drafts<sim::EagleDraft>(context, context.source().eagle_head);
}

std::string lacks_parallel_heads(const MethodContext& context) {
  return context.source().parallel_heads ? "" : "the source has no parallel heads for its target";
}

DraftBenchFactory parallel_drafts(const MethodContext& context) {
  return head_drafts<sim::ParallelHeadDraft>(context, context.source().parallel_heads);
}

}  // namespace specdec::validation
