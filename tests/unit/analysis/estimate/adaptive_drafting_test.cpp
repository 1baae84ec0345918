#include "analysis/estimate/adaptive_drafting.hpp"

#include <algorithm>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "analysis/estimate/replay_estimates.hpp"
#include "analysis/theory/known_acceptance.hpp"
#include "tests/support/catch.hpp"

namespace specdec::estimate {
namespace {

struct Text {
  std::vector<double> acceptance;
  std::vector<double> probability;
  std::int32_t task = -1;
};

/// Easy and hard stretches; where the draft is unsure it is also rejected more often.
std::vector<Text> random_texts(std::size_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Text> texts(count);
  for (Text& text : texts) {
    const std::size_t length = 1 + generator() % 300;
    bool easy = true;
    for (std::size_t t = 0; t < length; ++t) {
      if (uniform(generator) < 0.1) easy = !easy;
      text.acceptance.push_back(easy ? 1 - 0.05 * uniform(generator) : 0.5 * uniform(generator));
      text.probability.push_back(easy ? 0.6 + 0.4 * uniform(generator) : 0.7 * uniform(generator));
    }
  }
  return texts;
}

/// Tokens, steps and cost at both ends of the bracket, from the definition: backwards over every start.
struct Expected {
  double steps = 0;
  double fewest_cost = 0;
  double most_cost = 0;
};

Expected expect(const Text& text, Confidence confidence, double threshold, std::int64_t max_gamma,
                const core::StepCost& cost) {
  const auto length = static_cast<std::int64_t>(text.acceptance.size());
  std::vector<Expected> from(text.acceptance.size() + 1);
  for (std::int64_t t = length; t-- > 0;) {
    Expected& here = from[static_cast<std::size_t>(t)];
    const std::int64_t limit = std::min(max_gamma, length - t - 1);
    const auto end = [&](double reach, std::int64_t emitted, std::int64_t fewest, std::int64_t most) {
      const Expected& rest = from[static_cast<std::size_t>(t + emitted)];
      here.steps += reach * (1 + rest.steps);
      here.fewest_cost += reach * (cost(fewest) + rest.fewest_cost);
      here.most_cost += reach * (cost(most) + rest.most_cost);
    };
    double reach = 1;
    double product = 1;
    std::int64_t k = 0;
    for (bool stopped = false; k < limit && !stopped; ++k) {
      const double a = text.acceptance[static_cast<std::size_t>(t + k)];
      const double q = text.probability[static_cast<std::size_t>(t + k)];
      product *= q;
      end(reach * (1 - a), k + 1, k + 1, limit);
      reach *= a;
      stopped = (confidence == Confidence::token ? q : product) < threshold;
    }
    end(reach, k + 1, k, k);
  }
  return from[0];
}

struct Analysed {
  AdaptiveReport report;
  std::array<theory::ReplayedRounds, 2> halves;
};

Analysed analyse(const std::vector<Text>& texts, const AdaptiveOptions& options, std::size_t piece) {
  std::vector<double> acceptance;
  std::vector<double> probability;
  std::vector<std::int64_t> sequence;
  std::vector<std::int32_t> task;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    acceptance.insert(acceptance.end(), texts[i].acceptance.begin(), texts[i].acceptance.end());
    probability.insert(probability.end(), texts[i].probability.begin(), texts[i].probability.end());
    sequence.insert(sequence.end(), texts[i].acceptance.size(), static_cast<std::int64_t>(i));
    task.insert(task.end(), texts[i].acceptance.size(), texts[i].task);
  }
  ReplayEstimateOptions replay_options;
  replay_options.replay = {.max_gamma = options.max_gamma, .by_position = true};
  ReplayEstimates replay(replay_options);
  replay.add({acceptance, sequence, task});
  replay.finish();
  AdaptiveDrafting adaptive(options);
  for (std::size_t begin = 0; begin < acceptance.size(); begin += piece) {
    const std::size_t count = std::min(piece, acceptance.size() - begin);
    adaptive.add({std::span(acceptance).subspan(begin, count), std::span(probability).subspan(begin, count),
                  std::span(sequence).subspan(begin, count), std::span(task).subspan(begin, count)});
  }
  adaptive.finish();
  return {adaptive.report(replay.halves()), replay.halves()};
}

const core::StepCost bent_cost = [] {
  const std::vector<core::VerificationCost::Point> points = {{2, 1.05}, {6, 1.1}, {9, 1.8}};
  return core::StepCost{.c = 0.1, .overhead = 0.03, .verification = core::VerificationCost::table(points)};
}();

}  // namespace

