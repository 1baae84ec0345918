#include "sim/decoding.hpp"

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "sim/table_models.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_models.hpp"
#include "tests/support/scripted_uniforms.hpp"

using namespace specdec::sim;
using specdec::test_support::Likeness;
using specdec::test_support::random_pair;
using Tokens = std::vector<Token>;

namespace {

DecodingOptions options_for(std::int64_t gamma, std::int64_t tokens) {
  DecodingOptions options;
  options.gamma = gamma;
  options.max_new_tokens = tokens;
  return options;
}

/// Remembers the blocks it was asked to score and the length of its prefix before each.
class RecordingModel final : public LanguageModel {
 public:
  struct Call {
    std::int64_t held;
    Tokens block;
    std::size_t rows;
  };

  explicit RecordingModel(ContextTableModel model) : model_(std::move(model)) {}
  std::int64_t vocab_size() const override { return model_.vocab_size(); }
  std::int64_t max_length() const override { return model_.max_length(); }
  std::int64_t length() const override { return model_.length(); }
  double operations_per_token() const override { return 7; }
  void score(std::span<const Token> block, std::span<double> rows) override {
    const std::size_t vocab = static_cast<std::size_t>(vocab_size());
    calls.push_back({length(), Tokens(block.begin(), block.end()), rows.size() / vocab});
    model_.score(block, rows);
  }
  void roll_back(std::int64_t length) override { model_.roll_back(length); }

  std::vector<Call> calls;

 private:
  ContextTableModel model_;
};

/// 0 -> 1 -> 2 -> 3 -> 0, certainly.
ContextTableModel cycle() { return ContextTableModel(4, 1, {0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0}); }

/// Fails on a uniform that was asked for before.
class OnceOnly final : public UniformSource {
 public:
  double uniform(std::int64_t round, std::int64_t slot, Purpose purpose) const override {
    repeated_ |= !seen_.emplace(round, slot, purpose).second;
    return stream_.uniform(round, slot, purpose);
  }
  bool repeated() const { return repeated_; }

 private:
  RandomStream stream_{3, 4};
  mutable std::set<std::tuple<std::int64_t, std::int64_t, Purpose>> seen_;
  mutable bool repeated_ = false;
};

std::int64_t total(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("at temperature 0 the text is greedy decoding's, for every gamma") {
  const Tokens prompt = {1, 2, 0};
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    TablePair pair = synthetic_bigram_pair(30, 1.5, seed);
    DecodingOptions options = options_for(0, 40);
    options.standardisation.temperature = 0;
    const Tokens greedy = decode_autoregressively(pair.target, prompt, options, RandomStream(0, 0)).tokens;
    for (options.gamma = 0; options.gamma <= 7; ++options.gamma) {
      const Generation run = decode_speculatively(pair.target, pair.draft, prompt, options, RandomStream(seed, 1));
      CHECK(run.tokens == greedy);
    }
  }
}

TEST_CASE("without an end token the counters add up") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto gamma = static_cast<std::int64_t>(seed % 6);
    TablePair pair = synthetic_bigram_pair(10, 1, seed);
    const Generation run =
        decode_speculatively(pair.target, pair.draft, Tokens{1, 2}, options_for(gamma, 50), RandomStream(seed, 0));
    const Counters& c = run.counters;
    CAPTURE(seed, gamma);
    CHECK(run.tokens.size() == 50);
    CHECK_FALSE(run.ended);
    CHECK(c.tokens == 50);
    CHECK(c.tokens == c.accepted + c.steps);
    CHECK(c.steps == static_cast<std::int64_t>(run.steps.size()));
    CHECK(c.target_calls == c.steps);
    CHECK(c.target_positions == c.drafted + c.steps);
    CHECK(c.draft_calls == c.drafted);
    CHECK(total(c.drafted_at) == c.drafted);
    CHECK(total(c.accepted_at) == c.accepted);

    Counters from_steps;
    std::int64_t catch_ups = 0;
    for (std::size_t s = 0; s < run.steps.size(); ++s) {
      const Step& step = run.steps[s];
      from_steps.drafted += step.drafted;
      from_steps.accepted += step.accepted;
      from_steps.tokens += step.emitted;
      CHECK(step.emitted == step.accepted + 1);
      CHECK((step.rejected == -1) == (step.accepted == step.drafted));
      const bool drafts_again = s + 1 < run.steps.size() && run.steps[s + 1].drafted > 0;
      catch_ups += step.drafted > 0 && step.accepted == step.drafted && drafts_again;
    }
    CHECK(from_steps.drafted == c.drafted);
    CHECK(from_steps.accepted == c.accepted);
    CHECK(from_steps.tokens == c.tokens);
    CHECK(c.draft_positions == c.drafted + catch_ups);
  }
}

