#include "analysis/estimate/replay_estimates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

#include "analysis/estimate/ratio_of_sums.hpp"
#include "analysis/theory/replay.hpp"
#include "tests/support/catch.hpp"

namespace specdec::estimate {
namespace {

struct Trace {
  std::vector<std::vector<double>> texts;
  std::vector<std::int32_t> tasks;  // of the texts, or empty

  std::vector<double> acceptance;
  std::vector<std::int64_t> sequence;
  std::vector<std::int32_t> task;

  void lay_out() {
    for (std::size_t i = 0; i < texts.size(); ++i) {
      for (const double a : texts[i]) {
        acceptance.push_back(a);
        sequence.push_back(static_cast<std::int64_t>(i));
        if (!tasks.empty()) task.push_back(tasks[i]);
      }
    }
  }

  AcceptanceColumns columns(std::size_t begin, std::size_t count) const {
    return {std::span(acceptance).subspan(begin, count), PositionLabels{sequence, task}.part(begin, count)};
  }
};

/// Easy and hard texts by turns, of 30 to 200 tokens.
Trace random_trace(std::size_t sequences, unsigned seed, bool tasks = false) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  Trace trace;
  for (std::size_t i = 0; i < sequences; ++i) {
    std::vector<double> text(30 + generator() % 171);
    for (double& a : text) a = std::min(1.0, uniform(generator) + (i % 2 == 0 ? 0.5 : 0.1));
    trace.texts.push_back(text);
    if (tasks) trace.tasks.push_back(static_cast<std::int32_t>(i % 2));
  }
  trace.lay_out();
  return trace;
}

ReplayEstimates replay(const Trace& trace, ReplayEstimateOptions options, std::size_t piece) {
  ReplayEstimates estimates(std::move(options));
  for (std::size_t begin = 0; begin < trace.acceptance.size(); begin += piece)
    estimates.add(trace.columns(begin, std::min(piece, trace.acceptance.size() - begin)));
  estimates.finish();
  return estimates;
}

ReplayEstimateOptions options_with(double c, std::int64_t max_gamma = 6) {
  ReplayEstimateOptions options;
  options.replay = {.max_gamma = max_gamma, .by_position = true};
  options.cost = core::StepCost{.c = c};
  return options;
}

void require_same(const ReplayReport& a, const ReplayReport& b) {
  REQUIRE(a.gammas.size() == b.gammas.size());
  for (std::size_t gamma = 0; gamma < a.gammas.size(); ++gamma) {
    CAPTURE(gamma);
    REQUIRE(a.gammas[gamma].tokens_per_step.value == b.gammas[gamma].tokens_per_step.value);
    REQUIRE(a.gammas[gamma].tokens_per_step.ci95->lo == b.gammas[gamma].tokens_per_step.ci95->lo);
    REQUIRE(a.gammas[gamma].speedup->value == b.gammas[gamma].speedup->value);
  }
  REQUIRE(a.optimum->gamma == b.optimum->gamma);
  REQUIRE(a.optimum->near_optimal_gammas == b.optimum->near_optimal_gammas);
}

}  // namespace

TEST_CASE("tokens per step and speedup of a recording are sums over its sequences") {
  const Trace trace = random_trace(20, 1);
  const ReplayReport report = replay(trace, options_with(0.1), 1000).report(0.7);
  CHECK(report.sequences == 20);
  CHECK(report.tokens == static_cast<std::int64_t>(trace.acceptance.size()));
  for (const GammaReplay& row : report.gammas) {
    std::vector<double> tokens;
    std::vector<double> steps;
    for (const auto& text : trace.texts) {
      tokens.push_back(static_cast<double>(text.size()));
      steps.push_back(theory::replay_steps(text, row.gamma).expected);
    }
    const Estimate expected = ratio_of_sums(tokens, steps);
    CAPTURE(row.gamma);
    CHECK(row.tokens_per_step.value == Approx(expected.value).epsilon(1e-12));
    std::vector<RatioTerm> terms;
    for (std::size_t k = 0; k < tokens.size(); ++k) terms.push_back({tokens[k], steps[k]});
    if (row.gamma > 0) {
      const Interval interval =
          bounded_t_interval(expected.value, *standard_error(terms), 1, static_cast<double>(row.gamma) + 1);
      CHECK(row.tokens_per_step.ci95->lo == Approx(interval.lo).epsilon(1e-12));
      CHECK(row.tokens_per_step.ci95->hi == Approx(interval.hi).epsilon(1e-12));
    }
    CHECK(*row.difference == Approx(*row.iid_tokens_per_step - row.tokens_per_step.value));
    CHECK(*row.iid_speedup == Approx(*row.iid_tokens_per_step / (1 + 0.1 * static_cast<double>(row.gamma))));
    const double cost = 1 + 0.1 * static_cast<double>(row.gamma);
    CHECK(row.speedup->ci95->lo == Approx(row.tokens_per_step.ci95->lo / cost).epsilon(1e-12));
    CHECK(row.speedup->ci95->hi == Approx(row.tokens_per_step.ci95->hi / cost).epsilon(1e-12));
    // The steps at the ends of texts are charged in full.
    CHECK(row.speedup->value == Approx(expected.value / cost).epsilon(1e-12));
  }
  CHECK(report.gammas[0].speedup->value == 1);
}