TEST_CASE("tokens and both ends of the drafts of a confidence policy equal their definition") {
  const std::vector<Text> texts = random_texts(12, 1);
  for (const double threshold : {0.05, 0.4, 0.65, 1.0}) {
    AdaptiveOptions options;
    options.max_gamma = 7;
    options.cost = bent_cost;
    options.thresholds = {threshold};
    const AdaptiveReport report = analyse(texts, options, 100).report;
    for (const auto& judged : {report.token, report.running_product}) {
      REQUIRE(judged);
      double tokens = 0;
      Expected expected;
      for (std::size_t i = 1; i < texts.size(); i += 2) {
        const Expected one = expect(texts[i], judged->confidence, threshold, 7, bent_cost);
        tokens += static_cast<double>(texts[i].acceptance.size());
        expected.steps += one.steps;
        expected.fewest_cost += one.fewest_cost;
        expected.most_cost += one.most_cost;
      }
      CAPTURE(threshold, judged->confidence);
      CHECK(judged->tokens_per_step == Approx(tokens / expected.steps).epsilon(1e-12));
      CHECK(judged->speedup.hi == Approx(tokens / expected.fewest_cost).epsilon(1e-12));
      CHECK(judged->speedup.lo == Approx(tokens / expected.most_cost).epsilon(1e-12));
      CHECK(judged->drafted_per_step.lo <= judged->drafted_per_step.hi);
    }
  }
}

TEST_CASE("a policy that never stops is the fixed gamma, and one that always stops is gamma = 1") {
  const std::vector<Text> texts = random_texts(10, 2);
  AdaptiveOptions options;
  options.max_gamma = 5;
  options.cost = {.c = 0.1};
  options.thresholds = {1e-300};
  const Analysed never = analyse(texts, options, 64);
  CHECK(never.report.token->speedup.lo ==
        Approx(static_cast<double>(never.halves[1].tokens()) / never.halves[1].cost(5, options.cost)).epsilon(1e-12));
  options.thresholds = {1.0};
  const Analysed always = analyse(texts, options, 64);
  CHECK(always.report.token->speedup.hi ==
        Approx(static_cast<double>(always.halves[1].tokens()) / always.halves[1].cost(1, options.cost)).epsilon(1e-12));
}

TEST_CASE("adaptive drafting depends neither on threads nor on how the positions were handed over") {
  const std::vector<Text> texts = random_texts(700, 3);
  AdaptiveOptions options;
  options.cost = {.c = 0.1};
  const AdaptiveReport whole = analyse(texts, options, 1 << 20).report;
  options.threads = 3;
  const AdaptiveReport pieces = analyse(texts, options, 1001).report;
  CHECK(pieces.token->threshold == whole.token->threshold);
  CHECK(pieces.token->speedup.lo == whole.token->speedup.lo);
  CHECK(pieces.running_product->speedup.hi == whole.running_product->speedup.hi);
  CHECK(pieces.known_acceptance->speedup == Approx(whole.known_acceptance->speedup).epsilon(1e-14));
}

TEST_CASE("where confidence predicts acceptance a threshold gains, and the bounds stay above it") {
  AdaptiveOptions options;
  options.cost = {.c = 0.15};
  const AdaptiveReport report = analyse(random_texts(60, 4), options, 500).report;
  CHECK(report.token->speedup.hi > report.fixed->speedup);
  CHECK(report.known_acceptance->speedup > report.fixed->speedup);
  CHECK(report.outcome_oracle->speedup > report.known_acceptance->speedup);
  CHECK(report.known_acceptance->left_out == 0);
}

