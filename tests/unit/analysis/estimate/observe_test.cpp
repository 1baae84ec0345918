#include "analysis/estimate/observe.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "analysis/core/distribution.hpp"
#include "analysis/theory/lenience.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/recorded_pair.hpp"
#include "tests/support/source_dir.hpp"
#include "traces/formats/recording_formats.hpp"

using namespace specdec;
using estimate::Observations;
using estimate::ObserveOptions;
using estimate::Observer;
using estimate::RuleUndefined;
using tests::MemorySource;
using tests::recorded_pair;
using tests::RecordedPair;
using traces::AcceptanceRule;
using traces::LogprobSpace;
using traces::PositionBatch;
using traces::Tier;
using traces::TraceMetadata;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

Observations observe(const PositionBatch& batch, const TraceMetadata& metadata = {},
                     const ObserveOptions& options = {}) {
  const MemorySource source(metadata);
  return Observer(metadata, options).observe(source, batch);
}

ObserveOptions with_rule(AcceptanceRule rule) {
  ObserveOptions options;
  options.rule = rule;
  return options;
}

std::vector<double> reshaped(std::span<const float> row, const core::Standardisation& how) {
  std::vector<double> p(row.begin(), row.end());
  core::standardise(p, how);
  return p;
}

std::size_t argmax(const std::vector<double>& row) { return static_cast<std::size_t>(core::argmax(row)); }

/// The scalar tier of a pair, by plain arithmetic.
struct Scalars {
  std::vector<float> target, draft, overlap;
  std::vector<std::int32_t> target_rank, draft_rank;
  PositionBatch batch;

  explicit Scalars(const RecordedPair& pair) {
    for (std::int64_t i = 0; i < pair.positions; ++i) {
      const std::vector<double> p = reshaped(pair.target_row(i), {});
      const std::vector<double> q = reshaped(pair.draft_row(i), {});
      const std::size_t x = at(pair.token[at(i)]);
      target.push_back(static_cast<float>(std::log(p[x])));
      draft.push_back(static_cast<float>(std::log(q[x])));
      target_rank.push_back(rank(p, x));
      draft_rank.push_back(rank(q, x));
      double sum = 0;
      for (std::size_t y = 0; y < p.size(); ++y) sum += std::min(p[y], q[y]);
      overlap.push_back(static_cast<float>(sum));
    }
    batch.size = pair.positions;
    batch.tier = Tier::scalar;
    batch.sequence = pair.sequence;
    batch.place = pair.place;
    batch.token = pair.token;
    batch.target_token_logprob = target;
    batch.draft_token_logprob = draft;
  }

 private:
  static std::int32_t rank(const std::vector<double>& row, std::size_t x) {
    std::int32_t rank = 1;
    for (const double value : row) rank += value > row[x];
    return rank;
  }
};

/// Two positions of the top-k tier over a vocabulary of 5, each with two tokens of each model.
struct TopTokens {
  std::vector<std::int64_t> sequence{0, 0}, place{0, 1};
  std::vector<std::int32_t> token{1, 2};
  std::vector<std::int32_t> ids{1, 2, 2, 3};
  std::vector<float> target{-0.5F, -1.5F, -0.25F, -2.5F}, draft{-0.75F, -1.25F, -0.5F, -1.75F};
  PositionBatch batch;

  TopTokens() {
    batch.size = 2;
    batch.tier = Tier::top_k;
    batch.sequence = sequence;
    batch.place = place;
    batch.token = token;
    const auto set = [&](traces::TopK& top, const std::vector<float>& logprobs) {
      top.k = 2;
      top.ids = ids;
      top.logprobs = logprobs;
    };
    set(batch.target_top_k, target);
    set(batch.draft_top_k, draft);
  }
  TopTokens(const TopTokens&) = delete;
  TopTokens& operator=(const TopTokens&) = delete;
};

/// The codes of the notes on one batch.
std::vector<std::string> notes_of(const PositionBatch& batch, const TraceMetadata& metadata = {},
                                  const ObserveOptions& options = {}) {
  Observer observer(metadata, options);
  observer.observe(MemorySource(metadata), batch);
  std::vector<std::string> codes;
  for (const Note& note : observer.notes()) codes.push_back(note.code);
  return codes;
}

}  // namespace

