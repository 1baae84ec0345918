#include "analysis/cost/fitted_cost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

#include "analysis/core/acceptance_rate.hpp"
#include "analysis/theory/tokens.hpp"
#include "analysis/theory/walltime.hpp"
#include "tests/properties/random_cases.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace specdec;
using Catch::Matchers::Contains;
using cost::CostTerms;
using cost::DraftKind;
using cost::FitOptions;
using cost::FittedCost;
using cost::ObservedRound;
using cost::Range;
using cost::Unidentified;

namespace {

double seconds_of(const CostTerms& theta, double gamma, double batch, double context) {
  return theta[0] + theta[1] * gamma + theta[2] * gamma * batch + theta[3] * (gamma + 1) * batch +
         theta[4] * batch * context;
}

std::vector<ObservedRound> runs_of(const CostTerms& theta, const std::vector<double>& gammas,
                                   const std::vector<double>& batches, const std::vector<double>& contexts) {
  std::vector<ObservedRound> runs;
  for (const double gamma : gammas)
    for (const double batch : batches)
      for (const double context : contexts)
        runs.push_back({.name = "run " + std::to_string(runs.size()),
                        .gamma = gamma,
                        .batch = batch,
                        .context = context,
                        .seconds = seconds_of(theta, gamma, batch, context)});
  return runs;
}

constexpr CostTerms truth = {0.010, 0.0015, 2e-5, 1e-4, 1e-8};

/// Seconds times a factor with mean 1 and about this relative standard deviation.
void add_noise(std::vector<ObservedRound>& runs, double relative, test_support::RandomCases& cases) {
  for (ObservedRound& run : runs) {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += cases.uniform();
    run.seconds *= 1 + relative * (sum - 6);
  }
}

bool has_finding(const FittedCost& cost, const std::string& code) {
  const auto findings = cost.findings();
  return std::any_of(findings.begin(), findings.end(), [&](const auto& finding) { return finding.code == code; });
}

}  // namespace