TEST_CASE("a report depends neither on threads nor on how the positions were handed over") {
  const Trace trace = random_trace(60, 2);
  const ReplayReport whole = replay(trace, options_with(0.1), trace.acceptance.size()).report();
  ReplayEstimateOptions threaded = options_with(0.1);
  threaded.threads = 3;
  require_same(replay(trace, threaded, trace.acceptance.size()).report(), whole);
  for (const std::size_t piece : {1U, 17U, 64U, 999U}) require_same(replay(trace, threaded, piece).report(), whole);
}

// The oracle is a replay that was never asked for more.
TEST_CASE("a report that ends at a gamma is that of a replay up to there") {
  for (const int texts : {40, 1}) {
    const Trace trace = random_trace(texts, 3);
    const ReplayEstimateOptions few = options_with(0.15, 3);
    ReplayEstimates ended = replay(trace, options_with(0.15), 500);
    ended.end_at(3);
    require_same(ended.report(0.6), replay(trace, few, 500).report(0.6));
    if (few.replay.by_position) CHECK(ended.conditional_acceptance().size() == 3);
    CHECK_THROWS_AS(ended.end_at(0), std::domain_error);
  }
}

TEST_CASE("the best gamma is the fastest, and among those that cannot be told from it") {
  const Trace trace = random_trace(40, 3);
  const ReplayReport report = replay(trace, options_with(0.15), 500).report();
  REQUIRE(report.optimum);
  for (const GammaReplay& row : report.gammas) CHECK(row.speedup->value <= report.optimum->speedup);
  const auto& near = *report.optimum->near_optimal_gammas;
  CHECK(std::count(near.begin(), near.end(), report.optimum->gamma) == 1);
  CHECK(std::count(near.begin(), near.end(), 0) == 0);
}

TEST_CASE("texts that are all alike leave no doubt about the best gamma") {
  Trace trace;
  trace.texts.assign(10, random_trace(1, 4).texts[0]);
  trace.lay_out();
  const ReplayReport report = replay(trace, options_with(0.1), 100).report();
  CHECK(report.optimum->near_optimal_gammas->size() == 1);
}