TEST_CASE("full rows give every column as the sums over the vocabulary define it") {
  const RecordedPair pair = recorded_pair(37, 50, 10, 1);
  const Observations seen = observe(pair.full());
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    const std::vector<double> p = reshaped(pair.target_row(i), {});
    const std::vector<double> q = reshaped(pair.draft_row(i), {});
    double overlap = 0, distance = 0, entropy = 0, second = 0, surprisal2 = 0;
    for (std::size_t x = 0; x < p.size(); ++x) {
      overlap += std::min(p[x], q[x]);
      distance += std::abs(p[x] - q[x]) / 2;
      entropy -= p[x] * std::log(p[x]);
      second += p[x] * std::pow(std::min(1.0, q[x] / p[x]), 2);
      surprisal2 += p[x] * std::pow(std::log(p[x]), 2);
    }
    const std::size_t x = at(pair.token[at(i)]);
    CHECK(seen.mean_acceptance.lower[at(i)] == Approx(overlap).epsilon(1e-6));
    CHECK(seen.d_lk.lower[at(i)] == Approx(distance).epsilon(1e-6));
    CHECK(seen.target_entropy[at(i)] == Approx(entropy).epsilon(1e-6));
    CHECK(seen.acceptance_deviation.variance[at(i)] == Approx(second - overlap * overlap).margin(1e-6));
    CHECK(seen.surprisal_deviation.variance[at(i)] == Approx(surprisal2 - entropy * entropy).margin(1e-5));
    CHECK(seen.acceptance.lower[at(i)] == Approx(std::min(1.0, q[x] / p[x])).epsilon(1e-9));
    CHECK(seen.surprisal[at(i)] == Approx(-std::log(p[x])).epsilon(1e-9));
    CHECK(seen.draft_token_probability[at(i)] == Approx(q[x]).epsilon(1e-9));
    CHECK(seen.by_rule[2].lower[at(i)] == (argmax(p) == argmax(q) ? 1 : 0));
  }
  CHECK(seen.mean_acceptance.exact());
  CHECK(seen.acceptance.exact());
}

TEST_CASE("the greedy rules compare argmaxes") {
  const RecordedPair pair = recorded_pair(8, 60, 10, 2);
  const Observations greedy_draft = observe(pair.full(), {}, with_rule(AcceptanceRule::greedy_draft));
  const Observations greedy = observe(pair.full(), {}, with_rule(AcceptanceRule::greedy));
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    const std::vector<double> p = reshaped(pair.target_row(i), {});
    const std::vector<double> q = reshaped(pair.draft_row(i), {});
    const double m = p[argmax(q)];
    CHECK(greedy_draft.acceptance.lower[at(i)] == (at(pair.token[at(i)]) == argmax(q) ? 1 : 0));
    CHECK(greedy_draft.mean_acceptance.lower[at(i)] == Approx(m).epsilon(1e-6));
    CHECK(greedy_draft.acceptance_deviation.variance[at(i)] == Approx(m * (1 - m)).epsilon(1e-6));
    CHECK(greedy.acceptance.lower[at(i)] == (argmax(p) == argmax(q) ? 1 : 0));
    CHECK(greedy.mean_acceptance.lower[at(i)] == greedy.acceptance.lower[at(i)]);
    CHECK(greedy.acceptance_deviation.variance[at(i)] == 0);
  }
  CHECK(greedy.by_rule[1].lower == greedy_draft.mean_acceptance.lower);
}

TEST_CASE("raw rows are reshaped as the text was sampled, processed ones stay") {
  const core::Standardisation sampling{0.7, 5, 0.9};
  const RecordedPair pair = recorded_pair(20, 40, 10, 3, sampling);
  TraceMetadata metadata;
  metadata.temperature = sampling.temperature;
  metadata.top_k = sampling.top_k;
  metadata.top_p = sampling.top_p;
  metadata.logprob_space = LogprobSpace::raw;
  const Observations seen = observe(pair.full(), metadata);
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    const std::vector<double> p = reshaped(pair.target_row(i), sampling);
    const std::vector<double> q = reshaped(pair.draft_row(i), sampling);
    double overlap = 0;
    for (std::size_t x = 0; x < p.size(); ++x) overlap += std::min(p[x], q[x]);
    const std::size_t x = at(pair.token[at(i)]);
    CHECK(seen.mean_acceptance.lower[at(i)] == Approx(overlap).epsilon(2e-6).margin(1e-12));
    CHECK(seen.acceptance.lower[at(i)] == Approx(std::min(1.0, q[x] / p[x])).epsilon(2e-6));
  }
  metadata.logprob_space = LogprobSpace::processed;
  CHECK(observe(pair.full(), metadata).mean_acceptance.lower == observe(pair.full()).mean_acceptance.lower);
  metadata.logprob_space = LogprobSpace::unknown;
  CHECK_THROWS_AS(observe(pair.full(), metadata), RuleUndefined);
}