TEST_CASE("a fitted cost with free verification gives the speedup of Theorem 3.8") {
  for (const double c : {0.0, 0.02, 0.1, 0.5, 1.5}) {
    const FittedCost price(runs_of({0.02, 0.02 * c, 0, 0, 0}, {0, 1, 3, 6}, {1, 8}, {0, 100}), {});
    for (const double alpha : {0.0, 0.3, 0.8, 0.99, 1.0}) {
      for (const std::int64_t gamma : {0, 1, 2, 5, 12, 64}) {
        const double tokens = theory::expected_tokens(core::AcceptanceRate(alpha), gamma);
        const double speedup = tokens * price.round({}).total() / price.round({.gamma = gamma}).total();
        CHECK(speedup == Approx(theory::walltime_improvement(core::AcceptanceRate(alpha), gamma, c)).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("several gammas, batches and contexts identify every term") {
  const FittedCost price(runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {500, 2000}), {});
  CHECK(price.rank() == 5);
  for (std::size_t i = 0; i < cost::cost_terms; ++i) {
    REQUIRE(price.terms()[i].value);
    CHECK(*price.terms()[i].value == Approx(truth[i]).epsilon(1e-8));
    CHECK(price.combinations()[i].text() == cost::cost_term_name(i));
  }
  const cost::RoundPoint point{.gamma = 4, .batch = 20, .context = 1000};
  CHECK(price.round(point).total() == Approx(seconds_of(truth, 4, 20, 1000)).epsilon(1e-9));
  CHECK(price.round(point).draft == Approx(4 * (truth[1] + 20 * truth[2])).epsilon(1e-8));
  CHECK(price.parts_known(point));
  CHECK_FALSE(price.extrapolates(point));
  CHECK(price.extrapolates({.gamma = 6, .batch = 20, .context = 1000}));
  CHECK(price.extrapolates({.gamma = 5, .batch = 70, .context = 1000}));
  CHECK(price.extrapolates({.gamma = 5, .batch = 64, .context = 400}));
  CHECK(price.findings().empty());
  CHECK(price.usual_context() == 1250);
}

TEST_CASE("one batch identifies an intercept and a slope over gamma and nothing else") {
  const double a = seconds_of(truth, 0, 8, 1000), s = seconds_of(truth, 1, 8, 1000) - a;
  const FittedCost price(runs_of(truth, {0, 1, 3, 5}, {8}, {1000}), {});
  CHECK(price.rank() == 2);
  for (const cost::FittedTerm& term : price.terms()) CHECK_FALSE(term.value);
  REQUIRE(price.combinations().size() == 2);
  CHECK(price.combinations()[0].text() ==
        "fixed_seconds + 8 seconds_per_verified_token + 8000 seconds_per_context_token");
  CHECK(price.combinations()[0].value == Approx(a));
  CHECK(price.combinations()[1].text() ==
        "seconds_per_draft_pass + 8 seconds_per_drafted_token + 8 seconds_per_verified_token");
  CHECK(price.combinations()[1].value == Approx(s));

  const cost::RoundPoint untried{.gamma = 2, .batch = 8, .context = 1000};
  CHECK(price.round(untried).total() == Approx(a + 2 * s));
  CHECK_FALSE(price.parts_known(untried));
  CHECK(price.parts_known({.batch = 8, .context = 1000}));

  // By hand: at twice the batch a plain step takes a where everything is fixed, 2 a where everything is per sequence.
  const Range plain = price.seconds_over_splits({.batch = 16, .context = 1000});
  CHECK(plain.lo == Approx(a));
  CHECK(plain.hi == Approx(2 * a));
  const Range round = price.seconds_over_splits({.gamma = 1, .batch = 16, .context = 1000});
  CHECK(round.lo == Approx(a + s));
  CHECK(round.hi == Approx(2 * a + 2 * s));
  CHECK_FALSE(price.answers({.gamma = 1, .batch = 16, .context = 1000}));
  CHECK_THAT(
      tests::message_of<std::domain_error>([&] { price.round({.gamma = 1, .batch = 16, .context = 1000}); }),
      Contains("at gamma 1, batch 16, context 1000 is anything in [") && Contains("] by the runs given, but must"));
}

TEST_CASE("spanning the splits prices their middle and replicates reach both ends") {
  FitOptions options;
  options.unidentified = Unidentified::span;
  const FittedCost price(runs_of(truth, {0, 1, 3, 5}, {8}, {1000}), options);
  const cost::RoundPoint point{.gamma = 1, .batch = 16, .context = 1000};
  const Range range = price.seconds_over_splits(point);
  CHECK(price.answers(point));
  CHECK(price.round(point).total() == Approx((range.lo + range.hi) / 2));
  double lo = range.hi, hi = range.lo;
  for (std::size_t r = 0; r < price.replicates(); ++r) {
    const double seconds = price.round_of_replicate(r, point).total();
    lo = std::min(lo, seconds);
    hi = std::max(hi, seconds);
  }
  CHECK(lo == Approx(range.lo));
  CHECK(hi == Approx(range.hi));
}

TEST_CASE("batches that differ by measurement noise alone do not tell drafting from verifying") {
  std::vector<ObservedRound> runs = runs_of(truth, {0, 1, 3, 5}, {16}, {1000});
  const std::vector<double> noise = {0.99, 1.015, 0.985, 1.02};
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].batch *= noise[i];
  const FittedCost price(runs, {});
  CHECK(price.rank() == 2);
  CHECK(price.answers({.gamma = 2, .batch = 16, .context = 1000}));
  CHECK_FALSE(price.answers({.gamma = 2, .batch = 32, .context = 1000}));
}

TEST_CASE("what a context costs takes two contexts") {
  const FittedCost one(runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {1000}), {});
  CHECK(one.rank() == 4);
  CHECK_FALSE(one.terms()[4].value);
  CHECK(one.terms()[0].value);
  CHECK(one.answers({.gamma = 2, .batch = 8, .context = 1000}));
  CHECK_FALSE(one.answers({.gamma = 2, .batch = 64, .context = 100000}));
  std::vector<ObservedRound> unsaid = runs_of({0.01, 0.001, 0, 1e-4, 0}, {0, 1, 3, 5}, {1, 8, 64}, {0});
  for (ObservedRound& run : unsaid) run.context.reset();
  const FittedCost price(unsaid, {});
  CHECK(price.round({.gamma = 2, .batch = 8, .context = 1e5}).total() ==
        Approx(seconds_of({0.01, 0.001, 0, 1e-4, 0}, 2, 8, 0)));
  CHECK_FALSE(price.extrapolates({.gamma = 2, .batch = 8, .context = 1e5}));
}

TEST_CASE("runs without drafts say nothing about drafting") {
  const FittedCost price(runs_of(truth, {0}, {1, 8, 64}, {500, 2000}), {});
  CHECK(price.terms()[1].splits.hi == std::numeric_limits<double>::infinity());
  CHECK_FALSE(price.terms()[1].value);
  CHECK(price.answers({.batch = 30, .context = 700}));
  CHECK_FALSE(price.answers({.gamma = 1, .batch = 30, .context = 700}));
  FitOptions options;
  options.unidentified = Unidentified::span;
  CHECK_FALSE(FittedCost(runs_of(truth, {0}, {1, 8, 64}, {500, 2000}), options).answers({.gamma = 1}));
}

TEST_CASE("one pass is charged for parallel drafts and none for n-grams") {
  FitOptions options;
  std::vector<ObservedRound> runs = runs_of({0.01, 0, 0, 1e-4, 0}, {0, 2, 4, 8}, {1, 8, 64}, {0});
  for (ObservedRound& run : runs) run.seconds += run.gamma > 0 ? 0.002 + 3e-5 * run.batch : 0;
  options.kind = DraftKind::parallel;
  const FittedCost parallel(runs, options);
  CHECK(*parallel.terms()[1].value == Approx(0.002));
  CHECK(*parallel.terms()[2].value == Approx(3e-5));
  CHECK(parallel.round({.gamma = 16, .batch = 8}).draft == Approx(0.002 + 8 * 3e-5));
  options.kind = DraftKind::ngram;
  const FittedCost ngram(runs_of({0.01, 0, 0, 1e-4, 0}, {0, 2, 4}, {1, 8}, {0}), options);
  CHECK(ngram.rank() == 2);
  CHECK(ngram.round({.gamma = 16, .batch = 8}).draft == 0);
  CHECK(ngram.parts_known({.gamma = 16, .batch = 8}));
}

TEST_CASE("the fit satisfies the conditions of optimality and no coordinate descent does better") {
  test_support::RandomCases cases(11);
  for (int trial = 0; trial < 60; ++trial) {
    // Some true costs are negative, so that bounds bind.
    CostTerms theta = truth;
    for (double& value : theta) value *= 3 * cases.uniform() - 1;
    theta[0] = 0.02;
    std::vector<ObservedRound> runs = runs_of(theta, {0, 1, 3, 5}, {1, 8, 32}, {500, 2000});
    for (ObservedRound& run : runs) run.seconds = std::max(run.seconds, 0.001);
    add_noise(runs, 0.05, cases);
    for (ObservedRound& run : runs) run.weight = 0.5 + cases.uniform();
    FitOptions options;
    options.replicates = 0;
    options.rank_tolerance = 1e-6;
    const FittedCost price(runs, options);
    REQUIRE(price.rank() == 5);
    const auto row = [&](const ObservedRound& run) {
      CostTerms x = {1, run.gamma, run.gamma * run.batch, (run.gamma + 1) * run.batch, run.batch * *run.context};
      for (double& value : x) value *= std::sqrt(run.weight) / run.seconds;
      return x;
    };
    const auto squares = [&](const CostTerms& values) {
      double sum = 0;
      for (const ObservedRound& run : runs) {
        const CostTerms x = row(run);
        double residual = -std::sqrt(run.weight);
        for (std::size_t j = 0; j < x.size(); ++j) residual += x[j] * values[j];
        sum += residual * residual;
      }
      return sum;
    };
    CostTerms fitted{};
    for (std::size_t j = 0; j < fitted.size(); ++j) fitted[j] = *price.terms()[j].value;
    for (std::size_t j = 0; j < fitted.size(); ++j) {
      double gradient = 0, scale = 0;
      for (std::size_t i = 0; i < runs.size(); ++i) {
        const double x = row(runs[i])[j];
        gradient += x * std::sqrt(runs[i].weight) * (price.fitted_seconds()[i] / runs[i].seconds - 1);
        scale += x;
      }
      CHECK(gradient >= -1e-9 * scale);
      if (fitted[j] > 0) CHECK(gradient <= 1e-9 * scale);
    }
    CostTerms descent{};
    for (int sweep = 0; sweep < 3000; ++sweep) {
      for (std::size_t j = 0; j < descent.size(); ++j) {
        double gradient = 0, curvature = 0;
        for (const ObservedRound& run : runs) {
          const CostTerms x = row(run);
          double residual = -std::sqrt(run.weight);
          for (std::size_t i = 0; i < x.size(); ++i) residual += x[i] * descent[i];
          gradient += x[j] * residual;
          curvature += x[j] * x[j];
        }
        descent[j] = std::max(0.0, descent[j] - gradient / curvature);
      }
    }
    CHECK(squares(fitted) <= squares(descent) * (1 + 1e-9));
  }
}

TEST_CASE("a cost that cannot be negative has a one-sided interval at zero") {
  test_support::RandomCases cases(5);
  std::vector<ObservedRound> runs = runs_of({0.01, 0.002, -4e-6, 1e-4, 0}, {0, 1, 3, 5}, {1, 8, 64}, {500, 2000});
  add_noise(runs, 0.02, cases);
  const FittedCost price(runs, {});
  REQUIRE(price.terms()[2].value);
  CHECK(*price.terms()[2].value == 0);
  REQUIRE(price.terms()[2].ci95);
  CHECK(price.terms()[2].ci95->lo == 0);
  CHECK(price.terms()[1].ci95->lo > 0);
}

TEST_CASE("intervals from replicates cover the true round and those a third as wide do not") {
  test_support::RandomCases cases(23);
  constexpr int trials = 100;
  int covered = 0, covered_by_third = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<ObservedRound> runs = runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {1000});
    add_noise(runs, 0.04, cases);
    FitOptions options;
    options.seed = static_cast<std::uint64_t>(trial);
    const FittedCost price(runs, options);
    const cost::RoundPoint point{.gamma = 4, .batch = 20, .context = 1000};
    std::vector<double> seconds;
    for (std::size_t r = 0; r < price.replicates(); ++r) seconds.push_back(price.round_of_replicate(r, point).total());
    std::sort(seconds.begin(), seconds.end());
    const double lo = seconds[5], hi = seconds[194], centre = price.round(point).total();
    const double expected = seconds_of(truth, 4, 20, 1000);
    covered += lo <= expected && expected <= hi ? 1 : 0;
    covered_by_third += std::abs(expected - centre) <= (hi - lo) / 6 ? 1 : 0;
  }
  // A coverage of 0.946 falls below 0.85 in 100 trials with probability 1e-4.
  CHECK(covered >= 0.85 * trials);
  CHECK(covered_by_third < 0.85 * trials);
}

