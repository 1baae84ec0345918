#include "sim/recording.hpp"

#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "sim/decoding.hpp"
#include "sim/sampling.hpp"
#include "sim/table_models.hpp"
#include "sim/text_scoring.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/random_models.hpp"
#include "traces/prompt_id.hpp"

using namespace specdec::sim;
using specdec::test_support::Likeness;
namespace traces = specdec::traces;

namespace {

constexpr std::int64_t vocab = 5;

ModelPair factories(const TablePair& pair) { return {factory_of(pair.target), factory_of(pair.draft)}; }

const std::vector<Prompt> prompts = {{"prose", {0, 1}}, {"code", {2}}, {"prose", {3, 0, 4}}};

struct Recording {
  std::vector<std::int64_t> sequence, place, prompt;
  std::vector<std::int32_t> token, task, ids;
  std::vector<float> target_rows, draft_rows, target_logprob, draft_logprob, overlap;
};

template <class To, class From>
void append(std::vector<To>& to, const From& from) {
  to.insert(to.end(), from.begin(), from.end());
}

void append_rows(std::vector<float>& to, const traces::Rows& rows) {
  const std::size_t before = to.size();
  to.resize(before + rows.bytes.size() / sizeof(float));
  if (!rows.empty()) std::memcpy(to.data() + before, rows.bytes.data(), rows.bytes.size());
}

Recording record(const TablePair& pair, const RecordingOptions& options, std::int64_t first = 0) {
  Recording all;
  record_texts(factories(pair), prompts, options, first, [&](const traces::PositionBatch& batch) {
    append(all.sequence, batch.sequence);
    append(all.place, batch.place);
    append(all.prompt, batch.prompt);
    append(all.token, batch.token);
    append(all.task, batch.task);
    append(all.ids, batch.target_top_k.ids);
    append(all.target_logprob, batch.target_token_logprob);
    append(all.draft_logprob, batch.draft_token_logprob);
    append(all.overlap, batch.overlap);
    append_rows(all.target_rows, batch.target_rows);
    append_rows(all.draft_rows, batch.draft_rows);
  });
  return all;
}

RecordingOptions options_for(traces::Tier tier, double temperature) {
  RecordingOptions options;
  options.standardisation.temperature = temperature;
  options.tier = tier;
  options.sequences = 5;
  options.max_new_tokens = 20;
  options.seed = 3;
  return options;
}

std::vector<double> standardised(const std::vector<float>& rows, std::size_t i, double temperature) {
  std::vector<double> row(rows.begin() + static_cast<std::ptrdiff_t>(i * vocab),
                          rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * vocab));
  specdec::core::standardise(row, {.temperature = temperature});
  return row;
}

}  // namespace

TEST_CASE("a recording is the same for any number of threads, and goes on where an earlier one ended") {
  const TablePair pair = specdec::test_support::random_pair(vocab, 1, Likeness::independent, 21);
  for (const traces::Tier tier : {traces::Tier::full, traces::Tier::scalar}) {
    RecordingOptions options = options_for(tier, 0.8);
    const Recording whole = record(pair, options);
    options.threads = 3;
    const Recording threaded = record(pair, options);
    CHECK(whole.token == threaded.token);
    CHECK(whole.target_rows == threaded.target_rows);
    CHECK(whole.draft_logprob == threaded.draft_logprob);
    options.sequences = 2;
    Recording pieces = record(pair, options);
    options.sequences = 5;
    const Recording rest = record(pair, options, 2);
    append(pieces.token, rest.token);
    append(pieces.sequence, rest.sequence);
    append(pieces.draft_rows, rest.draft_rows);
    append(pieces.overlap, rest.overlap);
    CHECK(pieces.token == whole.token);
    CHECK(pieces.sequence == whole.sequence);
    CHECK(pieces.draft_rows == whole.draft_rows);
    CHECK(pieces.overlap == whole.overlap);
  }
}

TEST_CASE("texts of one prompt have its number, which is that of its tokens in every recording") {
  const TablePair pair = specdec::test_support::random_pair(vocab, 1, Likeness::independent, 23);
  for (const traces::Tier tier : {traces::Tier::full, traces::Tier::top_k, traces::Tier::scalar}) {
    const Recording all = record(pair, options_for(tier, 1));
    REQUIRE(all.prompt.size() == all.sequence.size());
    const auto tokens_of = [](std::int64_t sequence) {
      return std::array{"0 1", "2", "3 0 4"}[static_cast<std::size_t>(sequence % 3)];
    };
    for (std::size_t i = 0; i < all.prompt.size(); ++i)
      REQUIRE(all.prompt[i] == traces::prompt_id(tokens_of(all.sequence[i])));
  }
}

