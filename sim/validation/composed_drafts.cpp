#include "sim/validation/draft_makers.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/drafts/hierarchical.hpp"
#include "sim/drafts/input_copy.hpp"
#include "sim/transformer/transformer.hpp"

namespace specdec::validation {
namespace {

struct HierarchicalBench {
  HierarchicalBench(const MethodContext& context, const core::Standardisation& standardisation,
                    sim::Proposing proposing)
      : middle(context.draft()),
        inner(context.source().bigram(context.model_threads())),
        inner_draft(*inner, rows_of(standardisation, proposing), proposing),
        draft(*middle, inner_draft, context.settings().inner_gamma, rows_of(standardisation, proposing)) {}

  /// A greedy proposal is the text of the middle model at temperature 0.
  static core::Standardisation rows_of(const core::Standardisation& standardisation, sim::Proposing proposing) {
    return proposing == sim::Proposing::greedy ? core::Standardisation{.temperature = 0} : standardisation;
  }

  sim::OwnedModel middle;
  sim::OwnedModel inner;
  sim::ModelDraft inner_draft;
  sim::HierarchicalDraft draft;
};

struct InputCopyBench {
  explicit InputCopyBench(const MethodContext& its_context)
      : context(its_context),
        target(context.target()),
        draft(context.vocab_size(), [this](std::span<const sim::Token> prompt) { return edited_text(prompt); }) {}

  /// The i-th token of the text is replaced, by one of the others, if the integer part of share * i increases there.
  std::vector<sim::Token> edited_text(std::span<const sim::Token> prompt) {
    sim::DecodingOptions options;
    options.max_new_tokens = context.settings().max_new_tokens;
    options.standardisation = {.temperature = 0};
    // The sequences of the comparison itself are numbered from 0.
    const sim::RandomStream edits(context.settings().seed, std::numeric_limits<std::uint64_t>::max());
    std::vector<sim::Token> text = sim::decode_autoregressively(*target, prompt, options, edits).tokens;
    const double share = context.settings().edit_share;
    const auto others = static_cast<double>(context.vocab_size() - 1);
    for (std::size_t i = 0; i < text.size(); ++i) {
      const auto n = static_cast<double>(i);
      if (std::floor(share * (n + 1)) == std::floor(share * n)) continue;
      const double u = edits.uniform(static_cast<std::int64_t>(i), 0, sim::Purpose::synthetic);
      const auto other = static_cast<std::int64_t>(u * others);
      text[i] = static_cast<sim::Token>(other < text[i] ? other : (other + 1) % context.vocab_size());
    }
    return text;
  }

  const MethodContext& context;
  sim::OwnedModel target;
  sim::InputCopyDraft draft;
};

}  // namespace

std::string lacks_early_exit(const MethodContext& context) {
  if (!context.source().target_weights) return "the source's target has no blocks";
  const std::int64_t blocks = sim::config_of(*context.source().target_weights).layers;
  const std::int64_t layer = context.settings().exit_layer;
  if (layer >= blocks) return fmt::format("the target has {} blocks and no exit so late", blocks);
  if (!context.source().exits) return "";
  const std::vector<std::int64_t> exits = sim::exits_of(*context.source().exits);
  if (std::ranges::find(exits, layer) != exits.end()) return "";
  return fmt::format("there is no exit behind {} blocks, but behind {}", layer, fmt::join(exits, ", "));
}

DraftBenchFactory early_exit_benches(const MethodContext& context) {
  return [&context](const core::Standardisation& standardisation, sim::Proposing proposing) {
    const auto& source = context.source();
    const auto model = std::make_shared<sim::Transformer>(
        source.target_weights, sim::TransformerOptions{.layers = context.settings().exit_layer, .exits = source.exits});
    const double call = model->operations_per_token() / context.target_operations();
    return DraftBench{context.target(), std::make_shared<sim::ModelDraft>(*model, standardisation, proposing), model,
                      [call](const sim::Counters& counters) {
                        return DraftUse{.other_calls = call * static_cast<double>(counters.draft_calls)};
                      }};
  };
}

std::string lacks_hierarchical(const MethodContext& context) {
  return context.source().bigram ? "" : "the source has no counted tables to draft for its draft model";
}

DraftBenchFactory hierarchical_benches(const MethodContext& context) {
  return [&context](const core::Standardisation& standardisation, sim::Proposing proposing) {
    const auto bench = std::make_shared<HierarchicalBench>(context, standardisation, proposing);
    return DraftBench{context.target(), {bench, &bench->draft}, nullptr, [bench](const sim::Counters&) {
                        return DraftUse{.model_calls = static_cast<double>(bench->draft.middle_work().calls)};
                      }};
  };
}

DraftBenchFactory input_copy_benches(const MethodContext& context) {
  return [&context](const core::Standardisation&, sim::Proposing) {
    const auto bench = std::make_shared<InputCopyBench>(context);
    return DraftBench{context.target(), {bench, &bench->draft}, nullptr, {}};
  };
}

}  // namespace specdec::validation