TEST_CASE("a draft that equals its target is always accepted, and the last step drafts no more than is wanted") {
  TablePair pair = synthetic_bigram_pair(10, 0, 1);
  const RandomStream stream(0, 0);
  const Generation run = decode_speculatively(pair.target, pair.draft, Tokens{0}, options_for(4, 13), stream);
  std::vector<std::int64_t> drafted;
  for (const Step& step : run.steps) drafted.push_back(step.drafted);
  CHECK(drafted == std::vector<std::int64_t>{4, 4, 2});
  CHECK(run.counters.accepted == 10);
  const Generation shortest = decode_speculatively(pair.target, pair.draft, Tokens{0}, options_for(4, 1), stream);
  CHECK(shortest.steps.front().drafted == 0);
}

TEST_CASE("each step is one target call over the last token and the drafts, each draft one call") {
  RecordingModel target(synthetic_bigram_pair(10, 0.5, 2).target);
  RecordingModel draft(synthetic_bigram_pair(10, 0.5, 2).draft);
  const Tokens prompt = {3, 1, 4};
  const Generation run = decode_speculatively(target, draft, prompt, options_for(3, 30), RandomStream(5, 5));

  REQUIRE(target.calls.size() == run.steps.size() + 1);
  REQUIRE(draft.calls.size() == static_cast<std::size_t>(run.counters.drafted) + 1);
  for (const RecordingModel* model : {&target, &draft}) {
    CHECK(model->calls[0].held == 0);
    CHECK(model->calls[0].block == Tokens{3, 1});
    CHECK(model->calls[0].rows == 0);
  }
  Tokens text = prompt;
  text.insert(text.end(), run.tokens.begin(), run.tokens.end());
  std::int64_t length = 3;
  std::size_t draft_call = 1;
  bool accepted_all = false;
  for (std::size_t s = 0; s < run.steps.size(); ++s) {
    const Step& step = run.steps[s];
    const RecordingModel::Call& call = target.calls[s + 1];
    CHECK(call.held == length - 1);
    REQUIRE(call.block.size() == static_cast<std::size_t>(step.drafted) + 1);
    CHECK(call.rows == call.block.size());
    CHECK(call.block[0] == text[static_cast<std::size_t>(length) - 1]);
    for (std::int64_t i = 0; i < step.drafted; ++i) {
      const RecordingModel::Call& proposal = draft.calls[draft_call++];
      CHECK(proposal.rows == 1);
      CHECK(proposal.block.size() == (i == 0 && accepted_all ? 2u : 1u));
      CHECK(proposal.block.back() == call.block[static_cast<std::size_t>(i)]);
    }
    if (step.rejected >= 0) CHECK(step.rejected == call.block[static_cast<std::size_t>(step.accepted) + 1]);
    accepted_all = step.accepted == step.drafted;
    length += step.emitted;
  }
  // 7 operations per token in either model.
  const std::int64_t positions = run.counters.draft_positions + run.counters.target_positions;
  CHECK(run.counters.operations == 7.0 * static_cast<double>(positions));
}

TEST_CASE("an end token among the accepted drafts ends the text there") {
  ContextTableModel target = cycle();
  ContextTableModel draft = cycle();
  DecodingOptions options = options_for(4, 20);
  options.end_token = 2;
  const Generation run = decode_speculatively(target, draft, Tokens{0}, options, RandomStream(0, 0));
  CHECK(run.tokens == Tokens{1, 2});
  CHECK(run.ended);
  REQUIRE(run.steps.size() == 1);
  CHECK(run.steps[0].accepted == 4);
  CHECK(run.steps[0].emitted == 2);
  CHECK(run.counters.tokens == 2);
  CHECK(run.counters.accepted == 4);
}

TEST_CASE("an end token as the target's own token ends the text too") {
  ContextTableModel target = cycle();
  ContextTableModel draft = cycle();
  DecodingOptions options = options_for(1, 20);
  options.end_token = 2;
  CHECK(decode_speculatively(target, draft, Tokens{0}, options, RandomStream(0, 0)).tokens == Tokens{1, 2});
  // The draft always proposes 0, so 1 and 2 are corrections.
  ContextTableModel zero = unigram_model({1, 0, 0, 0});
  const Generation corrected = decode_speculatively(target, zero, Tokens{0}, options, RandomStream(0, 0));
  CHECK(corrected.tokens == Tokens{1, 2});
  CHECK(corrected.ended);
  const Generation plain = decode_autoregressively(target, Tokens{0}, options, RandomStream(0, 0));
  CHECK(plain.tokens == Tokens{1, 2});
  CHECK(plain.ended);
}

TEST_CASE("a text that stops at the length limit has not ended") {
  ContextTableModel target = cycle();
  DecodingOptions options = options_for(2, 5);
  const Generation run = decode_autoregressively(target, Tokens{0}, options, RandomStream(0, 0));
  CHECK(run.tokens == Tokens{1, 2, 3, 0, 1});
  CHECK_FALSE(run.ended);
  options.max_new_tokens = 0;
  CHECK(decode_autoregressively(target, Tokens{0}, options, RandomStream(0, 0)).tokens.empty());
}

