#include "analysis/cost/measured_cost.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/cost/replicate_draws.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_dir.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using cost::DraftKind;
using cost::MeasuredCost;
using cost::PassCurve;
using traces::TimedPass;
using traces::TimingAxis;

namespace {

TimedPass pass(double batch, double tokens, double context, double seconds, TimingAxis axis = TimingAxis::grid) {
  TimedPass result;
  result.axis = axis;
  result.batch = batch;
  result.tokens = tokens;
  result.context = context;
  result.seconds = seconds;
  return result;
}

/// Passes over 1, 2, ... tokens of one sequence.
std::vector<TimedPass> verification(const std::vector<double>& seconds) {
  std::vector<TimedPass> passes;
  for (std::size_t i = 0; i < seconds.size(); ++i)
    passes.push_back(pass(1, static_cast<double>(i + 1), 0, seconds[i], TimingAxis::verification));
  return passes;
}

bool has_finding(std::span<const Note> findings, const std::string& code) {
  return std::any_of(findings.begin(), findings.end(), [&](const auto& finding) { return finding.code == code; });
}

/// The message of the first finding with this code; empty if there is none.
std::string message_of(const PassCurve& curve, const std::string& code) {
  for (const Note& finding : curve.findings())
    if (finding.code == code) return finding.message;
  return {};
}

double speedup(const cost::RoundCost& price, double alpha, std::int64_t gamma) {
  const double tokens = theory::expected_tokens(core::AcceptanceRate(alpha), gamma);
  return tokens * price.round({}).total() / price.round({.gamma = gamma}).total();
}

cost::MeasuredOptions without_draft() {
  cost::MeasuredOptions options;
  options.c = 0;
  return options;
}

}  // namespace

