// Statistical tests here have fixed seeds; over random ones each would fail with a probability of 1e-6 or less (5
// standard errors, or a chi-square p-value below 1e-6), and each has a twin with another law that must fail.

#include "sim/synthetic_traces.hpp"

#include <algorithm>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "sim/synthetic_worlds.hpp"
#include "sim/variates.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/chi_square.hpp"

using namespace specdec::sim;
using specdec::test_support::chi_square_p_value;
namespace traces = specdec::traces;

namespace {

constexpr double false_alarm_rate = 1e-6;

/// A whole recording in memory.
struct Recording {
  traces::TraceMetadata metadata;
  std::vector<std::int64_t> sequence, place;
  std::vector<std::int32_t> token, task, target_rank, draft_rank;
  std::vector<double> acceptance, overlap;
  std::vector<float> target_logprob, draft_logprob, target_rows, draft_rows;
  traces::RowSpace space = traces::RowSpace::probabilities;

  double truth() const { return std::stod(metadata.other.at("truth.alpha")); }
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

Recording record(std::vector<SyntheticTask> tasks, const SyntheticOptions& options) {
  const auto source = synthetic_trace(std::move(tasks), options);
  Recording all;
  traces::PositionBatch batch;
  while (source->read(batch)) {
    REQUIRE(batch.first == static_cast<std::int64_t>(all.sequence.size()));
    append(all.sequence, batch.sequence);
    append(all.place, batch.place);
    append(all.token, batch.token);
    append(all.task, batch.task);
    append(all.target_rank, batch.target_token_rank);
    append(all.draft_rank, batch.draft_token_rank);
    append(all.target_logprob, batch.target_token_logprob);
    append(all.draft_logprob, batch.draft_token_logprob);
    append(all.overlap, batch.overlap);
    all.space = batch.target_rows.space;
    append_rows(all.target_rows, batch.target_rows);
    append_rows(all.draft_rows, batch.draft_rows);
  }
  for (std::size_t i = 0; i < all.target_logprob.size(); ++i)
    all.acceptance.push_back(std::exp(std::min(0.0, double{all.draft_logprob[i]} - all.target_logprob[i])));
  all.metadata = source->metadata();
  REQUIRE(source->positions() == static_cast<std::int64_t>(all.sequence.size()));
  return all;
}

Recording record(const SyntheticLaw& law, std::int64_t sequences, std::int64_t tokens) {
  return record({{"", law}}, {.sequences = sequences, .tokens = tokens, .seed = 7, .threads = 2});
}

struct Moments {
  double mean = 0;
  double variance = 0;
  double standard_error = 0;
};

Moments moments_of(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Moments found;
  for (const double v : values) found.mean += v / n;
  for (const double v : values) found.variance += (v - found.mean) * (v - found.mean) / (n - 1);
  found.standard_error = std::sqrt(found.variance / n);
  return found;
}

/// P value of the betas, in 40 cells of equal probability under the Beta law of these shapes.
double beta_law_p_value(const std::vector<double>& betas, double a, double b) {
  std::vector<std::int64_t> counts(40);
  for (const double beta : betas)
    ++counts[std::min<std::size_t>(39, static_cast<std::size_t>(40 * boost::math::ibeta(a, b, beta)))];
  return chi_square_p_value(counts, std::vector<double>(40, 1.0 / 40));
}

template <class Law>
Law with_alpha(double alpha, std::int64_t vocab, std::int64_t contexts) {
  Law law;
  law.alpha = alpha;
  law.vocab = vocab;
  law.contexts = contexts;
  return law;
}

std::vector<double> probabilities(std::span<const float> row, traces::RowSpace space) {
  std::vector<double> p;
  double sum = 0;
  for (const float x : row) sum += p.emplace_back(space == traces::RowSpace::logits ? std::exp(double{x}) : x);
  for (double& x : p) x /= sum;
  return p;
}

template <class Law>
void check_alpha(double alpha) {
  const Recording all = record(with_alpha<Law>(alpha, 64, 16), 20, 500);
  CHECK(all.truth() == Approx(alpha).margin(1e-6));
  // Every pair that occurs, with its beta by the definition.
  std::map<std::vector<float>, double> betas;
  for (std::size_t i = 0; i < all.token.size(); ++i) {
    const std::span<const float> row = std::span(all.target_rows).subspan(64 * i, 64);
    const std::vector<float> key(row.begin(), row.end());
    if (betas.contains(key)) continue;
    const auto p = probabilities(row, all.space);
    const auto q = probabilities(std::span(all.draft_rows).subspan(64 * i, 64), all.space);
    for (std::size_t x = 0; x < 64; ++x) betas[key] += std::min(p[x], q[x]);
  }
  REQUIRE(betas.size() == 16);
  double sum = 0;
  for (const auto& [row, beta] : betas) sum += beta;
  CHECK(all.truth() == Approx(sum / 16).epsilon(1e-6));
}

template <class Law>
void check_text() {
  const Recording all = record(with_alpha<Law>(0.7, 32, 1), 4, 5000);
  std::vector<std::int64_t> counts(32);
  for (const std::int32_t token : all.token) ++counts[static_cast<std::size_t>(token)];
  const auto p = probabilities(std::span(all.target_rows).first(32), all.space);
  const auto q = probabilities(std::span(all.draft_rows).first(32), all.space);
  CHECK(chi_square_p_value(counts, p) > false_alarm_rate);
  CHECK(chi_square_p_value(counts, q) < false_alarm_rate);
}

}  // namespace

TEST_CASE("a synthetic recording is the same for any number of threads") {
  const std::vector<std::vector<SyntheticTask>> recordings = {{{"", BetaLaw{}}},
                                                              {{"a", MarkovLaw{}}, {"b", BetaLaw{}}},
                                                              {{"", with_alpha<LogitNoiseLaw>(0.8, 32, 8)}},
                                                              {{"", with_alpha<DirichletLaw>(0.8, 32, 8)}}};
  for (const auto& tasks : recordings) {
    const Recording one = record(tasks, {.sequences = 3, .tokens = 3001, .seed = 5, .threads = 1});
    const Recording three = record(tasks, {.sequences = 3, .tokens = 3001, .seed = 5, .threads = 3});
    CHECK(one.metadata == three.metadata);
    CHECK(one.token == three.token);
    CHECK(one.target_logprob == three.target_logprob);
    CHECK(one.draft_logprob == three.draft_logprob);
    CHECK(one.overlap == three.overlap);
    CHECK(one.target_rows == three.target_rows);
    CHECK(one.draft_rows == three.draft_rows);
    const Recording other = record(tasks, {.sequences = 3, .tokens = 3001, .seed = 6, .threads = 3});
    CHECK((one.overlap != other.overlap || one.token != other.token));
  }
}

TEST_CASE("positions are numbered by sequence and place across batches") {
  const Recording all = record(BetaLaw{}, 3, 100'000);
  bool numbered = true;
  for (std::size_t i = 0; i < all.sequence.size(); ++i)
    numbered = numbered && all.sequence[i] == static_cast<std::int64_t>(i / 100'000) &&
               all.place[i] == static_cast<std::int64_t>(i % 100'000);
  CHECK(numbered);
  CHECK(all.sequence.size() == 300'000);
  CHECK(all.task.empty());
}

// Shapes alpha m and (1 - alpha) m; those below 1 take the sampler's other branch.
TEST_CASE("the betas of the Beta law are independent and follow it, and another law is told apart") {
  for (const double concentration : {2.0, 10.0}) {
    const Recording all = record(BetaLaw{.alpha = 0.7, .concentration = concentration}, 4, 5'000);
    const double a = 0.7 * concentration;
    const double b = 0.3 * concentration;
    CHECK(beta_law_p_value(all.overlap, a, b) > false_alarm_rate);
    CHECK(beta_law_p_value(all.overlap, 1.3 * a, 1.3 * b) < false_alarm_rate);
    const Moments found = moments_of(all.overlap);
    CHECK(std::abs(found.mean - 0.7) < 5 * found.standard_error);
    double lagged = 0;
    for (std::size_t i = 1; i < all.overlap.size(); ++i)
      lagged += (all.overlap[i] - found.mean) * (all.overlap[i - 1] - found.mean);
    CHECK(std::abs(lagged / found.variance) < 5 * std::sqrt(static_cast<double>(all.overlap.size())));
  }
}

TEST_CASE("concentration 0 is temperature 0: betas are 1 or 0") {
  const Recording all = record(BetaLaw{.alpha = 0.97, .concentration = 0}, 10, 10'000);
  CHECK(std::all_of(all.overlap.begin(), all.overlap.end(), [](double b) { return b == 0 || b == 1; }));
  const Moments found = moments_of(all.overlap);
  CHECK(std::abs(found.mean - 0.97) < 5 * found.standard_error);
}

TEST_CASE("acceptance at the emitted token is beta itself") {
  const Recording certain = record(BetaLaw{}, 5, 20'000);
  double worst = 0;
  for (std::size_t i = 0; i < certain.overlap.size(); ++i)
    worst = std::max(worst, std::abs(certain.acceptance[i] - certain.overlap[i]));
  CHECK(worst < 1e-6);
}

TEST_CASE("the ranks of a scalar law are those of its two rows") {
  const Recording all = record(BetaLaw{.alpha = 0.5, .concentration = 2}, 1, 2000);
  bool sound = true;
  for (std::size_t i = 0; i < all.token.size(); ++i) {
    const double own = std::exp(double{all.target_logprob[i]});
    const double drafted = std::exp(double{all.draft_logprob[i]});
    sound = sound && (all.target_rank[i] == 1) == (own >= 0.5) && (all.draft_rank[i] == 1) == (drafted >= 0.5);
  }
  CHECK(sound);
}

// Two states: the second eigenvalue of the chain, 0.9 + 0.8 - 1, is the autocorrelation at lag 1; its shares 2/3, 1/3.
TEST_CASE("the states of a Markov law begin in their stationary shares and stay as long as asked") {
  const Recording all = record(MarkovLaw{}, 50'000, 4);
  CHECK(all.truth() == Approx(0.7).epsilon(1e-14));
  const float easy = 0.9F;
  std::map<std::pair<bool, bool>, double> moves;
  std::vector<double> easy_at(4);
  for (std::size_t i = 0; i < all.overlap.size(); ++i) {
    const bool is_easy = static_cast<float>(all.overlap[i]) == easy;
    easy_at[static_cast<std::size_t>(all.place[i])] += is_easy ? 1 : 0;
    if (all.place[i] > 0) moves[{static_cast<float>(all.overlap[i - 1]) == easy, is_easy}] += 1;
  }
  for (const double count : easy_at) CHECK(std::abs(count / 50'000 - 2.0 / 3) < 5 * std::sqrt(2.0 / 9 / 50'000));
  const auto stays = [&](bool from) {
    const double kept = moves[{from, from}];
    return std::pair{kept / (kept + moves[{from, !from}]), kept + moves[{from, !from}]};
  };
  CHECK(std::abs(stays(true).first - 0.9) < 5 * std::sqrt(0.09 / stays(true).second));
  CHECK(std::abs(stays(false).first - 0.8) < 5 * std::sqrt(0.16 / stays(false).second));
  CHECK(std::abs(stays(false).first - 0.9) > 5 * std::sqrt(0.16 / stays(false).second));
}

TEST_CASE("three states of a Markov law have the mean that their shares give") {
  const Recording all = record(MarkovLaw{.betas = {0.95, 0.6, 0.1}, .stay = {0.9, 0.5, 0}}, 20'000, 10);
  const double shares[] = {10, 2, 1};
  CHECK(all.truth() == Approx((shares[0] * 0.95 + shares[1] * 0.6 + shares[2] * 0.1) / 13).epsilon(1e-14));
  std::vector<double> last;
  for (std::size_t i = 9; i < all.overlap.size(); i += 10) last.push_back(all.overlap[i]);
  const Moments found = moments_of(last);
  CHECK(std::abs(found.mean - all.truth()) < 5 * found.standard_error);
}

TEST_CASE("full laws meet the alpha asked for, and say the exact one of the rows as stored") {
  for (const double alpha : {0.4, 0.9, 1.0}) {
    check_alpha<LogitNoiseLaw>(alpha);
    check_alpha<DirichletLaw>(alpha);
  }
}

TEST_CASE("an alpha that rounding cannot tell from 1 is met by a draft like the target") {
  const SyntheticWorld world(with_alpha<LogitNoiseLaw>(1 - 0x1p-53, 50, 1), 1, 0, 1);
  CHECK(world.alpha() == Approx(1).epsilon(1e-14));
}

TEST_CASE("the text of a full law is sampled from its target, and not from its draft") {
  check_text<LogitNoiseLaw>();
  check_text<DirichletLaw>();
}

TEST_CASE("a token is possible at the ends of the unit interval too") {
  const SyntheticWorld world(with_alpha<DirichletLaw>(0.8, 50, 4), 3, 0, 1);
  for (std::int64_t context = 0; context < 4; ++context) {
    for (const double u : {0.0, 1 - 0x1p-53})
      CHECK(world.target_row(context)[static_cast<std::size_t>(world.sample(context, u))] > 0);
  }
}

TEST_CASE("tasks take turns, and the mean alpha weighs them by their sequences") {
  const Recording all =
      record({{"easy", BetaLaw{.alpha = 0.9}}, {"hard", MarkovLaw{.betas = {0.4, 0.2}, .stay = {0.5, 0.5}}}},
             {.sequences = 5, .tokens = 10, .seed = 1, .threads = 1});
  CHECK(all.metadata.task_names == std::vector<std::string>{"easy", "hard"});
  for (std::size_t i = 0; i < all.task.size(); ++i) CHECK(all.task[i] == all.sequence[i] % 2);
  CHECK(all.truth() == Approx((3 * 0.9 + 2 * 0.3) / 5).epsilon(1e-14));
  CHECK(all.metadata.other.at("truth.alpha.easy") == "0.9");
  CHECK(all.metadata.other.at("truth.law.easy") == "beta(alpha=0.9, concentration=10, emitted=certain)");
  CHECK(all.metadata.other.at("truth.law.hard") == "markov(betas=[0.4, 0.2], stay=[0.5, 0.5], emitted=certain)");
  CHECK(all.metadata.path == traces::TextSource::target);
}

TEST_CASE("a synthetic recording refuses what it cannot make") {
  const auto refused = [](std::vector<SyntheticTask> tasks, const std::string& message) {
    CHECK_THROWS_WITH(synthetic_trace(std::move(tasks), {}), message);
  };
  refused({}, "synthetic_trace: tasks are none, but must be one or more");
  refused({{"", BetaLaw{.alpha = 1.5}}}, "synthetic_trace: alpha is 1.5, but must be in [0, 1]");
  refused({{"", MarkovLaw{.betas = {0.5}, .stay = {0.5}}}}, "synthetic_trace: states is 1, but must be in [2, 1024]");
  refused({{"", MarkovLaw{.betas = {0.5, 0.5}, .stay = {0.5}}}},
          "synthetic_trace: betas has 2 entries, but stay has 1");
  refused({{"", with_alpha<DirichletLaw>(0.1, 4, 2)}}, "synthetic_trace: alpha is 0.1, but must be in [0.7551, 1]");
  refused({{"a", BetaLaw{}}, {"b", with_alpha<DirichletLaw>(0.9, 4, 2)}},
          "synthetic_trace: the law dirichlet(alpha=0.9, vocab=4, contexts=2, concentration=8) does not mix with "
          "beta(alpha=0.8, concentration=10, emitted=certain): they differ in what is recorded");
}

// E log G(a) = digamma(a): -3.5025242 at 0.3, 0.4227843 at 2 (DLMF 5.4.13 and its recurrence); the variance is
// trigamma(a): 12.2453645, 0.6449341.
TEST_CASE("gamma variates have the mean and the variance of their logarithm, for shapes below 1 too") {
  struct Case {
    double shape, mean, variance;
  };
  for (const Case& c : {Case{0.3, -3.5025242, 12.2453645}, Case{2, 0.4227843, 0.6449341}}) {
    const RandomStream stream(11, 0);
    std::vector<double> logs;
    for (std::int64_t i = 0; i < 100'000; ++i) logs.push_back(Variates(stream, i).log_gamma(c.shape));
    const Moments found = moments_of(logs);
    CHECK(std::abs(found.mean - c.mean) < 5 * found.standard_error);
    CHECK(found.variance == Approx(c.variance).epsilon(0.05));
    CHECK(std::abs(found.mean - c.mean * 1.1) > 5 * found.standard_error);
  }
}