TEST_CASE("full rows of text at temperature 0 give the greedy rule under every rule") {
  const RecordedPair pair = recorded_pair(12, 60, 10, 4, {0, 0, 1});
  TraceMetadata metadata;
  metadata.temperature = 0;
  const Observations seen = observe(pair.full(), metadata);
  CHECK(seen.acceptance.lower == observe(pair.full(), {}, with_rule(AcceptanceRule::greedy)).acceptance.lower);
  CHECK(seen.mean_acceptance.lower == seen.acceptance.lower);
}

TEST_CASE("a draft of a reduced vocabulary proposes only its own tokens") {
  RecordedPair pair = recorded_pair(9, 30, 10, 5);
  const std::vector<std::int32_t> map{7, 1, 4, 0};
  RecordedPair reduced = recorded_pair(4, 30, 10, 6);
  PositionBatch batch = pair.full();
  batch.draft_rows = reduced.full().draft_rows;
  batch.draft_vocab_map = map;
  const Observations seen = observe(batch);
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    double overlap = 0;
    for (std::size_t c = 0; c < map.size(); ++c) {
      overlap += std::min<double>(pair.target_row(i)[at(map[c])], reduced.draft_row(i)[c]);
    }
    CHECK(seen.mean_acceptance.lower[at(i)] == Approx(overlap).epsilon(1e-6));
  }
}

TEST_CASE("the scalar tier agrees with the full tier that it came from, under every rule") {
  const RecordedPair pair = recorded_pair(12, 80, 20, 7);
  Scalars scalars(pair);
  scalars.batch.overlap = scalars.overlap;
  scalars.batch.target_token_rank = scalars.target_rank;
  scalars.batch.draft_token_rank = scalars.draft_rank;
  const Observations full = observe(pair.full());
  const Observations scalar = observe(scalars.batch);
  const Observations full_draft = observe(pair.full(), {}, with_rule(AcceptanceRule::greedy_draft));
  const Observations scalar_draft = observe(scalars.batch, {}, with_rule(AcceptanceRule::greedy_draft));
  const Observations full_greedy = observe(pair.full(), {}, with_rule(AcceptanceRule::greedy));
  const Observations scalar_greedy = observe(scalars.batch, {}, with_rule(AcceptanceRule::greedy));
  CHECK(scalar_draft.acceptance.lower == full_draft.acceptance.lower);
  CHECK(scalar_draft.mean_acceptance.empty());
  for (std::size_t i = 0; i < full.acceptance.lower.size(); ++i) {
    CHECK(scalar.acceptance.lower[i] == Approx(full.acceptance.lower[i]).epsilon(1e-5).margin(1e-7));
    CHECK(scalar.mean_acceptance.lower[i] == Approx(full.mean_acceptance.lower[i]).epsilon(1e-5));
    // Where the token is neither argmax, ranks cannot tell; the truth is inside.
    CHECK(scalar_greedy.acceptance.lower[i] <= full_greedy.acceptance.lower[i]);
    CHECK(full_greedy.acceptance.lower[i] <= scalar_greedy.acceptance.highest()[i]);
  }
}

TEST_CASE("at temperature 0 the scalar tier accepts where both ranks are 1, and ranks are required") {
  const RecordedPair pair = recorded_pair(12, 80, 20, 8, {0, 0, 1});
  Scalars scalars(pair);
  TraceMetadata metadata;
  metadata.temperature = 0;
  metadata.logprob_space = LogprobSpace::raw;
  CHECK_THROWS_WITH(observe(scalars.batch, metadata), Catch::Contains("record p.token_rank and q.token_rank"));
  scalars.batch.target_token_rank = scalars.target_rank;
  scalars.batch.draft_token_rank = scalars.draft_rank;
  const Observations seen = observe(scalars.batch, metadata);
  CHECK(seen.acceptance.exact());
  CHECK(seen.acceptance.lower == observe(pair.full(), metadata).acceptance.lower);
  CHECK(seen.mean_acceptance.lower == seen.acceptance.lower);
}