TEST_CASE("plain decoding counts one target call per token and nothing of a draft") {
  RecordingModel target(cycle());
  const Generation run = decode_autoregressively(target, Tokens{0, 1}, options_for(9, 6), RandomStream(0, 0));
  Counters expected;
  expected.tokens = expected.target_calls = expected.target_positions = 6;
  expected.operations = 42;
  CHECK(run.counters == expected);
  CHECK(run.steps.empty());
}

TEST_CASE("what the models held before does not matter") {
  TablePair pair = synthetic_bigram_pair(10, 1, 6);
  const auto run = [&] {
    return decode_speculatively(pair.target, pair.draft, Tokens{1}, options_for(3, 20), RandomStream(1, 2)).tokens;
  };
  const Tokens first = run();
  pair.target.score(Tokens{5, 5, 5}, {});
  pair.draft.roll_back(1);
  CHECK(run() == first);
}

TEST_CASE("no uniform is used twice, whether its draft was discarded or not") {
  TablePair pair = synthetic_bigram_pair(10, 1.5, 8);
  const OnceOnly speculative;
  decode_speculatively(pair.target, pair.draft, Tokens{0}, options_for(4, 200), speculative);
  CHECK_FALSE(speculative.repeated());
  const OnceOnly plain;
  decode_autoregressively(pair.target, Tokens{0}, options_for(4, 200), plain);
  CHECK_FALSE(plain.repeated());
}

TEST_CASE("a draft model is standardised like the target, another draft as it is told") {
  // At temperature 0 the target says 0 and the draft too, although the draft's row alone would also propose 1.
  TablePair pair = fixed_pair({0.6, 0.4}, {0.51, 0.49});
  DecodingOptions options = options_for(5, 60);
  options.standardisation.temperature = 0;
  const Generation same = decode_speculatively(pair.target, pair.draft, Tokens{0}, options, RandomStream(0, 0));
  CHECK(same.counters.accepted == same.counters.drafted);
  ModelDraft draft(pair.draft, {});
  const Generation own = decode_with_draft(pair.target, draft, Tokens{0}, options, RandomStream(0, 0));
  CHECK(own.counters.accepted < own.counters.drafted);
  CHECK(own.tokens == same.tokens);
}

TEST_CASE("prompt and text may fill a model's length exactly") {
  // The last token is emitted without being scored.
  ContextTableModel target(2, 0, {0.5, 0.5}, 8);
  ContextTableModel draft(2, 0, {0.5, 0.5}, 8);
  CHECK(decode_speculatively(target, draft, Tokens{0, 1, 0}, options_for(3, 6), RandomStream(0, 0)).tokens.size() == 6);
  CHECK_THROWS_WITH(decode_speculatively(target, draft, Tokens{0, 1, 0}, options_for(3, 7), RandomStream(0, 0)),
                    "decode_speculatively: max_new_tokens is 7, but must be in [0, 6]");
  CHECK_THROWS_WITH(decode_autoregressively(target, Tokens(9, 0), options_for(3, 1), RandomStream(0, 0)),
                    "decode_autoregressively: prompt length is 9, but must be in [1, 8]");
}

TEST_CASE("bad arguments are refused before a model is touched") {
  TablePair pair = fixed_pair({0.5, 0.5}, {0.5, 0.5});
  pair.target.score(Tokens{0, 0}, {});
  ContextTableModel wider = uniform_model(3);
  const RandomStream stream(0, 0);
  CHECK_THROWS_AS(decode_speculatively(pair.target, pair.draft, {}, options_for(1, 1), stream), std::domain_error);
  CHECK_THROWS_AS(decode_autoregressively(pair.target, {}, options_for(1, 1), stream), std::domain_error);
  CHECK_THROWS_WITH(decode_speculatively(pair.target, wider, Tokens{0}, options_for(1, 1), stream),
                    "decode_speculatively: the target's vocabulary has 2 tokens, but the draft's has 3");
  CHECK_THROWS_WITH(decode_speculatively(pair.target, pair.draft, Tokens{0}, options_for(-1, 1), stream),
                    Catch::Contains("gamma is -1"));
  CHECK_THROWS_WITH(decode_speculatively(pair.target, pair.draft, Tokens{0}, options_for(1, -1), stream),
                    Catch::Contains("max_new_tokens is -1"));
  DecodingOptions options = options_for(1, 1);
  options.standardisation.top_p = 2;
  CHECK_THROWS_AS(decode_speculatively(pair.target, pair.draft, Tokens{0}, options, stream), std::domain_error);
  CHECK_THROWS_AS(decode_autoregressively(pair.target, Tokens{0}, options, stream), std::domain_error);
  CHECK(pair.target.length() == 2);
}
