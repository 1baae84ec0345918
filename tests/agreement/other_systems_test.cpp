// Blockwise decoding and beam search with a draft, against the closed forms of other_systems.hpp: where what the
// formulas assume holds, the systems take the calls that they say.

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/theory/other_systems.hpp"
#include "sim/beam_search.hpp"
#include "sim/blockwise.hpp"
#include "sim/decoding.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/exact_uniforms.hpp"

using namespace specdec;
using namespace specdec::test_support;
using Row = std::vector<double>;

namespace {

Tokens greedy_text(sim::ContextTableModel& target, std::int64_t tokens) {
  sim::DecodingOptions options;
  options.max_new_tokens = tokens;
  options.standardisation = {.temperature = 0};
  return decode_autoregressively(target, enumerated_prompt, options, sim::RandomStream(0, 0)).tokens;
}

/// Heads that are right independently of each other, with these probabilities.
class ChanceHeads {
 public:
  ChanceHeads(Row accuracy, Tokens text, const sim::UniformSource& uniforms)
      : accuracy_(std::move(accuracy)), text_(std::move(text)), uniforms_(uniforms) {}

  sim::OffsetPredictors of_one_run() const {
    return [this, round = std::int64_t{0}](std::span<const sim::Token> so_far, std::int64_t count) mutable {
      Tokens guesses;
      const std::size_t first = so_far.size() - enumerated_prompt.size();
      for (std::size_t j = 0; j < static_cast<std::size_t>(count); ++j) {
        const double u = uniforms_.uniform(round, static_cast<std::int64_t>(j), sim::Purpose::draft);
        guesses.push_back(u < accuracy_[j] ? text_[first + j] : (text_[first + j] + 1) % 4);
      }
      ++round;
      return guesses;
    };
  }

 private:
  Row accuracy_;
  Tokens text_;
  const sim::UniformSource& uniforms_;
};

/// Blocks that m tokens take in expectation, the last one cut.
double expected_blocks(const Row& accuracy, std::size_t m) {
  Row blocks(m + 1, 0);
  for (std::size_t n = 1; n <= m; ++n) {
    double reached = 1;
    const std::size_t heads = std::min(accuracy.size(), n - 1);
    blocks[n] = 1;
    for (std::size_t j = 0; j < heads; ++j) {
      blocks[n] += reached * (1 - accuracy[j]) * blocks[n - j - 1];
      reached *= accuracy[j];
    }
    blocks[n] += reached * blocks[n - heads - 1];
  }
  return blocks[m];
}

/// The target, or a token of which the target knows nothing: by the length of the text, in a share of all lengths.
class DraftOfGoodSteps {
 public:
  DraftOfGoodSteps(const sim::ContextTableModel& target, double share) : model_(target), share_(share) {}

  std::int64_t vocab_size() const { return model_.vocab_size(); }
  std::int64_t max_length() const { return model_.max_length(); }
  std::int64_t length() const { return model_.length(); }
  double operations_per_token() const { return 0; }
  void roll_back(std::int64_t length) { model_.roll_back(length); }
  void score(std::span<const sim::Token> block, std::span<double> rows) {
    model_.score(block, rows);
    if (rows.empty() || sim::RandomStream(5, 0).uniform(length(), 0, sim::Purpose::test) < share_) return;
    const std::span<double> last = rows.last(static_cast<std::size_t>(vocab_size()));
    std::fill(last.begin(), last.end(), 0.0);
    last.back() = 1;
  }

 private:
  sim::ContextTableModel model_;
  double share_;
};

}  // namespace

