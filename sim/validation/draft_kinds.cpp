#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "sim/ngram_model.hpp"
#include "sim/table_models.hpp"
#include "sim/validation/draft_makers.hpp"
#include "sim/validation/methods.hpp"

namespace specdec::validation {
namespace {

/// Discount for the n-grams of short texts, most of which occur once.
constexpr double ngram_discount = 0.75;

/// Copies where two tokens agree, and another draft elsewhere: it guesses better than a copy after one token.
struct CopiesFirst {
  CopiesFirst(const MethodContext& context, DraftBench bench)
      : copies(context.vocab_size(), std::min<std::int64_t>(2, context.settings().ngram_order),
               context.settings().ngram_order),
        otherwise(std::move(bench)),
        draft(copies, *otherwise.draft) {}

  sim::LookupDraft copies;
  DraftBench otherwise;
  sim::FallbackDraft draft;
};

DraftUse use_of_draft_model(const sim::Counters& counters) {
  return {.model_calls = static_cast<double>(counters.draft_calls)};
}

/// Drafts from a language model; `use` as in DraftBench.
DraftBenchFactory model_benches(const MethodContext& context, sim::ModelFactory model,
                                std::function<DraftUse(const sim::Counters&)> use) {
  return [&context, model = std::move(model), use = std::move(use)](const core::Standardisation& standardisation,
                                                                    sim::Proposing proposing) {
    const sim::OwnedModel drafting = model(context.model_threads());
    return DraftBench{context.target(), std::make_shared<sim::ModelDraft>(*drafting, standardisation, proposing),
                      drafting, use};
  };
}

std::string lacks_unigram(const MethodContext& context) {
  return context.source().unigram ? "" : "the source has no counted tables";
}
std::string lacks_bigram(const MethodContext& context) {
  return context.source().bigram ? "" : "the source has no counted tables";
}
std::string lacks_texts(const MethodContext& context) {
  return context.source().texts.empty() ? "the source has no texts to count n-grams in" : "";
}

DraftBenchFactory draft_model(const MethodContext& context) {
  return model_benches(context, context.source().models.draft, use_of_draft_model);
}
DraftBenchFactory unigram(const MethodContext& context) { return model_benches(context, context.source().unigram, {}); }
DraftBenchFactory bigram(const MethodContext& context) { return model_benches(context, context.source().bigram, {}); }

DraftBenchFactory ngrams(const MethodContext& context) {
  const sim::NgramModel model(context.vocab_size(), context.source().texts, context.settings().ngram_order,
                              ngram_discount);
  return model_benches(context, sim::factory_of(model), {});
}

DraftBenchFactory uniform(const MethodContext& context) {
  return model_benches(context, sim::factory_of(sim::uniform_model(context.vocab_size())), {});
}

DraftBenchFactory copies(const MethodContext& context) {
  return [&context](const core::Standardisation&, sim::Proposing) {
    return DraftBench{context.target(),
                      std::make_shared<sim::LookupDraft>(context.vocab_size(), 1, context.settings().ngram_order),
                      nullptr,
                      {}};
  };
}

DraftBenchFactory copies_before(const MethodContext& context, DraftBenchFactory otherwise) {
  return [&context, otherwise = std::move(otherwise)](const core::Standardisation& standardisation,
                                                      sim::Proposing proposing) {
    const auto both = std::make_shared<CopiesFirst>(context, otherwise(standardisation, proposing));
    return DraftBench{both->otherwise.target, {both, &both->draft}, nullptr, both->otherwise.use};
  };
}

DraftBenchFactory combination(const MethodContext& context) { return copies_before(context, draft_model(context)); }
DraftBenchFactory copies_and_eagle(const MethodContext& context) {
  return copies_before(context, eagle_drafts(context));
}

}  // namespace

std::span<const DraftKind> draft_kinds() {
  static constexpr std::array kinds{
      DraftKind{"model", nullptr, draft_model, true, {.draft_model = true}},
      DraftKind{"unigram", lacks_unigram, unigram, true},
      DraftKind{"bigram", lacks_bigram, bigram, true},
      DraftKind{"ngram", lacks_texts, ngrams, true, {.texts = true}},
      DraftKind{"copy", nullptr, copies, false, {}},
      DraftKind{"combination", nullptr, combination, false, {.draft_model = true}},
      DraftKind{"copy-eagle", lacks_eagle_head, copies_and_eagle, false, {.draft_model = true, .eagle_head = true}},
      DraftKind{"eagle", lacks_eagle_head, eagle_drafts, false, {.draft_model = true, .eagle_head = true}},
      DraftKind{
          "parallel", lacks_parallel_heads, parallel_drafts, false, {.draft_model = true, .parallel_heads = true}},
      DraftKind{"random", nullptr, uniform, true},
      DraftKind{"early-exit",
                lacks_early_exit,
                early_exit_benches,
                true,
                {.exit_layer = true, .draft_model = true, .exits = true}},
      DraftKind{"hierarchical", lacks_hierarchical, hierarchical_benches, false, {.draft_model = true}},
      DraftKind{"input-copy", nullptr, input_copy_benches, false, {}},
  };
  return kinds;
}

}  // namespace specdec::validation