TEST_CASE("columns of deeper drafts are acceptances of their own, 0 where the sequence is too young") {
  TraceMetadata metadata;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<std::int64_t> sequence{0, 0};
  const std::vector<std::int64_t> place{0, 1};
  const std::vector<float> target{-1.0F, -2.0F};
  const std::vector<float> draft{-2.0F, nan, -2.5F, -1.0F};
  PositionBatch batch;
  batch.size = 2;
  batch.sequence = sequence;
  batch.place = place;
  batch.target_token_logprob = target;
  batch.draft_token_logprob = draft;
  batch.depths = 2;
  const Observations seen = observe(batch);
  CHECK(seen.depths == 2);
  CHECK(seen.acceptance.lower == std::vector<double>{std::exp(-1.0), 0, std::exp(-0.5), 1});
}

TEST_CASE("a draft that reads its own states, seen at one depth, gets a note") {
  const RecordedPair pair = recorded_pair(5, 4, 4, 9);
  const Scalars scalars(pair);
  for (const auto& [kind, noted] : {std::pair{"EAGLE-3", true}, {"mtp", true}, {"model", false}, {"", false}}) {
    TraceMetadata metadata;
    metadata.draft_kind = kind;
    CHECK(notes_of(scalars.batch, metadata).empty() != noted);
  }
}

TEST_CASE("whole rows, top tokens and ranks show a draft that reads its own states at one depth") {
  const RecordedPair pair = recorded_pair(5, 4, 4, 9);
  TraceMetadata metadata;
  metadata.draft_kind = "eagle";
  const PositionBatch full = pair.full();
  for (const AcceptanceRule rule : {AcceptanceRule::rejection, AcceptanceRule::greedy_draft, AcceptanceRule::greedy}) {
    CHECK(notes_of(full, metadata, with_rule(rule)) == std::vector<std::string>{"approximate_replay"});
  }
  const TopTokens top;
  CHECK(notes_of(top.batch, metadata) == std::vector<std::string>{"approximate_replay"});
  Scalars scalars(pair);
  scalars.batch.target_token_rank = scalars.target_rank;
  scalars.batch.draft_token_rank = scalars.draft_rank;
  CHECK(notes_of(scalars.batch, metadata, with_rule(AcceptanceRule::greedy_draft)) ==
        std::vector<std::string>{"approximate_replay"});

  PositionBatch untold = full;
  untold.token = {};
  CHECK(notes_of(untold, metadata).empty());
}

TEST_CASE("depths recorded beside whole rows are said to be unused") {
  const RecordedPair pair = recorded_pair(5, 4, 4, 9);
  PositionBatch batch = pair.full();
  batch.depths = 3;
  CHECK(notes_of(batch) == std::vector<std::string>{"unused_depths"});
}

TEST_CASE("raw log-probabilities of reshaped sampling are refused for rejection where the normaliser is lost") {
  struct Case {
    std::optional<double> temperature;
    std::optional<double> top_p;
    LogprobSpace space;
    bool refused;
  };
  for (const Case& c : {Case{{}, {}, LogprobSpace::raw, false}, Case{1.0, {}, LogprobSpace::raw, false},
                        Case{0.7, {}, LogprobSpace::raw, true}, Case{0.7, {}, LogprobSpace::unknown, true},
                        Case{0.7, {}, LogprobSpace::processed, false}, Case{1.0, 0.9, LogprobSpace::raw, true},
                        Case{0.0, {}, LogprobSpace::raw, false}}) {
    TraceMetadata metadata;
    metadata.temperature = c.temperature;
    metadata.top_p = c.top_p;
    metadata.logprob_space = c.space;
    for (const Tier tier : {Tier::scalar, Tier::top_k}) {
      const auto require = [&](AcceptanceRule rule, const ObserveOptions& options) {
        require_rule_defined(metadata, tier, rule, options);
      };
      if (c.refused) {
        CHECK_THROWS_WITH(require(AcceptanceRule::rejection, {}), Catch::Contains("Record full rows"));
      } else {
        CHECK_NOTHROW(require(AcceptanceRule::rejection, {}));
      }
      ObserveOptions processed;
      processed.assume_processed = true;
      CHECK_NOTHROW(require(AcceptanceRule::rejection, processed));
      CHECK_NOTHROW(require(AcceptanceRule::greedy_draft, {}));
    }
  }
}

TEST_CASE("the rule comes from the option, else from the recording, else it is rejection") {
  TraceMetadata metadata;
  CHECK(estimate::effective_rule(metadata, {}) == AcceptanceRule::rejection);
  metadata.acceptance = AcceptanceRule::greedy_draft;
  CHECK(estimate::effective_rule(metadata, {}) == AcceptanceRule::greedy_draft);
  CHECK(estimate::effective_rule(metadata, with_rule(AcceptanceRule::greedy)) == AcceptanceRule::greedy);
}