TEST_CASE(
    "over all ways that heads can be right, blocks take the expected calls, and long texts those of the formula") {
  sim::ContextTableModel target = sim::synthetic_bigram_pair(4, 1, 3).target;
  const Row accuracy = {0.8, 0.6, 0.4};
  for (std::int64_t m = 1; m <= 7; ++m) {
    ExactUniforms uniforms;
    const ChanceHeads heads(accuracy, greedy_text(target, m), uniforms);
    double total = 0, merged_calls = 0, two_call_calls = 0;
    sim::Counters counters;
    for (const auto proposal : {sim::BlockProposal::own_call, sim::BlockProposal::with_verification}) {
      uniforms.for_all(
          [&] {
            for (std::int64_t j = 0; j < 3; ++j)
              uniforms.cut(j, sim::Purpose::draft, {accuracy[static_cast<std::size_t>(j)]});
            counters = decode_blockwise(target, heads.of_one_run(), enumerated_prompt,
                                        {.block = 4, .proposal = proposal, .max_new_tokens = m})
                           .counters;
          },
          [&](double probability) {
            total += probability;
            (proposal == sim::BlockProposal::own_call ? two_call_calls : merged_calls) +=
                probability * static_cast<double>(counters.target_calls);
          });
    }
    CAPTURE(m);
    CHECK(total == Approx(2).epsilon(1e-12));
    CHECK(two_call_calls == Approx(2 * expected_blocks(accuracy, static_cast<std::size_t>(m))).epsilon(1e-12));
    CHECK(merged_calls == Approx(1 + expected_blocks(accuracy, static_cast<std::size_t>(m))).epsilon(1e-12));
  }
  // The formula is what a token adds to a long text; its start and its cut end are less than a block.
  const theory::BlockwiseDecoding formula = theory::blockwise_decoding(accuracy, 1000);
  CHECK(expected_blocks(accuracy, 1001) - expected_blocks(accuracy, 1000) ==
        Approx(1 / formula.block_tokens).epsilon(1e-12));
  CHECK(std::abs(expected_blocks(accuracy, 1000) - (formula.merged_runs - 1)) < 1);
}

// Blocks are independent: 5 standard errors, passed by all but 6e-7 of sound runs; the seed is fixed.
TEST_CASE("a long text takes the calls that its heads' accuracies say") {
  sim::ContextTableModel target = sim::synthetic_bigram_pair(4, 1, 3).target;
  const Row accuracy = {0.8, 0.6, 0.4};
  const std::int64_t m = 20'000;
  const sim::RandomStream stream(4, 0);
  const ChanceHeads heads(accuracy, greedy_text(target, m), stream);
  const sim::Counters counters =
      decode_blockwise(target, heads.of_one_run(), enumerated_prompt, {.block = 4, .max_new_tokens = m}).counters;
  const theory::BlockwiseDecoding formula = theory::blockwise_decoding(accuracy, m);
  // K is 1, 2, 3, 4 with .2, .32, .288, .192.
  const double variance = 0.2 + 4 * 0.32 + 9 * 0.288 + 16 * 0.192 - 2.472 * 2.472;
  const double blocks = static_cast<double>(m) / formula.block_tokens;
  CHECK(std::abs(static_cast<double>(counters.target_calls) - formula.merged_runs) <
        5 * std::sqrt(blocks * variance) / formula.block_tokens);
}

// The rounds of one search: 5 standard errors as above.
TEST_CASE("a drafted beam search makes the steps per round and scores the prefixes that its formula says") {
  Row rows;
  const std::int64_t contexts = sim::ContextTableModel::context_count(5, 2);
  for (std::int64_t c = 0; c < contexts; ++c) {
    double total = 0;
    Row row;
    for (std::int64_t x = 0; x < 4; ++x) {
      row.push_back(0.05 + sim::RandomStream(1, 0).uniform(c, x, sim::Purpose::test));
      total += row.back();
    }
    for (const double w : row) rows.push_back(w / total);
    rows.push_back(0);
  }
  sim::ContextTableModel target(5, 2, rows);
  for (const double kept : {0.0, 0.7, 1.0}) {
    DraftOfGoodSteps draft(target, kept);
    const sim::BeamSearchOptions options{.width = 2, .max_new_tokens = 4001};
    const sim::BeamSearch found = search_beams_speculatively(target, draft, enumerated_prompt, options, {2, 3});
    const sim::Counters& counters = found.counters;
    const theory::SpeculativeBeams formula = theory::speculative_beams(core::AcceptanceRate(kept), 2, 2, 3, 0);
    const auto rounds = static_cast<double>(counters.steps);
    // K is 1, ..., 4 with .3, .21, .147, .343 at .7.
    const double variance = kept == 0.7 ? 0.3 + 4 * 0.21 + 9 * 0.147 + 16 * 0.343 - 2.533 * 2.533 : 0;
    CAPTURE(kept);
    CHECK(std::abs(static_cast<double>(counters.tokens) / rounds - formula.tokens) <=
          5 * std::sqrt(variance / rounds) + formula.tokens / rounds);
    // All rounds but the first, with one beam, and the last ones, with fewer steps.
    CHECK(static_cast<double>(counters.target_positions) / rounds ==
          Approx(formula.target_evaluations).margin(4 * formula.target_evaluations / rounds));
    if (kept == 0.7) CHECK(found.beams == search_beams(target, enumerated_prompt, options).beams);
  }
}
