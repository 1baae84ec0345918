// A draft with a draft of its own, copies of an input, and a model that is left early, against the closed forms of
// other_drafts.hpp and other_systems.hpp.

#include <cmath>
#include <filesystem>
#include <vector>

#include "analysis/theory/other_drafts.hpp"
#include "analysis/theory/other_systems.hpp"
#include "sim/decoding.hpp"
#include "sim/drafts/hierarchical.hpp"
#include "sim/drafts/input_copy.hpp"
#include "sim/table_models.hpp"
#include "sim/transformer/early_exit.hpp"
#include "sim/transformer/transformer.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"

using namespace specdec;
using sim::Token;
using TokenList = std::vector<Token>;

TEST_CASE("a draft with a draft of its own costs what the closed form says, within 5 standard errors") {
  // Acceptances 0.8 and 0.7 at every prefix. Over 25 texts the deviation in its own standard errors follows Student's
  // law: beyond 5 with probability 4e-5. The end of a text costs less than a tenth of one.
  constexpr double c = 0.1;
  constexpr double inner_c = 0.05;
  sim::TablePair pair = sim::fixed_pair({0.5, 0.5}, {0.7, 0.3});
  sim::ContextTableModel inner = sim::unigram_model({0.4, 0.6});
  const double expected = 1 / theory::hierarchical_speedup(core::AcceptanceRate(0.8), 5, {.c = c},
                                                           {core::AcceptanceRate(0.7), 3, {.c = inner_c}});
  const auto deviation = [&](std::int64_t inner_gamma) {
    std::vector<double> costs;
    double mean = 0;
    for (std::uint64_t text = 0; text < 25; ++text) {
      sim::ModelDraft inner_draft(inner, {});
      sim::HierarchicalDraft draft(pair.draft, inner_draft, inner_gamma, {});
      sim::DecodingOptions options;
      options.gamma = 5;
      options.max_new_tokens = 20'000;
      const sim::Generation run =
          sim::decode_with_draft(pair.target, draft, TokenList{0}, options, sim::RandomStream(9, text));
      const double calls = c * (static_cast<double>(draft.middle_work().calls) +
                                inner_c * static_cast<double>(draft.inner_work().calls));
      costs.push_back((static_cast<double>(run.counters.steps) + calls) / 20'000);
      mean += costs.back() / 25;
    }
    double square = 0;
    for (const double cost : costs) square += (cost - mean) * (cost - mean) / 24;
    return (mean - expected) / std::sqrt(square / 25);
  };
  CHECK(std::abs(deviation(3)) < 5);
  CHECK(std::abs(deviation(2)) > 5);
}

TEST_CASE(
    "copying an input takes as many runs of the target as it has edits, and one more for each to find its place") {
  // The text counts from 1 to 30; the inputs have another token at some places.
  std::vector<double> rows(64 * 64);
  for (std::size_t x = 0; x < 64; ++x) rows[x * 64 + (x + 1) % 64] = 1;
  sim::ContextTableModel target(64, 1, rows);
  for (const std::int64_t edits : {0, 1, 2, 5}) {
    TokenList input;
    for (Token x = 1; x <= 30; ++x) input.push_back(x % 5 == 3 && x / 5 < edits ? 40 + x : x);
    sim::InputCopyDraft draft(64, [&](std::span<const Token>) { return input; });
    sim::DecodingOptions options;
    options.gamma = 40;
    options.max_new_tokens = 30;
    options.standardisation = {.temperature = 0};
    const sim::Generation run = sim::decode_with_draft(target, draft, TokenList{0}, options, sim::RandomStream(1, 0));
    CHECK(run.tokens.back() == 30);
    CHECK(30.0 / static_cast<double>(run.counters.target_calls) ==
          Approx(theory::input_copy_speedup(30, edits, 1)).epsilon(1e-14));
  }
}

TEST_CASE("the shipped target left early runs the layers and operations of the closed form") {
  const auto models = std::filesystem::path(tests::source_dir()) / "sim" / "models";
  const auto weights = sim::load_checkpoint(models / "target");
  const double one_block = sim::Transformer(weights, {.layers = 1}).operations_per_token();
  const double block = sim::Transformer(weights, {.layers = 2}).operations_per_token() - one_block;
  const double head = one_block - block;
  sim::Transformer full(weights);
  for (const auto confidence : {sim::ExitConfidence::softmax_response, sim::ExitConfidence::state_saturation}) {
    const bool asks_head = confidence == sim::ExitConfidence::softmax_response;
    sim::EarlyExitTransformer early(weights, {.confidence = confidence, .threshold = asks_head ? 0.3 : 0.93});
    const double stored = (early.operations(1) - one_block) / 5;
    const TokenList prompt{1, 300, 301, 302, 303, 304};
    early.run_all_blocks_before(5);
    sim::DecodingOptions options;
    options.max_new_tokens = 120;
    const sim::Generation run = sim::decode_autoregressively(early, prompt, options, sim::RandomStream(2, 0));
    const sim::EarlyExitText text = sim::measure_early_exit(early, full, prompt, run.tokens, options.standardisation);
    std::vector<double> law;
    double mean = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      law.push_back(static_cast<double>(text.blocks_run[i]) / 120);
      mean += static_cast<double>(i + 1) * law.back();
    }
    // Asking whether to leave costs the head once a block, or nothing that is counted.
    const theory::EarlyExit form = theory::early_exit(law, asks_head ? head / block : 0);
    CAPTURE(confidence, form.layers);
    CHECK(form.layers == Approx(mean).epsilon(1e-13));
    CHECK(form.layers > 1.5);
    CHECK(form.layers < 5.5);
    const double expected = block * 6 / form.speedup + stored * (6 - form.layers) + (asks_head ? 0 : head);
    CHECK(run.counters.operations / 120 == Approx(expected).epsilon(1e-12));
    CHECK(text.operations == Approx(run.counters.operations).epsilon(1e-12));
  }
}