TEST_CASE("the same seed gives the same replicates and another one others") {
  test_support::RandomCases cases(3);
  std::vector<ObservedRound> runs = runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {1000});
  add_noise(runs, 0.05, cases);
  FitOptions options;
  options.seed = 7;
  const FittedCost one(runs, options), same(runs, options);
  options.seed = 8;
  const FittedCost other(runs, options);
  const cost::RoundPoint point{.gamma = 4, .batch = 20, .context = 1000};
  CHECK(one.round_of_replicate(3, point).total() == same.round_of_replicate(3, point).total());
  CHECK(one.round_of_replicate(3, point).total() != other.round_of_replicate(3, point).total());
  CHECK_THROWS_AS(one.round_of_replicate(200, point), std::out_of_range);
  std::vector<double> totals(one.replicates());
  one.totals_of_replicates(point, totals);
  for (std::size_t i = 0; i < totals.size(); ++i) CHECK(totals[i] == one.round_of_replicate(i, point).total());
}

TEST_CASE("what cannot be in observed rounds is reported") {
  std::vector<ObservedRound> runs = runs_of(truth, {0, 3}, {1, 8, 64}, {1000});
  runs[4].seconds = 0.9 * runs[1].seconds;
  const FittedCost price(runs, {});
  REQUIRE(has_finding(price, "round_below_target_pass"));
  CHECK_THAT(price.findings()[0].message, Contains("run 4: a round with 3 drafts took"));
  CHECK(has_finding(price, "poor_fit"));
  CHECK(has_finding(FittedCost(runs_of(truth, {1, 3}, {1, 8}, {1000}), {}), "no_plain_runs"));
  CHECK(has_finding(FittedCost(runs_of(truth, {0, 3}, {8}, {1000}), {}), "fit_without_residuals"));
  // The more drafts the faster: no split of a round into costs does that.
  CHECK(has_finding(FittedCost(runs_of({0.02, -0.002, 0, 0, 0}, {0, 1, 3, 5}, {1, 8}, {0}), {}), "clipped_at_zero"));
}