TEST_CASE("accepted lengths tell the recorded rule alone") {
  TraceMetadata metadata;
  const auto require = [&](AcceptanceRule rule) {
    estimate::require_rule_defined(metadata, Tier::accepted_length, rule, {});
  };
  // A recording that names no rule has the one that its reader does.
  for (const AcceptanceRule rule : {AcceptanceRule::rejection, AcceptanceRule::greedy_draft, AcceptanceRule::greedy}) {
    CHECK_NOTHROW(require(rule));
  }
  metadata.acceptance = AcceptanceRule::greedy;
  CHECK_NOTHROW(require(AcceptanceRule::greedy));
  CHECK_THROWS_WITH(require(AcceptanceRule::rejection),
                    "accepted lengths are those of the recorded rule, greedy, and do not tell acceptance by rejection");
  CHECK_THROWS_AS(require(AcceptanceRule::greedy_draft), RuleUndefined);
  // At temperature 0 all rules are one.
  metadata.temperature = 0;
  CHECK_NOTHROW(require(AcceptanceRule::rejection));
}

TEST_CASE("greedy-draft on numbers without ranks says what to record") {
  const RecordedPair pair = recorded_pair(5, 4, 4, 10);
  const Scalars scalars(pair);
  CHECK_THROWS_WITH(observe(scalars.batch, {}, with_rule(AcceptanceRule::greedy_draft)),
                    Catch::Contains("record q.token_rank"));
}

TEST_CASE("a token that the target cannot emit is an error of the file, unless the text is from elsewhere") {
  RecordedPair pair = recorded_pair(6, 3, 3, 11);
  pair.target[6 + 2] = 0;
  pair.target[6 + 3] = 0;
  double sum = 0;
  for (std::size_t x = 6; x < 12; ++x) sum += pair.target[x];
  for (std::size_t x = 6; x < 12; ++x) pair.target[x] = static_cast<float>(pair.target[x] / sum);
  pair.token[1] = 2;
  CHECK_THROWS_AS(observe(pair.full()), traces::FileError);
  CHECK_THROWS_WITH(observe(pair.full()), Catch::Contains("position 1") && Catch::Contains("token 2"));
  TraceMetadata metadata;
  metadata.path = traces::TextSource::other;
  CHECK(observe(pair.full(), metadata).acceptance.lower[1] == (pair.draft[6 + 2] > 0 ? 1 : 0));

  const std::vector<std::int64_t> zero{0};
  const std::vector<float> floor{-9999.0F};
  const std::vector<float> some{-1.0F};
  PositionBatch batch;
  batch.size = 1;
  batch.sequence = zero;
  batch.place = zero;
  batch.target_token_logprob = floor;
  batch.draft_token_logprob = some;
  CHECK_THROWS_AS(observe(batch), traces::FileError);
  CHECK(observe(batch, metadata).acceptance.lower[0] == 1);
  std::swap(batch.target_token_logprob, batch.draft_token_logprob);
  CHECK(observe(batch).acceptance.lower[0] == 0);
}

TEST_CASE("the tokens beside a row's own have the surprisal that the row gives them, in probabilities and logits") {
  const RecordedPair pair = recorded_pair(12, 30, 10, 3);
  RecordedPair logits = pair;
  for (std::vector<float>* rows : {&logits.target, &logits.draft}) {
    for (float& value : *rows) value = std::log(value) + 5;
  }
  const Observations plain = observe(pair.full());
  const Observations shifted = observe(logits.full(traces::RowSpace::logits));
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    for (const std::int64_t step : {-1, 1}) {
      const auto surprisal = [&](const Observations& o) {
        return step < 0 ? o.surprisal_of_previous[at(i)] : o.surprisal_of_next[at(i)];
      };
      if ((step < 0 && i % 10 == 0) || (step > 0 && i % 10 == 9)) {
        CHECK(std::isnan(surprisal(plain)));
        CHECK(std::isnan(surprisal(shifted)));
        continue;
      }
      const double expected = -std::log(double{pair.target_row(i)[at(pair.token[at(i + step)])]});
      CHECK(surprisal(plain) == Approx(expected).epsilon(1e-12));
      CHECK(surprisal(shifted) == Approx(expected).epsilon(1e-5));
    }
  }
}