TEST_CASE("the chosen threshold gains at least as much as any other of the grid, on texts that it was not chosen on") {
  const std::vector<Text> texts = random_texts(200, 7);
  AdaptiveOptions options;
  options.cost = {.c = 0.3};
  const std::vector<double> grid = options.thresholds;
  const AdaptiveReport chosen = analyse(texts, options, 5000).report;
  std::vector<AdaptiveReport> each;
  for (const double threshold : grid) {
    options.thresholds = {threshold};
    each.push_back(analyse(texts, options, 5000).report);
  }
  for (const auto of : {&AdaptiveReport::token, &AdaptiveReport::running_product}) {
    const JudgedThreshold& best = *(chosen.*of);
    CAPTURE(best.confidence, best.threshold, best.speedup.lo, best.speedup.hi);
    double surest = 0;
    const JudgedThreshold* most_hopeful = nullptr;
    for (const AdaptiveReport& report : each) {
      const JudgedThreshold& other = *(report.*of);
      surest = std::max(surest, other.speedup.lo);
      if (!most_hopeful || other.speedup.hi > most_hopeful->speedup.hi) most_hopeful = &other;
    }
    CHECK(surest <= best.speedup.hi);
    // 100 texts chose it and 100 others judge it: near the best the speedup is flat.
    CHECK(best.speedup.lo >= 0.98 * surest);
    CHECK_FALSE(best.at_grid_edge);
    CHECK(best.threshold > grid.front());
    // Broken twin: a choice by the upper ends, which hardly ever stops, would not pass.
    CHECK(most_hopeful->speedup.lo < 0.98 * surest);
  }
}

TEST_CASE("a threshold at an end of the grid is marked") {
  const std::vector<Text> texts = random_texts(60, 8);
  AdaptiveOptions options;
  options.cost = {.c = 0.3};
  options.thresholds = {0.01, 0.02};
  CHECK(analyse(texts, options, 500).report.token->at_grid_edge);
  options.thresholds = {0.01, 0.6, 0.999};
  CHECK_FALSE(analyse(texts, options, 500).report.token->at_grid_edge);
}

TEST_CASE("the halves hold the same tasks, and every bound is over what the policies are judged on") {
  // Tasks that take turns, as in what specdec generates and records: without regard to them one half is all easy.
  std::vector<Text> texts(40);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    texts[i].task = static_cast<std::int32_t>(i % 2);
    texts[i].acceptance.assign(100, i % 2 == 0 ? 0.3 : 0.9);
    texts[i].probability.assign(100, i % 2 == 0 ? 0.3 : 0.9);
  }
  AdaptiveOptions options;
  options.max_gamma = 8;
  options.cost = {.c = 0.05};
  const AdaptiveReport report = analyse(texts, options, 333).report;
  CHECK(report.chosen_on == 20);
  CHECK(report.judged_on == 20);
  // Both halves are alike, so that what is best on one is best on the other: 8 drafts for easy, 2 for hard texts.
  double best = 0;
  for (std::int64_t gamma = 1; gamma <= 8; ++gamma) {
    theory::ReplayedRounds all = analyse({texts[0], texts[1]}, options, 100).halves[0];
    all += analyse({texts[0], texts[1]}, options, 100).halves[1];
    best = std::max(best, 200 / all.cost(gamma, options.cost));
  }
  CHECK(report.fixed->speedup == Approx(best).epsilon(1e-12));
  CHECK(report.known_acceptance->speedup >= report.fixed->speedup);
  CHECK(report.known_acceptance->speedup >= report.token->speedup.lo);
  CHECK(report.outcome_oracle->speedup >= report.known_acceptance->speedup);
  CHECK(report.outcome_oracle->speedup >= report.token->speedup.hi);
  CHECK(report.known_acceptance->sequences == 20);

  // Where nobody says that these are tasks, policies are judged on easy texts, and so are the bounds.
  for (Text& text : texts) text.task = -1;
  const AdaptiveReport confounded = analyse(texts, options, 333).report;
  CHECK(confounded.known_acceptance->speedup >= confounded.fixed->speedup);
  CHECK(confounded.outcome_oracle->speedup >= confounded.token->speedup.hi);
}