TEST_CASE("a full recording holds the rows of both models before every token, raw and rounded to f32") {
  const TablePair pair = specdec::test_support::random_pair(vocab, 1, Likeness::independent, 22);
  const Recording all = record(pair, options_for(traces::Tier::full, 0.7));
  REQUIRE(all.token.size() == 100);
  TablePair own = pair;
  bool equal = true;
  for (std::size_t s = 0; s < 5; ++s) {
    const Prompt& prompt = prompts[s % 3];
    const std::span<const Token> text = std::span(all.token).subspan(20 * s, 20);
    for_each_prefix(own.target, own.draft, prompt.tokens, text,
                    [&](std::size_t t, std::span<double> p, std::span<double> q) {
                      const std::size_t at = (20 * s + t) * vocab;
                      for (std::size_t x = 0; x < vocab; ++x)
                        equal = equal && all.target_rows[at + x] == static_cast<float>(p[x]) &&
                                all.draft_rows[at + x] == static_cast<float>(q[x]);
                    });
    for (std::size_t t = 0; t < 20; ++t) {
      CHECK(all.sequence[20 * s + t] == static_cast<std::int64_t>(s));
      CHECK(all.place[20 * s + t] == static_cast<std::int64_t>(t));
      CHECK(all.task[20 * s + t] == (s % 3 == 1 ? 1 : 0));
    }
  }
  CHECK(equal);
}

TEST_CASE("the text of a recording is sampled from its target rows as they are stored") {
  const TablePair pair = specdec::test_support::random_pair(vocab, 1, Likeness::independent, 23);
  const RecordingOptions options = options_for(traces::Tier::full, 0.7);
  const Recording all = record(pair, options);
  for (std::size_t i = 0; i < all.token.size(); ++i) {
    const RandomStream stream(options.seed, static_cast<std::uint64_t>(all.sequence[i]));
    CHECK(all.token[i] ==
          sample(standardised(all.target_rows, i, 0.7), stream.uniform(all.place[i], 0, Purpose::target)));
  }
}

TEST_CASE("the scalar tier holds the log-probabilities and the overlap of the reshaped rows of the same text") {
  const TablePair pair = specdec::test_support::random_pair(vocab, 1, Likeness::independent, 24);
  const Recording full = record(pair, options_for(traces::Tier::full, 0.7));
  const Recording scalar = record(pair, options_for(traces::Tier::scalar, 0.7));
  REQUIRE(scalar.token == full.token);
  for (std::size_t i = 0; i < full.token.size(); ++i) {
    const auto p = standardised(full.target_rows, i, 0.7);
    const auto q = standardised(full.draft_rows, i, 0.7);
    const auto x = static_cast<std::size_t>(full.token[i]);
    double overlap = 0;
    for (std::size_t y = 0; y < vocab; ++y) overlap += std::min(p[y], q[y]);
    CHECK(double{scalar.target_logprob[i]} == Approx(std::log(p[x])).margin(1e-5));
    CHECK(double{scalar.draft_logprob[i]} == Approx(std::log(q[x])).margin(1e-5));
    CHECK(double{scalar.overlap[i]} == Approx(overlap).margin(1e-6));
  }
}

TEST_CASE("a recording says how its text was sampled and what its numbers are") {
  RecordingOptions options = options_for(traces::Tier::full, 0.7);
  options.standardisation.top_p = 0.9;
  const traces::TraceMetadata full = recording_metadata(prompts, vocab, options);
  CHECK(full.task_names == std::vector<std::string>{"prose", "code"});
  CHECK(full.logprob_space == traces::LogprobSpace::raw);
  CHECK(full.path == traces::TextSource::target);
  CHECK(full.temperature == 0.7);
  CHECK(full.top_p == 0.9);
  CHECK_FALSE(full.top_k.has_value());
  options.tier = traces::Tier::scalar;
  CHECK(recording_metadata(prompts, vocab, options).logprob_space == traces::LogprobSpace::processed);
}

TEST_CASE("a recording refuses options out of range") {
  const TablePair pair = specdec::test_support::random_pair(vocab, 1, Likeness::independent, 25);
  RecordingOptions options = options_for(traces::Tier::full, 1);
  options.sequences = 0;
  CHECK_THROWS_AS(record(pair, options), std::domain_error);
  options.sequences = 1;
  CHECK_THROWS_AS(record_texts(factories(pair), {}, options, 0, {}), std::invalid_argument);
}

TEST_CASE("a recorded text ends with the end token, and is else the text without one") {
  const TablePair pair = specdec::test_support::random_pair(vocab, 1, Likeness::independent, 21);
  RecordingOptions options = options_for(traces::Tier::scalar, 1);
  const Recording whole = record(pair, options);
  options.end_token = 2;
  const Recording ended = record(pair, options);
  CHECK(ended.token.size() < whole.token.size());
  std::size_t i = 0;
  bool is_over = false;
  for (std::size_t t = 0; t < whole.token.size(); ++t) {
    if (whole.place[t] == 0) is_over = false;
    if (is_over) continue;
    REQUIRE(i < ended.token.size());
    CHECK(ended.token[i] == whole.token[t]);
    CHECK(ended.sequence[i++] == whole.sequence[t]);
    is_over = whole.token[t] == 2;
  }
  CHECK(i == ended.token.size());
}