TEST_CASE("log-probabilities at or below the floor of -9999 are probability 0 at every depth, others are compared") {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> values = {0, -0.5F, -3, -9998.5F, -9999, -10000, -3.4e38F, -infinity};
  TraceMetadata metadata;
  metadata.path = traces::TextSource::other;
  std::vector<std::int64_t> sequence, place;
  std::vector<float> target, draft;
  for (const float p : values) {
    for (const float q : values) {
      sequence.push_back(0);
      place.push_back(std::ssize(place));
      target.push_back(p);
      draft.push_back(q);
      draft.push_back(values[target.size() % values.size()]);
    }
  }
  PositionBatch batch;
  batch.size = std::ssize(target);
  batch.depths = 2;
  batch.sequence = sequence;
  batch.place = place;
  batch.target_token_logprob = target;
  batch.draft_token_logprob = draft;
  const Observations seen = observe(batch, metadata);
  REQUIRE(seen.depths == 2);
  for (std::size_t i = 0; i < draft.size(); ++i) {
    const double p = target[i / 2] <= -9999 ? 0 : 1;
    const double q = draft[i] <= -9999 ? 0 : 1;
    const double ratio = std::exp(std::min(0.0, double{draft[i]} - double{target[i / 2]}));
    CAPTURE(i, target[i / 2], draft[i]);
    const bool too_young = i == 1;
    CHECK(seen.acceptance.lower[i] == Approx(too_young || q == 0 ? 0 : p == 0 ? 1 : ratio).epsilon(1e-14));
    if (i % 2 == 1) continue;
    CHECK(seen.draft_token_probability[i / 2] == Approx(q == 0 ? 0 : std::exp(double{draft[i]})).epsilon(1e-14));
    CHECK(seen.by_rule[0].lower[i / 2] == seen.acceptance.lower[i]);
  }
}

TEST_CASE("a probability of F16 that is 0 may have underflowed, so that its token's acceptance is unknown") {
  const std::vector<std::uint16_t> target{0x3800, 0x3800, 0, 0, 0x3C00, 0};  // 1/2, 1/2, 0; 0, 1, 0
  const std::vector<std::uint16_t> draft{0x3800, 0x3400, 0x3400, 0, 0x3C00, 0};
  const std::vector<std::int64_t> sequence{0, 0}, place{0, 1};
  const std::vector<std::int32_t> token{2, 1};
  PositionBatch batch;
  batch.size = 2;
  batch.tier = Tier::full;
  batch.sequence = sequence;
  batch.place = place;
  batch.token = token;
  const auto set = [](traces::Rows& rows, const std::vector<std::uint16_t>& values) {
    rows.type = traces::ElementType::f16;
    rows.vocab = 3;
    rows.bytes = std::as_bytes(std::span(values));
  };
  set(batch.target_rows, target);
  set(batch.draft_rows, draft);
  TraceMetadata metadata;
  metadata.path = traces::TextSource::target;
  const Observations seen = observe(batch, metadata);
  CHECK(seen.acceptance.lower == std::vector<double>{0, 1});
  CHECK(seen.acceptance.upper == std::vector<double>{1, 1});
  CHECK(std::isnan(seen.surprisal[0]));
  CHECK(seen.mean_acceptance.lower[0] == 0.75);
  CHECK(notes_of(batch, metadata) == std::vector<std::string>{"underflowed_tokens"});
  CHECK(observe(batch, metadata, with_rule(AcceptanceRule::greedy)).acceptance.exact());

  metadata.logprob_space = LogprobSpace::processed;
  for (const auto& cut : {core::Standardisation{1, 2, 1}, {1, 0, 0.9}, {0, 0, 1}}) {
    metadata.temperature = cut.temperature;
    metadata.top_k = cut.top_k;
    metadata.top_p = cut.top_p;
    CHECK_THROWS_AS(observe(batch, metadata), traces::FileError);
  }
}

TEST_CASE("lists of tokens that were not sampled from give no overlap, no D_LK and no confidence") {
  const TopTokens top;
  TraceMetadata metadata;
  const Observations sampled = observe(top.batch, metadata);
  CHECK_FALSE(sampled.d_lk.empty());
  CHECK_FALSE(sampled.draft_top_probability.empty());
  metadata.temperature = 0;
  metadata.logprob_space = LogprobSpace::raw;
  const Observations raw = observe(top.batch, metadata);
  CHECK(raw.d_lk.empty());
  CHECK(raw.draft_top_probability.empty());
}