TEST_CASE("one sequence has an interval from its batches, too short a one has none") {
  Trace trace;
  trace.texts = {random_trace(1, 6).texts[0]};
  std::vector<double>& text = trace.texts[0];
  for (std::size_t t = 0; text.size() < 70'000; ++t) text.push_back(text[t]);
  trace.lay_out();
  const ReplayReport report = replay(trace, options_with(0.1), 777).report();
  REQUIRE(report.gammas[3].tokens_per_step.ci95);
  CHECK(report.gammas[3].tokens_per_step.method ==
        "exact replay; means of 10 batches of the only sequence, Student's t");
  CHECK(report.gammas[3].tokens_per_step.value == Approx(70'000 / theory::replay_steps(text, 3).expected));

  Trace small;
  small.texts = {std::vector<double>(100, 0.5)};
  small.lay_out();
  CHECK_FALSE(replay(small, options_with(0.1), 30).report().gammas[3].tokens_per_step.ci95);
}

TEST_CASE("where next to nothing was rejected, or accepted, intervals are those of the rate and the report says so") {
  for (const double a : {1.0, 0.0}) {
    Trace trace;
    trace.texts.assign(20, std::vector<double>(100, a));
    trace.lay_out();
    const ReplayReport report = replay(trace, options_with(0.05, 4), 500).report(a);
    const GammaReplay& row = report.gammas[4];
    CAPTURE(a);
    CHECK(row.tokens_per_step.value == 1 + 4 * a);
    // 2000 trials without an exception: Wilson's other end is z^2 / (2000 + z^2) away, Eq. 1 follows from there.
    const double off = 1.959964 * 1.959964 / (2000 + 1.959964 * 1.959964);
    const double end = a == 1 ? (1 - std::pow(1 - off, 5)) / off : (1 - std::pow(off, 5)) / (1 - off);
    CHECK((a == 1 ? row.tokens_per_step.ci95->lo : row.tokens_per_step.ci95->hi) == Approx(end).epsilon(1e-6));
    CHECK(row.speedup->ci95->hi - row.speedup->ci95->lo > 0.001);
    CHECK(row.speedup->ci95->lo <= row.speedup->value);
    CHECK(row.speedup->ci95->hi >= row.speedup->value);
    REQUIRE(report.notes.size() == 1);
    CHECK(report.notes[0].find(a == 1 ? "0 expected rejections" : "0 expected acceptances") == 0);
    CHECK(row.tokens_per_step.method.find("Wilson") != std::string::npos);
    CHECK(report.gammas[0].tokens_per_step.ci95->hi == 1);
  }
}

TEST_CASE("sequences that are all alike determine no interval, unless hardly anything was rejected") {
  Trace trace;
  trace.texts.assign(10, std::vector<double>(60, 0.5));
  trace.lay_out();
  const ReplayReport report = replay(trace, options_with(0.1), 100).report();
  CHECK_FALSE(report.gammas[3].tokens_per_step.ci95);
  CHECK_FALSE(report.gammas[3].speedup->ci95);
  CHECK(report.gammas[0].tokens_per_step.ci95);
  CHECK(report.notes.empty());
}

TEST_CASE("the break-even cost is where the best gamma stops gaining") {
  const Trace trace = random_trace(12, 7);
  const ReplayReport report = replay(trace, options_with(0.1), 500).report();
  REQUIRE(report.break_even);
  const double c = report.break_even->c;
  const auto best_speedup = [&](double cost) {
    return replay(trace, options_with(cost), 500).report().optimum->speedup;
  };
  CHECK(best_speedup(c * 0.999) > 1);
  CHECK(best_speedup(c * 1.001) == 1);
  ReplayEstimateOptions dear = options_with(0.1);
  dear.cost->overhead = 50;
  CHECK_FALSE(replay(trace, dear, 500).report().break_even);
}

TEST_CASE("without a cost there are tokens per step and a break-even cost, but no speedup") {
  ReplayEstimateOptions options = options_with(0);
  options.cost.reset();
  const ReplayReport report = replay(random_trace(12, 8), options, 500).report();
  CHECK_FALSE(report.optimum);
  CHECK_FALSE(report.gammas[2].speedup);
  CHECK(report.break_even);
  CHECK_FALSE(report.gammas[2].iid_tokens_per_step);
}

TEST_CASE("each task has its own report") {
  const Trace trace = random_trace(40, 9, true);
  const auto tasks = replay(trace, options_with(0.1), 500).by_task({{0, 0.8}});
  REQUIRE(tasks.size() == 2);
  CHECK(tasks.at(0).sequences == 20);
  CHECK(tasks.at(0).tokens + tasks.at(1).tokens == static_cast<std::int64_t>(trace.acceptance.size()));
  CHECK(tasks.at(0).gammas[4].tokens_per_step.value > tasks.at(1).gammas[4].tokens_per_step.value);
  CHECK(tasks.at(0).gammas[4].iid_tokens_per_step);
  CHECK_FALSE(tasks.at(1).gammas[4].iid_tokens_per_step);
}

TEST_CASE("any number of sequences is kept in bounded groups that lose no token") {
  Trace trace;
  for (std::size_t i = 0; i < 9001; ++i) {
    trace.texts.emplace_back(1 + i % 5, i % 3 == 0 ? 0.9 : 0.4);
    trace.tasks.push_back(static_cast<std::int32_t>(i % 7 == 0));
  }
  trace.lay_out();
  ReplayEstimateOptions options = options_with(0.1, 3);
  const ReplayEstimates estimates = replay(trace, options, 5000);
  const ReplayReport report = estimates.report();
  CHECK(report.sequences == 9001);
  CHECK(report.tokens == static_cast<std::int64_t>(trace.acceptance.size()));
  CHECK(estimates.total().tokens() == report.tokens);
  // A fair coin's 9001 throws, five standard deviations: a false alarm of 6e-7, were the seed not fixed.
  CHECK(std::abs(estimates.halves()[0].sequences() - 4500) < 240);
  CHECK(estimates.halves()[0].sequences() + estimates.halves()[1].sequences() == 9001);
  CHECK(report.gammas[2].tokens_per_step.value ==
        Approx(static_cast<double>(report.tokens) / estimates.total().steps(2)).epsilon(1e-12));
  CHECK(report.gammas[2].tokens_per_step.method.find("groups of sequences") != std::string::npos);
}

TEST_CASE("more tasks than groups are kept in two groups each, and the whole in as many groups as without tasks") {
  Trace trace;
  for (std::size_t i = 0; i < 15'000; ++i) {
    trace.texts.emplace_back(1 + i % 3, 0.5);
    trace.tasks.push_back(static_cast<std::int32_t>(i % 5000));
  }
  trace.lay_out();
  ReplayEstimateOptions options = options_with(0.1, 2);
  const ReplayEstimates estimates = replay(trace, options, 5000);
  const ReplayReport report = estimates.report();
  CHECK(report.tokens == static_cast<std::int64_t>(trace.acceptance.size()));
  const auto groups = std::stoi(
      report.gammas[2].tokens_per_step.method.substr(std::string("exact replay; ratio of sums over ").size()));
  CHECK(groups > static_cast<int>(ClusterTable::most_rows / 2));
  CHECK(groups <= static_cast<int>(ClusterTable::most_rows));
  const auto tasks = estimates.by_task();
  REQUIRE(tasks.size() == 5000);
  CHECK(tasks.at(7).sequences == 3);
}

TEST_CASE("what is replayed at once stays within its memory for every gamma, depth and number of threads") {
  for (const std::int64_t gamma : {0, 16, 100, 200, 350, 512}) {
    for (const std::int64_t depths : {1, 512}) {
      for (const std::int64_t threads : {1, 2, 16, 1024}) {
        const ReplayedAtOnce at_once = replayed_at_once({gamma, depths, true}, threads);
        CAPTURE(gamma, depths, threads, at_once.threads, at_once.sequences);
        CHECK(at_once.bytes <= most_replaying_bytes);
        CHECK(at_once.threads >= 1);
        CHECK(at_once.threads <= threads);
        CHECK(at_once.sequences >= static_cast<std::size_t>(std::min<std::int64_t>(at_once.threads, 6)));
      }
    }
  }
  CHECK(replayed_at_once({16, 1, true}, 64).threads == 64);
  CHECK(replayed_at_once({16, 1, true}, 64).sequences == 512);
}

TEST_CASE("gammas that few sequences at once leave room for replay to the same bits, on any number of threads") {
  const Trace trace = random_trace(40, 8);
  ReplayEstimateOptions options = options_with(0.1);
  options.replay = {512, 1, false};
  REQUIRE(replayed_at_once(options.replay, 1).sequences < 40);
  const ReplayReport at_once = replay(trace, options, trace.acceptance.size()).report();
  options.threads = 4;
  const ReplayReport one_by_one = replay(trace, options, 29).report();
  for (std::size_t gamma = 0; gamma <= 512; ++gamma) {
    CHECK(at_once.gammas[gamma].tokens_per_step.value == one_by_one.gammas[gamma].tokens_per_step.value);
  }
}

TEST_CASE("a report depends neither on the order of the texts nor on how they were divided") {
  Trace trace = random_trace(3000, 12, true);
  const ReplayReport whole = replay(trace, options_with(0.1, 4), trace.acceptance.size()).report();
  std::vector<std::size_t> order(trace.texts.size());
  std::iota(order.begin(), order.end(), 0U);
  std::shuffle(order.begin(), order.end(), std::mt19937(5));
  std::vector<ReplayEstimates> parts;
  for (int part = 0; part < 3; ++part) parts.emplace_back(options_with(0.1, 4));
  for (const std::size_t i : order) {
    const std::vector<std::int64_t> sequence(trace.texts[i].size(), static_cast<std::int64_t>(i));
    const std::vector<std::int32_t> task(trace.texts[i].size(), trace.tasks[i]);
    parts[i % 7 % 3].add({trace.texts[i], {sequence, task}});
  }
  for (ReplayEstimates& part : parts) part.finish();
  parts[2].merge(parts[0]);
  parts[2].merge(parts[1]);
  require_same(parts[2].report(), whole);
  const auto rates = replay(trace, options_with(0.1, 4), 999).conditional_acceptance();
  CHECK(parts[2].conditional_acceptance()[3]->value == rates[3]->value);
  CHECK(parts[2].conditional_acceptance()[3]->ci95->hi == rates[3]->ci95->hi);
}

TEST_CASE("columns that contradict each other are refused with the position counted over the recording") {
  ReplayEstimates estimates(options_with(0.1));
  const std::vector<std::int64_t> sequence = {0, 0};
  estimates.add({std::vector{0.5, 0.5}, {sequence}});
  const std::vector<double> bad = {0.5, std::numeric_limits<double>::quiet_NaN()};
  CHECK_THROWS_WITH(estimates.add({bad, {sequence}}),
                    "ReplayEstimates::add: acceptance at position 3 is nan, but must be in [0, 1]");
  CHECK_THROWS_AS(estimates.add({std::vector{0.5}, {sequence}}), std::invalid_argument);
  estimates.finish();
  CHECK(estimates.report().tokens == 2);
  CHECK(ReplayEstimates(options_with(0.1)).report().gammas.empty());
  CHECK_THROWS_AS(ReplayEstimates(options_with(-1)), std::domain_error);
}

}  // namespace specdec::estimate