TEST_CASE("no fixed gamma beats the bounds, however sequences, lengths and tasks fall into the halves") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    std::vector<Text> texts = random_texts(2 + seed % 9, 100 + seed);
    for (std::size_t i = 0; i < texts.size(); ++i) texts[i].task = static_cast<std::int32_t>(i * i * seed % 4);
    AdaptiveOptions options;
    options.max_gamma = 6;
    options.cost = {.c = 0.08};
    const AdaptiveReport report = analyse(texts, options, 50).report;
    CAPTURE(seed);
    REQUIRE(report.fixed);
    CHECK(report.fixed->speedup <= report.known_acceptance->speedup * (1 + 1e-12));
    CHECK(report.known_acceptance->speedup <= report.outcome_oracle->speedup * (1 + 1e-12));
    CHECK(report.token->speedup.hi <= report.outcome_oracle->speedup * (1 + 1e-12));
    CHECK(report.running_product->speedup.hi <= report.outcome_oracle->speedup * (1 + 1e-12));
  }
}

TEST_CASE("sequences of a task go to the halves by turns, and tasks of one sequence are spread") {
  const auto halves_of = [](const std::vector<std::int32_t>& tasks) {
    TaskHalves halves;
    std::vector<std::size_t> of;
    for (const std::int32_t task : tasks) of.push_back(halves.next(task));
    return of;
  };
  CHECK(halves_of({-1, -1, -1, -1}) == std::vector<std::size_t>{0, 1, 0, 1});
  CHECK(halves_of({5, 9, 5, 9, 5, 9}) == std::vector<std::size_t>{0, 1, 1, 0, 0, 1});
  CHECK(halves_of({0, 1, 2, 3, 4}) == std::vector<std::size_t>{0, 1, 0, 1, 0});
  CHECK(halves_of({0, 0, 0, 1, 2}) == std::vector<std::size_t>{0, 1, 0, 1, 0});
}

TEST_CASE("the program that knows the acceptances adds up over sequences and leaves out those too long for it") {
  const std::vector<Text> texts = random_texts(9, 5);
  AdaptiveOptions options;
  options.max_gamma = 6;
  options.cost = {.c = 0.1};
  options.longest_program = 150;
  const AdaptiveReport report = analyse(texts, options, 37).report;
  double tokens = 0;
  double cost = 0;
  std::int64_t left_out = 0;
  for (std::size_t i = 1; i < texts.size(); i += 2) {
    const Text& text = texts[i];
    if (text.acceptance.size() > 150) {
      ++left_out;
      continue;
    }
    tokens += static_cast<double>(text.acceptance.size());
    cost += theory::known_acceptance_cost(text.acceptance, 6, options.cost);
  }
  REQUIRE(left_out > 0);
  CHECK(report.known_acceptance->speedup == Approx(tokens / cost).epsilon(1e-13));
  CHECK(report.known_acceptance->left_out == left_out);
  CHECK(report.notes.size() == 1);
}

TEST_CASE("one sequence gives the bounds, but nothing to judge a policy on") {
  AdaptiveOptions options;
  options.cost = {.c = 0.1};
  const AdaptiveReport report = analyse(random_texts(1, 6), options, 10).report;
  CHECK_FALSE(report.fixed);
  CHECK_FALSE(report.token);
  CHECK(report.known_acceptance);
  CHECK(report.outcome_oracle);
  CHECK(report.notes.size() == 1);
}

TEST_CASE("adaptive drafting refuses what is no probability, naming the position") {
  const AdaptiveOptions options;
  AdaptiveDrafting adaptive(options);
  const std::vector<std::int64_t> sequence = {0, 0};
  adaptive.add({std::vector{0.5, 0.5}, std::vector{0.5, 0.5}, sequence});
  const std::vector<double> bad = {0.5, std::numeric_limits<double>::quiet_NaN()};
  CHECK_THROWS_WITH(adaptive.add({std::vector{0.5, 0.5}, bad, sequence}),
                    "AdaptiveDrafting::add: draft_token_probability at position 3 is nan, but must be in [0, 1]");
  AdaptiveOptions falling;
  falling.thresholds = {0.5, 0.4};
  CHECK_THROWS_AS(AdaptiveDrafting(falling), std::domain_error);
  AdaptiveOptions none;
  none.max_gamma = 0;
  CHECK_THROWS_AS(AdaptiveDrafting(none), std::domain_error);
}

}  // namespace specdec::estimate