TEST_CASE("rows that are no distributions are errors of the file") {
  RecordedPair pair = recorded_pair(6, 3, 3, 12);
  pair.draft[2 * 6 + 4] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH(observe(pair.full()), Catch::Contains("draft") && Catch::Contains("position 2"));
  pair = recorded_pair(6, 3, 3, 12);
  pair.target[6] += 0.01F;
  CHECK_THROWS_WITH(observe(pair.full()), Catch::Contains("target") && Catch::Contains("position 1"));
  ObserveOptions generous;
  generous.tolerance = 0.02;
  CHECK_NOTHROW(observe(pair.full(), {}, generous));
  pair = recorded_pair(6, 3, 3, 12);
  pair.draft[6] += 0.01F;
  generous.draft = core::Standardisation{.temperature = 0};
  CHECK_NOTHROW(observe(pair.full(), {}, generous));

  const std::vector<std::int64_t> zero{0};
  const std::vector<float> nan{std::numeric_limits<float>::quiet_NaN()};
  const std::vector<float> positive{0.5F};
  const std::vector<float> some{-1.0F};
  for (const auto* bad : {&nan, &positive}) {
    PositionBatch batch;
    batch.size = 1;
    batch.sequence = zero;
    batch.place = zero;
    batch.target_token_logprob = some;
    batch.draft_token_logprob = *bad;
    CHECK_THROWS_AS(observe(batch), traces::FileError);
    std::swap(batch.target_token_logprob, batch.draft_token_logprob);
    CHECK_THROWS_AS(observe(batch), traces::FileError);
    batch.target_token_logprob = batch.draft_token_logprob = some;
    batch.overlap = positive;
    CHECK_NOTHROW(observe(batch));
    const std::vector<float> too_much{1.5F};
    batch.overlap = too_much;
    CHECK_THROWS_AS(observe(batch), traces::FileError);
  }
}

TEST_CASE("what is observed does not depend on the number of threads") {
  const RecordedPair pair = recorded_pair(33, 70, 10, 13);
  ObserveOptions options;
  options.lenience = {1, 0.5};
  const Observations one = observe(pair.full(), {}, options);
  options.threads = 3;
  const Observations three = observe(pair.full(), {}, options);
  CHECK(one.mean_acceptance.lower == three.mean_acceptance.lower);
  CHECK(one.acceptance.lower == three.acceptance.lower);
  CHECK(one.lenient_distance_lenient == three.lenient_distance_lenient);
  CHECK(one.lenient_acceptance[0][5] == Approx(one.mean_acceptance.lower[5]).epsilon(1e-6));
}

TEST_CASE("lenience follows the rule: where one token is proposed, and where first tokens are compared") {
  const RecordedPair pair = recorded_pair(9, 400, 20, 15);
  ObserveOptions options;
  options.lenience = {1, 0.6, 0.3, 0.05};
  TraceMetadata cold;
  cold.temperature = 0;
  cold.path = traces::TextSource::other;
  const auto by_rule = [&](AcceptanceRule rule, const TraceMetadata& metadata) {
    options.rule = rule;
    return observe(pair.full(), metadata, options);
  };
  const Observations greedy = by_rule(AcceptanceRule::rejection, cold);
  const Observations greedily_drafted = by_rule(AcceptanceRule::greedy_draft, cold);
  const Observations proposed = by_rule(AcceptanceRule::greedy_draft, {});
  std::vector<double> accepted(options.lenience.size());
  for (std::int64_t i = 0; i < pair.positions; ++i) {
    const auto p = pair.target_row(i);
    const auto q = pair.draft_row(i);
    const auto largest = std::max_element(p.begin(), p.end());
    const auto x = static_cast<std::size_t>(std::max_element(q.begin(), q.end()) - q.begin());
    for (std::size_t l = 0; l < options.lenience.size(); ++l) {
      const bool good = p[x] >= options.lenience[l] * *largest;
      const double away = good && p[x] < *largest ? 1 : 0;
      const std::size_t row = at(i);
      for (const Observations* first_tokens : {&greedy, &greedily_drafted}) {
        CHECK(first_tokens->lenient_acceptance[l][row] == (good ? 1 : 0));
        CHECK(first_tokens->lenient_distance_strict[l][row] == away);
        CHECK(first_tokens->lenient_distance_lenient[l][row] == away);
      }
      accepted[l] += good ? 1 : 0;
      // docs/theory.md#lenience with q standing on x, by its formulas.
      std::vector<double> target(p.begin(), p.end());
      const double total = std::accumulate(target.begin(), target.end(), 0.0);
      for (double& mass : target) mass /= total;
      std::vector<double> one(target.size());
      one[x] = 1;
      const core::TargetDistribution tp(target);
      const core::DraftDistribution dq(one);
      const double lenience = options.lenience[l];
      using theory::LenientResidual;
      CHECK(proposed.lenient_acceptance[l][row] ==
            Approx(theory::lenient_acceptance(tp, dq, lenience).alpha()).margin(1e-6));
      CHECK(proposed.lenient_distance_strict[l][row] ==
            Approx(theory::lenient_distance(tp, dq, lenience, LenientResidual::strict)).margin(1e-6));
      CHECK(proposed.lenient_distance_lenient[l][row] ==
            Approx(theory::lenient_distance(tp, dq, lenience, LenientResidual::lenient)).margin(1e-6));
    }
  }
  CHECK(std::adjacent_find(accepted.begin(), accepted.end(), std::greater_equal<>()) == accepted.end());
}

