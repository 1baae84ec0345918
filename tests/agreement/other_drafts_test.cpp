// A draft with a draft of its own, and copies of an input, against their closed forms.

#include <cmath>
#include <vector>

#include "analysis/theory/finite_generation.hpp"
#include "analysis/theory/tokens.hpp"
#include "sim/decoding.hpp"
#include "sim/drafts/hierarchical.hpp"
#include "sim/drafts/input_copy.hpp"
#include "sim/table_models.hpp"
#include "tests/support/catch.hpp"

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
  const double drafting = theory::finite_generation(core::AcceptanceRate(0.7), 3, 5, {.c = inner_c}).expected_cost;
  const double expected = (1 + c * drafting) / theory::expected_tokens(core::AcceptanceRate(0.8), 5);
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
    CHECK(run.counters.target_calls == 1 + 2 * edits);
  }
}