TEST_CASE("every run is predicted from the others, or said not to follow from them") {
  const auto left_out = cost::leave_one_out(runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {1000}), {});
  REQUIRE(left_out.size() == 12);
  CHECK(cost::leave_one_out(runs_of(truth, {0, 1, 3, 5}, {1, 8, 64}, {1000}), {}, 5).size() == 5);
  for (const cost::LeftOut& prediction : left_out) {
    REQUIRE(prediction.relative_error());
    CHECK(*prediction.relative_error() == Approx(0).margin(1e-9));
  }
  std::vector<ObservedRound> runs = runs_of(truth, {0, 3}, {8}, {1000});
  runs.push_back(runs_of(truth, {3}, {64}, {1000}).front());
  const auto alone = cost::leave_one_out(runs, {});
  CHECK_FALSE(alone[2].predicted_seconds);
  CHECK_FALSE(alone[2].relative_error());
  CHECK(alone[2].splits.lo < alone[2].measured_seconds);
  CHECK(alone[2].splits.hi > alone[2].measured_seconds);
  CHECK_THROWS_AS(cost::leave_one_out(std::span(runs).first(1), {}), std::invalid_argument);
}

TEST_CASE("a fit refuses runs with values that cannot be") {
  CHECK_THROWS_AS(FittedCost({}, {}), std::invalid_argument);
  std::vector<ObservedRound> runs = runs_of(truth, {0, 3}, {8}, {1000});
  const auto with = [&](auto change) {
    std::vector<ObservedRound> changed = runs;
    change(changed[1]);
    return changed;
  };
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.seconds = 0; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.gamma = -1; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.batch = nan; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.context = -1; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.weight = 0; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(runs, {}).round({.gamma = -1}), std::domain_error);
  // Squares of these would overflow or vanish.
  CHECK_THROWS_WITH(FittedCost(with([](ObservedRound& run) { run.seconds = 1e300; }), {}),
                    "FittedCost: seconds is 1e+300, but must be in [1e-12, 1000000000000]");
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.seconds = 1e-300; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.batch = 1e300; }), {}), std::domain_error);
  CHECK_THROWS_AS(FittedCost(with([](ObservedRound& run) { run.weight = 1e-300; }), {}), std::domain_error);
  for (const double extreme : {1e-12, 1e12}) {
    for (ObservedRound& run : runs) {
      run.seconds = extreme;
      run.batch = 1 / extreme;
    }
    CHECK(FittedCost(runs, {}).fitted_seconds()[0] == Approx(extreme).epsilon(1e-6));
  }
}