TEST_CASE("rows that stand on one token each do not tell lenience at temperature 0") {
  const std::vector<float> rows{0, 1, 0, 0, 0, 1};
  RecordedPair pair = recorded_pair(3, 2, 2, 1);
  pair.target = pair.draft = rows;
  pair.token = {1, 2};
  ObserveOptions options;
  options.lenience = {0.5};
  options.rule = GENERATE(AcceptanceRule::rejection, AcceptanceRule::greedy_draft, AcceptanceRule::greedy);
  TraceMetadata cold;
  cold.temperature = 0;
  MemorySource source;
  Observer processed(cold, options);
  processed.observe(source, pair.full());
  CHECK_FALSE(processed.lenience_tells());
  pair.target = {0.1F, 0.6F, 0.3F, 0, 0, 1};
  Observer raw(cold, options);
  raw.observe(source, pair.full());
  CHECK(raw.lenience_tells());
  CHECK(Observer({}, options).lenience_tells() == (options.rule != AcceptanceRule::greedy));
}

TEST_CASE("an accepted length above 1 is an accepted token") {
  const std::vector<std::int64_t> sequence{0, 0, 0};
  const std::vector<std::int64_t> place{0, 1, 2};
  const std::vector<std::int32_t> lengths{3, 1, 2};
  PositionBatch batch;
  batch.size = 3;
  batch.tier = Tier::accepted_length;
  batch.sequence = sequence;
  batch.place = place;
  batch.accepted_length = lengths;
  const Observations seen = observe(batch);
  CHECK(seen.acceptance.lower == std::vector<double>{1, 0, 1});
  CHECK(seen.accepted_length.size() == 3);
}

// The values are stated beside the files, by whoever made them: traces/samples/README.md.
TEST_CASE("a pair of files that llama.cpp wrote gives the acceptance stated beside it") {
  const std::filesystem::path folder = std::filesystem::path(tests::source_dir()) / "traces/samples/llamacpp";
  double overlap = 0, emitted = 0, at_draft_argmax = 0, agreement = 0;
  std::vector<double> betas;
  const auto source = traces::open_llamacpp_logits(folder / "target.kld", folder / "draft.kld");
  TraceMetadata metadata = source->metadata();
  metadata.path = traces::TextSource::other;
  Observer observer(metadata, {});
  PositionBatch batch;
  while (source->read(batch)) {
    const Observations seen = observer.observe(*source, batch);
    for (std::size_t i = 0; i < seen.mean_acceptance.lower.size(); ++i) {
      betas.push_back(seen.mean_acceptance.lower[i]);
      overlap += seen.mean_acceptance.lower[i];
      emitted += seen.acceptance.lower[i];
      at_draft_argmax += seen.by_rule[1].lower[i];
      agreement += seen.by_rule[2].lower[i];
    }
  }
  REQUIRE(betas.size() == 124);
  CHECK(overlap / 124 == Approx(0.6115222520).epsilon(1e-7));
  CHECK(betas[0] == Approx(0.64272852).epsilon(1e-6));
  CHECK(betas[1] == Approx(0.58714308).epsilon(1e-6));
  CHECK(betas[2] == Approx(0.33175172).epsilon(1e-6));
  CHECK(emitted / 124 >= 0.7972);
  CHECK(emitted / 124 <= 0.7974);
  CHECK(at_draft_argmax / 124 == Approx(0.0762721292).epsilon(1e-6));
  CHECK(agreement == 36);
}