TEST_CASE("a measured cost with free verification gives the speedup of Theorem 3.8") {
  const std::vector<TimedPass> target = {pass(1, 1, 0, 0.02), pass(1, 65, 0, 0.02)};
  for (const double c : {0.02, 0.1, 0.5, 1.5}) {
    const std::vector<TimedPass> draft = {pass(1, 1, 0, 0.02 * c), pass(1, 2, 0, 0.02 * c)};
    const MeasuredCost timed(target, draft, {});
    cost::MeasuredOptions by_ratio;
    by_ratio.c = c;
    const MeasuredCost stated(target, {}, by_ratio);
    for (const double alpha : {0.0, 0.3, 0.8, 0.99, 1.0}) {
      for (const std::int64_t gamma : {0, 1, 2, 5, 12, 64}) {
        const double expected = theory::walltime_improvement(core::AcceptanceRate(alpha), gamma, c);
        CHECK(speedup(timed, alpha, gamma) == Approx(expected).epsilon(1e-12));
        CHECK(speedup(stated, alpha, gamma) == Approx(expected).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("steps of padded verification stay, so that the best gamma lies behind a worse one") {
  // v(n) = 1 + 0.1 (2^ceil(log2 n) - 1), alpha = 0.8, c = 0: speedups by direct evaluation with 5 digits.
  std::vector<double> seconds;
  for (int n = 1; n <= 9; ++n) seconds.push_back(0.01 * (1 + 0.1 * (std::exp2(std::ceil(std::log2(n))) - 1)));
  const MeasuredCost price(verification(seconds), {}, without_draft());
  const std::vector<double> expected = {1, 1.6364, 1.8769, 2.2708, 1.9774, 2.1702, 2.3244, 2.4477, 1.7316};
  for (std::int64_t gamma = 0; gamma <= 8; ++gamma)
    CHECK(speedup(price, 0.8, gamma) == Approx(expected[static_cast<std::size_t>(gamma)]).margin(5e-5));
}

TEST_CASE("total tokens and the context of all sequences price a pass") {
  const auto truth = [](double total, double context) { return 0.01 + 0.001 * total + 2e-7 * context; };
  std::vector<TimedPass> passes;
  for (const double batch : {1.0, 4.0, 16.0})
    for (const double context : {100.0, 900.0, 2000.0})
      for (const double tokens : {1.0, 5.0})
        passes.push_back(pass(batch, tokens, context, truth(batch * tokens, batch * context)));
  const PassCurve curve("target", passes, {});
  for (const double batch : {1.0, 2.0, 7.5, 16.0})
    for (const double tokens : {1.0, 2.0, 4.0})
      for (const double context : {100.0, 1234.0, 2000.0})
        CHECK(curve.seconds(batch, tokens, context) == Approx(truth(batch * tokens, batch * context)));
  CHECK(curve.findings().empty());
  CHECK(curve.usual_context() == Approx(1000));
}

TEST_CASE("equal total tokens of different batches tell what one context costs, whatever tokens cost") {
  // Reading weights, products with and without a knee, padded products; all with caches that are read once a sequence.
  const std::vector<std::function<double(double)>> laws = {
      [](double total) { return 0.012 + 0.00005 * total; },
      [](double total) { return std::max(0.012, 0.0001 * total); },
      [](double total) { return 0.008 + 0.002 * std::ceil(total / 32); },
  };
  for (const auto& of_tokens : laws) {
    std::vector<TimedPass> passes;
    for (const double batch : {1.0, 4.0, 16.0, 64.0})
      for (const double tokens : {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0})
        passes.push_back(pass(batch, tokens, 4000, of_tokens(batch * tokens) + 1e-7 * batch * 4000));
    const PassCurve curve("target", passes, {});
    for (const TimedPass& timed : passes)
      CHECK(curve.seconds(timed.batch, timed.tokens, 4000) == Approx(timed.seconds));
    for (const double batch : {2.0, 8.0, 32.0})
      CHECK(curve.seconds(batch, 2, 4000) == Approx(of_tokens(2 * batch) + 1e-7 * batch * 4000));
    CHECK(curve.findings().empty());
    CHECK(curve.seconds(1, 1, 5000) == Approx(of_tokens(1) + 1e-7 * 5000));
  }
}

TEST_CASE("scatter alone is not taken for a cost of the context, and a cost beyond it is") {
  constexpr std::uint32_t tables = 400;
  const auto told = [](double per_context_token, double noise) {
    std::int64_t tables_that_tell = 0;
    double largest_error = 0;
    for (std::uint32_t table = 0; table < tables; ++table) {
      const cost::ReplicateDraws draws{7, 0, table};
      std::vector<TimedPass> passes;
      std::vector<double> truth;
      for (const double batch : {1.0, 4.0, 16.0, 64.0}) {
        for (const double tokens : {1.0, 2.0, 4.0, 8.0}) {
          truth.push_back(std::max(0.012, 0.0001 * batch * tokens) + per_context_token * batch * 4000);
          const double scattered = truth.back() * (1 + noise * draws.standard_normal(passes.size()));
          passes.push_back(pass(batch, tokens, 4000, scattered));
        }
      }
      const PassCurve curve("target", passes, {});
      if (curve.about(1, 5000).empty()) ++tables_that_tell;
      for (std::size_t i = 0; i < passes.size(); ++i) {
        const double price = curve.seconds(passes[i].batch, passes[i].tokens, 4000);
        largest_error = std::max(largest_error, std::abs(price / truth[i] - 1));
      }
    }
    return std::pair(tables_that_tell, largest_error);
  };
  // 2.5% of 400 tables are 10; more than 26 in less than 1e-5 of runs, if all tables had cells that differ by 10%.
  CHECK(told(0, 0.05).first <= 26);
  const auto [telling, largest_error] = told(1e-7, 0.02);
  CHECK(telling == tables);
  // 6,400 cells of 2%: 5 standard deviations of one of them, false alarms below 0.4%. By the mean over a total alone
  // the cell of 64 sequences and one token is 27% off.
  CHECK(largest_error < 0.1);
}

TEST_CASE("a cell that its price contradicts is named, with its error and what would tell") {
  const std::vector<TimedPass> mixed = {pass(1, 4, 0, 0.010), pass(4, 1, 0, 0.020)};
  const PassCurve without_context("target", mixed, {});
  CHECK_THAT(message_of(without_context, "total_tokens_do_not_tell"),
             Contains("4 tokens of each of 1 sequence, timed at 0.01 s, are priced at 0.015 s, 50% too much") &&
                 Contains("the same passes at a second context would tell what the context costs"));
  CHECK(without_context.seconds(1, 4, 0) == Approx(0.015));
  // More sequences took less: no cache does that.
  const PassCurve falling("target", std::vector<TimedPass>{pass(1, 4, 100, 0.020), pass(4, 1, 100, 0.010)}, {});
  CHECK_THAT(falling.about(1, 200), Contains("are taken to last as long at others"));
  CHECK(has_finding(falling.findings(), "total_tokens_do_not_tell"));
  std::vector<TimedPass> two_contexts;
  for (const double context : {0.0, 1000.0}) {
    two_contexts.push_back(pass(1, 4, context, 0.010 + 1e-6 * context));
    two_contexts.push_back(pass(4, 1, context, 0.020 + 4e-6 * context));
  }
  const PassCurve unexplained("target", two_contexts, {});
  CHECK_THAT(message_of(unexplained, "total_tokens_do_not_tell"), Contains("their contexts do not explain it"));
}

TEST_CASE("outside what was timed passes hold their slope until operations limit them, in each replicate elsewhere") {
  const std::vector<TimedPass> passes = {pass(1, 2, 100, 0.010), pass(1, 4, 100, 0.012), pass(1, 8, 100, 0.020)};
  cost::MeasuredOptions ngrams;
  ngrams.kind = DraftKind::ngram;
  const MeasuredCost price(passes, {}, ngrams);
  CHECK(price.round({.gamma = 1, .batch = 3, .context = 100}).total() == Approx(0.016));
  CHECK(price.extrapolates({.gamma = 9, .context = 100}));
  CHECK_FALSE(price.extrapolates({.gamma = 7, .context = 100}));
  // By the last slope 0.002 a token; by operations at most as long as tokens are many.
  CHECK(price.round({.gamma = 9, .context = 100}).total() == Approx(0.024));
  const PassCurve curve("target", passes, {});
  double least = 1, most = 0;
  for (std::size_t r = 0; r < curve.replicates(); ++r) {
    CHECK(curve.seconds(1, 8, 100, 1 + r) == 0.020);
    const double fewer = curve.seconds(1, 1, 100, 1 + r), more = curve.seconds(1, 8192, 100, 1 + r);
    CHECK((0.009 <= fewer && fewer <= 0.010));
    CHECK((0.020 + 0.002 * 8184 <= more && more <= 0.020 * 1024));
    least = std::min(least, fewer);
    most = std::max(most, more);
  }
  CHECK(least < 0.0095);
  CHECK(most > 0.020 + 0.002 * 8184);
  // One number of tokens tells no slope.
  const PassCurve one("target", verification({0.010}), {});
  CHECK(one.seconds(1, 2, 0) == 0.010);
  CHECK(one.seconds(1, 512, 0) == Approx(0.010 * std::sqrt(512.0)));
}

TEST_CASE("contexts that nothing prices take as long as the timed ones, and it is said") {
  const std::vector<TimedPass> one_context = {pass(1, 1, 100, 0.010), pass(1, 4, 100, 0.012)};
  const PassCurve unknown("target", one_context, {});
  CHECK(unknown.seconds(1, 4, 5000) == 0.012);
  CHECK(unknown.extrapolates(1, 4, 5000));
  CHECK_THAT(unknown.about(1, 5000), Contains("timed at context 100 alone"));
  CHECK(unknown.about(1, 100).empty());
  const std::vector<TimedPass> two_contexts = {pass(1, 1, 100, 0.010), pass(1, 1, 1100, 0.011)};
  const PassCurve known("target", two_contexts, {});
  CHECK(known.seconds(1, 1, 2100) == Approx(0.012));
  CHECK(known.about(1, 2100).empty());
}

TEST_CASE("passes of one time are not called slower by the rounding of their contexts' correction") {
  std::vector<TimedPass> passes;
  for (const double batch : {1.0, 2.0, 4.0, 8.0, 16.0}) {
    for (const double tokens : {1.0, 2.0, 3.0, 5.0, 8.0}) {
      for (const double context : {512.0, 1024.0, 4096.0}) {
        const double seconds = 0.0123 + 1e-8 * batch * context;
        passes.push_back(pass(batch, tokens, context, seconds));
      }
    }
  }
  CHECK_FALSE(has_finding(PassCurve("target", passes, {}).findings(), "slower_smaller_pass"));
  for (TimedPass& one : passes) {
    if (one.batch == 2 && one.tokens == 3) one.seconds *= 1.001;
  }
  CHECK(has_finding(PassCurve("target", passes, {}).findings(), "slower_smaller_pass"));
}

TEST_CASE("where a smaller batch is slower the rows are pooled, and reported") {
  const auto table = traces::read_timing_table(std::filesystem::path(tests::source_dir()) /
                                               "traces/samples/llamacpp/batched-bench.jsonl");
  const double first = 0.049187 / 16, second = 0.037583 / 16;
  const PassCurve pooled("target", table.passes, {});
  CHECK(pooled.seconds(1, 1, 23.5) == Approx((first + second) / 2));
  CHECK(pooled.seconds(2, 1, 23.5) == Approx((first + second) / 2));
  CHECK(pooled.seconds(4, 1, 23.5) == Approx(0.071035 / 16));
  REQUIRE(has_finding(pooled.findings(), "slower_smaller_pass"));
  CHECK_THAT(pooled.findings()[0].message, Contains("a pass over 1 tokens took 0.003074 s, longer than one over more"));
  CHECK(has_finding(pooled.findings(), "batch_axis_prices_verification"));
}

TEST_CASE("pooling is the least-squares fit that does not fall, by enumeration of all ways to pool") {
  const std::vector<std::vector<double>> cases = {
      {3, 1, 2, 5, 4}, {5, 4, 3, 2, 1}, {1, 2, 3, 4, 5}, {2, 9, 1, 1, 8}, {4, 4, 1, 7, 2}};
  for (const std::vector<double>& seconds : cases) {
    std::vector<double> best;
    double least = std::numeric_limits<double>::infinity();
    for (unsigned cuts = 0; cuts < 16; ++cuts) {
      std::vector<double> fit;
      for (std::size_t begin = 0; begin < 5;) {
        std::size_t end = begin + 1;
        while (end < 5 && (cuts >> (end - 1) & 1U) == 0) ++end;
        double sum = 0;
        for (std::size_t i = begin; i < end; ++i) sum += seconds[i];
        fit.insert(fit.end(), end - begin, sum / static_cast<double>(end - begin));
        begin = end;
      }
      if (!std::is_sorted(fit.begin(), fit.end())) continue;
      double squares = 0;
      for (std::size_t i = 0; i < 5; ++i) squares += (fit[i] - seconds[i]) * (fit[i] - seconds[i]);
      if (squares < least) best = fit;
      least = std::min(least, squares);
    }
    const PassCurve curve("target", verification(seconds), {});
    for (std::size_t i = 0; i < 5; ++i) CHECK(curve.seconds(1, static_cast<double>(i + 1), 0) == Approx(best[i]));
  }
}

TEST_CASE("the batch axis and the verification axis stay apart") {
  std::vector<TimedPass> passes = verification({0.010, 0.011, 0.012, 0.013});
  for (const double batch : {1.0, 2.0, 4.0}) passes.push_back(pass(batch, 1, 0, 0.02 * batch, TimingAxis::batch));
  const PassCurve curve("target", passes, {});
  CHECK(curve.seconds(1, 4, 0) == Approx(0.013));
  CHECK(curve.seconds(1, 1, 0) == Approx(0.010));
  CHECK(curve.seconds(2, 2, 0) == Approx(0.08));
  CHECK(curve.seconds(4, 1, 0) == Approx(0.08));
  CHECK(has_finding(curve.findings(), "batch_axis_prices_verification"));
}

TEST_CASE("a batch beyond the timed ones is priced by total tokens, and no longer as measured") {
  std::vector<TimedPass> grid = {pass(1, 1, 0, 0.010), pass(64, 1, 0, 0.020), pass(64, 4, 0, 0.030)};
  cost::MeasuredOptions ngrams;
  ngrams.kind = DraftKind::ngram;
  const MeasuredCost price(grid, {}, ngrams);
  CHECK(price.findings().empty());
  CHECK_FALSE(price.extrapolates({.gamma = 1, .batch = 32}));
  CHECK(price.about(32, 0).empty());
  CHECK(price.extrapolates({.batch = 128}));
  CHECK(price.round({.batch = 128}).total() == price.round({.gamma = 1, .batch = 64}).total());
  CHECK(price.about(128, 0) ==
        "passes of the target were timed at batch 1 to 64, and those of other batches are priced as passes over as many "
        "tokens in all; time batch 128 to know them");

  const MeasuredCost of_one(verification({0.010, 0.011, 0.012}), {}, ngrams);
  CHECK(of_one.findings().empty());
  CHECK(of_one.extrapolates({.batch = 2}));
  CHECK_THAT(of_one.about(2, 0), Contains("timed at batch 1, and"));

  ngrams.kind = DraftKind::model;
  const MeasuredCost drafted(grid, std::vector{pass(1, 1, 0, 0.001), pass(1, 64, 0, 0.002)}, ngrams);
  CHECK_FALSE(drafted.extrapolates({.batch = 64}));
  CHECK(drafted.extrapolates({.gamma = 1, .batch = 64}));
  CHECK_THAT(drafted.about(64, 0), Contains("passes of the draft were timed at batch 1, and"));
}

TEST_CASE("of several tables the one that timed a batch prices it") {
  std::vector<TimedPass> passes = {pass(1, 1, 0, 0.010), pass(8, 8, 0, 0.020)};
  for (const double batch : {1.0, 64.0}) passes.push_back(pass(batch, 1, 0, 0.001 * batch, TimingAxis::batch));
  const PassCurve curve("target", passes, {});
  CHECK(curve.seconds(8, 8, 0) == Approx(0.020));
  CHECK(curve.seconds(64, 1, 0) == Approx(0.064));
  CHECK_FALSE(curve.extrapolates(64, 1, 0));
}

TEST_CASE("several tokens of several sequences that no table timed are reported, whatever its layout") {
  const std::vector<TimedPass> lists = {pass(1, 1, 0, 0.010), pass(64, 1, 0, 0.020), pass(1, 256, 0, 0.030)};
  const PassCurve apart("target", lists, {});
  REQUIRE(has_finding(apart.findings(), "batch_axis_prices_verification"));
  CHECK_THAT(apart.findings()[0].message, Contains("several tokens of several sequences were not timed"));
  const PassCurve of_batches("target", std::span(lists).first(2), {});
  REQUIRE(has_finding(of_batches.findings(), "batch_axis_prices_verification"));
  CHECK_THAT(of_batches.findings()[0].message, Contains("several tokens of a sequence were not timed"));
}

TEST_CASE("generating one token after another is plain decoding, and a prompt of one token gives way to it") {
  std::vector<TimedPass> passes = {pass(1, 2, 0, 0.02, TimingAxis::verification),
                                   pass(1, 1, 31.5, 0.01, TimingAxis::generation)};
  CHECK(PassCurve("target", passes, {}).seconds(1, 1, 0) == Approx(0.01));
  passes.push_back(pass(1, 1, 0, 0.012, TimingAxis::verification));
  const PassCurve both("target", passes, {});
  CHECK(both.seconds(1, 1, 0) == Approx(0.01));
  passes.erase(passes.begin() + 1);
  const PassCurve prompts("target", passes, {});
  CHECK(prompts.seconds(1, 1, 0) == Approx(0.012));
}

TEST_CASE("each kind of draft pays its passes, and the catch-up token") {
  const std::vector<TimedPass> target = verification({0.01, 0.01, 0.01, 0.01, 0.01, 0.01});
  const std::vector<TimedPass> draft = {pass(1, 1, 0, 0.001, TimingAxis::verification),
                                        pass(1, 2, 0, 0.0015, TimingAxis::verification)};
  cost::MeasuredOptions options;
  options.overhead_seconds = 0.0002;
  const auto priced = [&](DraftKind kind, double full_accepts) {
    options.kind = kind;
    const bool drafts = kind != DraftKind::ngram;
    return MeasuredCost(target, drafts ? std::span(draft) : std::span<const TimedPass>(), options)
        .round({.gamma = 4, .full_accepts = full_accepts});
  };
  for (const DraftKind kind : {DraftKind::model, DraftKind::eagle, DraftKind::mtp}) {
    CHECK(priced(kind, 0).draft == Approx(0.004));
    CHECK(priced(kind, 0.4).draft == Approx(0.004 + 0.4 * 0.0005));
  }
  CHECK(priced(DraftKind::parallel, 0).draft == Approx(0.001));
  CHECK(priced(DraftKind::ngram, 0.4).draft == 0);
  CHECK(priced(DraftKind::ngram, 0).overhead == 0.0002);
  CHECK(priced(DraftKind::ngram, 0).total() == Approx(0.0102));
  options.kind = DraftKind::model;
  CHECK(MeasuredCost(target, std::span(draft).first(1), options).round({.gamma = 4, .full_accepts = 1}).draft ==
        Approx(0.004));
  CHECK(MeasuredCost(target, draft, options).round({}).total() == Approx(0.01));
}

TEST_CASE("a mirrored draft decodes what the target verified once more, and never catches up") {
  // The passes of llama.cpp's draft one after the other: gamma tokens one by one, then all gamma + 1 in one pass.
  const std::vector<double> draft_seconds = {0.0010, 0.0013, 0.0014, 0.0019, 0.0020, 0.0021};
  const std::vector<TimedPass> target = verification({0.010, 0.011, 0.012, 0.013, 0.014, 0.015, 0.016, 0.017});
  cost::MeasuredOptions options;
  options.kind = DraftKind::mirrored;
  const MeasuredCost price(target, verification(draft_seconds), options);
  for (std::int64_t gamma = 1; gamma <= 5; ++gamma) {
    double walked = 0;
    for (std::int64_t token = 0; token < gamma; ++token) walked += draft_seconds[0];
    walked += draft_seconds[static_cast<std::size_t>(gamma)];
    CHECK(price.round({.gamma = gamma}).draft == Approx(walked).epsilon(1e-14));
    CHECK(price.round({.gamma = gamma, .full_accepts = 0.7}).draft == price.round({.gamma = gamma}).draft);
  }
  CHECK(price.round({}).total() == 0.010);
  // Longer passes than were timed go on at the last slope.
  CHECK(price.round({.gamma = 7}).draft == Approx(7 * 0.0010 + 0.0023).epsilon(1e-14));
  options.c = 0.1;
  CHECK(MeasuredCost(target, {}, options).round({.gamma = 4}).draft == Approx(5 * 0.1 * 0.010).epsilon(1e-14));
}

TEST_CASE("replicates redraw repetitions, are the same every time, and spread as the mean does") {
  std::vector<TimedPass> listed = verification({0.010, 0.014});
  listed[0].samples_seconds = {0.009, 0.010, 0.011, 0.010, 0.010};
  listed[0].repetitions = 5;
  std::vector<TimedPass> stated = verification({0.010, 0.014});
  stated[0].stddev_seconds = 0.002;
  stated[0].repetitions = 16;
  std::vector<TimedPass> repeated = verification({0.009, 0.014});
  repeated.push_back(pass(1, 1, 0, 0.011, TimingAxis::verification));
  cost::CurveOptions options;
  options.replicates = 4000;
  // Standard errors of the means: sqrt(sum of squares / 4 / 5), 0.002 / 4, and 0.002 / sqrt(2) / sqrt(2).
  const std::vector<std::pair<std::vector<TimedPass>, double>> cases = {
      {listed, std::sqrt(0.0000005 / 5)}, {stated, 0.0005}, {repeated, 0.001}};
  for (const auto& [passes, expected] : cases) {
    const PassCurve curve("target", passes, options);
    REQUIRE(curve.replicates() == 4000);
    double sum = 0, squares = 0;
    for (std::size_t r = 0; r < 4000; ++r) {
      const double seconds = curve.seconds(1, 1, 0, 1 + r);
      CHECK(curve.seconds(1, 2, 0, 1 + r) == 0.014);
      sum += seconds;
      squares += (seconds - 0.010) * (seconds - 0.010);
    }
    // 5 standard errors of 4,000 draws: false alarms below 1e-6.
    CHECK(sum / 4000 == Approx(0.010).margin(5 * expected / std::sqrt(4000.0)));
    CHECK(std::sqrt(squares / 4000) == Approx(expected).epsilon(5 / std::sqrt(2 * 4000.0)));
    const PassCurve again("target", passes, options);
    CHECK(again.seconds(1, 1, 0, 1 + 7) == curve.seconds(1, 1, 0, 1 + 7));
  }
}

TEST_CASE("an exact target beside a draft with errors is the same in every replicate") {
  std::vector<TimedPass> draft = verification({0.001});
  draft[0].stddev_seconds = 0.0002;
  const MeasuredCost price(verification({0.01, 0.01}), draft, {});
  REQUIRE(price.replicates() == 200);
  const cost::RoundTime one = price.price(1, {.gamma = 1});
  const cost::RoundTime other = price.price(2, {.gamma = 1});
  CHECK(one.target == other.target);
  CHECK(one.draft != other.draft);
}

TEST_CASE("all replicates at once are the replicates one by one") {
  std::vector<TimedPass> target, draft;
  for (const double context : {0.0, 1000.0}) {
    double seconds = 0.01;
    for (const double tokens : {1.0, 2.0, 4.0, 8.0, 16.0}) {
      target.push_back(pass(tokens, 1, context, seconds + 1e-6 * tokens * context));
      target.back().stddev_seconds = 0.1 * seconds;
      draft.push_back(pass(tokens, 1, context, seconds / 10));
      seconds *= tokens < 8 ? 1.3 : 0.9;
    }
  }
  cost::MeasuredOptions options;
  options.overhead_seconds = 0.0005;
  std::vector<MeasuredCost> prices = {{target, draft, options}};
  for (TimedPass& timed : draft) timed.stddev_seconds = 0.2 * timed.seconds;
  prices.emplace_back(target, draft, options);
  options.c = 0.1;
  prices.emplace_back(target, std::vector<TimedPass>{}, options);
  options.c.reset();
  options.kind = DraftKind::ngram;
  prices.emplace_back(target, std::vector<TimedPass>{}, options);
  options.kind = DraftKind::mirrored;
  prices.emplace_back(target, draft, options);
  for (const MeasuredCost& price : prices) {
    for (const cost::RoundPoint& point : {cost::RoundPoint{0, 2, 500, 0}, cost::RoundPoint{3, 0.3, 500, 0.5},
                                          cost::RoundPoint{2, 5.5, 100, 0.25}, cost::RoundPoint{4, 30, 2000, 0.1}}) {
      INFO(point.gamma << " " << point.batch);
      std::vector<double> totals(price.replicates());
      price.totals_of_replicates(point, totals);
      for (std::size_t i = 0; i < totals.size(); ++i)
        CHECK(totals[i] == Approx(price.price(1 + i, point).total()).epsilon(1e-14));
    }
    std::vector<double> few(3);
    CHECK_THROWS_AS(price.totals_of_replicates({}, few), std::invalid_argument);
  }
}

TEST_CASE("what the passes contradict is reported") {
  const std::vector<TimedPass> faster = {pass(1, 1, 0, 0.012), pass(1, 1, 1000, 0.010)};
  const PassCurve free_context("target", faster, {});
  CHECK(free_context.seconds(1, 1, 1000) == free_context.seconds(1, 1, 0));
  const std::vector<TimedPass> mixed = {pass(1, 4, 0, 0.010), pass(4, 1, 0, 0.020)};
  CHECK(has_finding(PassCurve("target", mixed, {}).findings(), "total_tokens_do_not_tell"));
  const std::vector<TimedPass> unknown = {pass(1, 1, 0, 0.010), pass(1, 2, 100, 0.020)};
  CHECK(has_finding(PassCurve("target", unknown, {}).findings(), "context_term_unknown"));
}

TEST_CASE("a measured cost refuses what does not belong together") {
  const std::vector<TimedPass> target = verification({0.01, 0.01});
  CHECK_THROWS_AS(MeasuredCost({}, target, {}), std::invalid_argument);
  CHECK_THROWS_AS(MeasuredCost(target, {}, {}), std::invalid_argument);
  cost::MeasuredOptions both;
  both.c = 0.1;
  CHECK_THROWS_AS(MeasuredCost(target, target, both), std::invalid_argument);
  cost::MeasuredOptions ngram;
  ngram.kind = DraftKind::ngram;
  CHECK_THROWS_AS(MeasuredCost(target, target, ngram), std::invalid_argument);
  both.c = -0.1;
  CHECK_THROWS_AS(MeasuredCost(target, {}, both), std::domain_error);
  std::vector<TimedPass> models = target;
  models[1].model = "other";
  CHECK_THROWS_AS(MeasuredCost(models, {}, without_draft()), std::invalid_argument);
  models = target;
  models[1].seconds = 0;
  CHECK_THROWS_AS(MeasuredCost(models, {}, without_draft()), std::domain_error);
}
