#include "analysis/cost/mean_drafts.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "analysis/cost/constant_cost.hpp"
#include "analysis/cost/fitted_cost.hpp"
#include "analysis/cost/observed_rounds.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using core::LookupLaw;
using cost::MeanDrafts;

namespace {

void add(MeanDrafts& drafts, const LookupLaw& law, std::int64_t gamma, double steps = 1000) {
  drafts.add(gamma, steps, law.hit_rate * steps, law.mean_drafted(static_cast<double>(gamma)) * steps, 0);
}

traces::ServingCounts counted(std::int64_t gamma, double steps, double rounds, double tokens) {
  traces::ServingCounts counts;
  counts.gamma = gamma;
  counts.steps = steps;
  counts.rounds = rounds;
  counts.drafted = tokens;
  counts.accepted = 0.5 * tokens;
  return counts;
}

/// A server whose steps take 6 ms, 0.05 ms for each verified token and 0.3 ms for looking up.
double seconds(double mean_drafts, double batch) {
  return 0.006 + 5e-5 * batch * (1 + mean_drafts) + (mean_drafts > 0 ? 3e-4 : 0);
}

/// Its runs of one gamma beside plain ones, at batches 1 to 64.
std::vector<cost::ObservedRound> runs_of(const LookupLaw& law, std::int64_t gamma) {
  std::vector<cost::ObservedRound> runs;
  for (const double batch : {1.0, 4.0, 16.0, 32.0, 64.0}) {
    for (const std::int64_t ran : {std::int64_t{0}, gamma})
      runs.push_back({.gamma = static_cast<double>(ran),
                      .batch = batch,
                      .seconds = seconds(law.mean_drafted(static_cast<double>(ran)), batch)});
  }
  return runs;
}

/// The largest relative error of rounds priced at gammas beyond the one that ran.
double worst_error(const LookupLaw& law, std::int64_t ran, const cost::FitOptions& options) {
  const cost::FittedCost fit(runs_of(law, ran), options);
  double worst = 0;
  for (const double batch : {1.0, 16.0, 64.0}) {
    for (const std::int64_t gamma : {8, 12, 16}) {
      const double truth = seconds(law.mean_drafted(static_cast<double>(gamma)), batch);
      worst = std::max(worst, std::abs(fit.round({gamma, batch, 0}).total() / truth - 1));
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("mean drafts are the counts at a gamma that ran, and go on by their law", "[lookup]") {
  const LookupLaw law{0.4, 3.0};
  MeanDrafts drafts;
  add(drafts, law, 5);
  CHECK(drafts.some_are_short());
  for (const double gamma : {0.0, 1.0, 3.0, 5.0, 8.0, 40.0}) {
    INFO("gamma " << gamma);
    CHECK(drafts(gamma) == Approx(law.mean_drafted(gamma)).epsilon(1e-8));
  }
}

TEST_CASE("mean drafts of several gammas meet the counts of each, and lie between them", "[lookup]") {
  MeanDrafts drafts;
  drafts.add(3, 1000, 500, 1200, 0);
  drafts.add(8, 1000, 500, 1800, 0);
  CHECK(drafts(3) == Approx(1.2));
  CHECK(drafts(8) == Approx(1.8));
  CHECK(drafts(5) > 1.2);
  CHECK(drafts(5) < 1.8);
  CHECK(drafts(20) < 0.5 * 20);
  // Repeats count together.
  drafts.add(8, 3000, 1500, 6600, 0);
  CHECK(drafts(8) == Approx(2.1));
}

TEST_CASE("drafts that fill gamma in every step are not short, and misses alone make them so", "[lookup]") {
  MeanDrafts full;
  full.add(4, 1000, 1000, 3990, 0);
  CHECK_FALSE(full.some_are_short());
  CHECK(full(12) > 11.5);
  MeanDrafts missing;
  missing.add(4, 1000, 300, 1200, 0);
  CHECK(missing.some_are_short());
  CHECK(missing(8) == Approx(2.4));
  MeanDrafts none;
  none.add(4, 1000, 0, 0, 0);
  CHECK(none(4) == 0);
}

TEST_CASE("fewer rounds find something where longer drafts copy the same text in fewer of them", "[lookup]") {
  // llama.cpp's lookups: steps, drafted and accepted tokens, all hits filling gamma.
  struct Run {
    std::int64_t gamma;
    double steps, drafted, accepted;
  };
  const Run four = {4, 480, 412, 294};
  MeanDrafts drafts;
  drafts.add(four.gamma, four.steps, four.drafted / 4, four.drafted, four.accepted);
  for (const Run& run : {Run{3, 495, 357, 279}, four, Run{8, 448, 562, 326}, Run{12, 437, 711, 337}})
    CHECK(drafts(static_cast<double>(run.gamma)) == Approx(run.drafted / run.steps).epsilon(0.06));
  MeanDrafts fixed;
  fixed.add(four.gamma, four.steps, four.drafted / 4, four.drafted, 0);
  CHECK(fixed(12) > 1.5 * 711 / 437);
}

TEST_CASE("counts by step keep what was drafted for the mean of drafts", "[lookup]") {
  const traces::ServingCounts lookups = traces::counted_by_step(counted(5, 1000, 400, 1100));
  REQUIRE(lookups.made);
  CHECK(lookups.made->rounds == 400);
  CHECK(lookups.made->tokens == 1100);
  CHECK(lookups.drafted == 5000);
  // Counting by step twice keeps it.
  CHECK(traces::counted_by_step(lookups).made == lookups.made);
  const traces::ServingCounts full = counted(5, 1000, 1000, 5000);
  const traces::ServingCounts* both[] = {&lookups, &full};
  const auto mean = cost::mean_drafts_of(both);
  REQUIRE(mean);
  CHECK(mean(5) == Approx((1100.0 + 5000) / 2000));
  CHECK_FALSE(cost::mean_drafts_of({both + 1, 1}));
}

TEST_CASE("rounds of short drafts beyond the runs are priced by the tokens that they verify", "[lookup][fit]") {
  for (const LookupLaw& law : {LookupLaw{0.4, 3.0}, LookupLaw{0.8, 2.0}, LookupLaw{1, 2.5}}) {
    MeanDrafts drafts;
    add(drafts, law, 5);
    cost::FitOptions options;
    options.kind = cost::DraftKind::ngram;
    options.replicates = 0;
    options.mean_drafts = drafts;
    INFO("hit rate " << law.hit_rate);
    CHECK(worst_error(law, 5, options) < 0.03);
    // The twin takes all drafts for gamma tokens long.
    options.mean_drafts = {};
    CHECK(worst_error(law, 5, options) > 0.05);
  }
}

TEST_CASE("a cost of shorter drafts is the other one at their mean, linear between whole numbers", "[lookup]") {
  const auto full = std::make_shared<cost::ConstantCost>(cost::ConstantOptions{.step = {.c = 0.1}});
  const auto half = [](double gamma) { return gamma / 2; };
  const cost::MeanDraftsCost shorter(full, half);
  CHECK(shorter.round({0, 1, 0}).total() == full->round({0, 1, 0}).total());
  CHECK(shorter.round({6, 1, 0}).total() == full->round({3, 1, 0}).total());
  CHECK(shorter.round({5, 1, 0}).total() ==
        Approx((full->round({2, 1, 0}).total() + full->round({3, 1, 0}).total()) / 2));
  CHECK_THROWS_AS(cost::MeanDraftsCost(nullptr, half), std::invalid_argument);
  CHECK_THROWS_AS(cost::MeanDraftsCost(full, {}), std::invalid_argument);
}
