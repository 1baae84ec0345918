#include "analysis/planning/batch_schedule.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/planning/profile_curve.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/fakes.hpp"

using namespace specdec;
using planning::PlannedStretch;
using planning::PriceBasis;
using planning::Verdict;

namespace {

using Stretches = std::vector<PlannedStretch>;

planning::DeploymentDraft draft(double alpha, fakes::Cost cost) {
  return {"draft", std::make_shared<planning::ProfileCurve>(core::AcceptanceRate(alpha)),
          std::make_shared<fakes::Cost>(std::move(cost))};
}

/// Passes padded to multiples of 32 tokens, computed at a fixed rate beyond 256.
fakes::Cost padded() {
  return fakes::Cost([](const cost::RoundPoint& at) {
    const double tokens = std::ceil(at.batch * static_cast<double>(at.gamma + 1) / 32) * 32;
    return cost::RoundTime{std::max(1.0, tokens / 256) + 1e-4 * at.context,
                           0.06 * static_cast<double>(at.gamma) * std::max(1.0, at.batch / 128), 0.02};
  });
}

/// The regret of every gamma at every batch by the plainest arithmetic; the largest one over the contexts.
double naive_regret(double alpha, const fakes::Cost& cost, std::int64_t gamma, std::int64_t batch,
                    const std::vector<double>& contexts) {
  double worst = 0;
  for (const double context : contexts) {
    const auto speed = [&](std::int64_t g) {
      const auto tokens = fakes::constant_rate(alpha, g);
      return tokens.value / cost.round({g, static_cast<double>(batch), context, tokens.full_accepts}).total();
    };
    double best = 0;
    for (std::int64_t g = 0; g <= 8; ++g) best = std::max(best, speed(g));
    worst = std::max(worst, 1 - speed(gamma) / best);
  }
  return worst;
}

/// The fewest stretches by dynamic programming over all ways to cut.
std::int64_t fewest_stretches(double alpha, const fakes::Cost& cost, std::int64_t up_to,
                              const std::vector<double>& contexts, double tolerance) {
  constexpr std::int64_t none = 1'000'000;
  std::vector<std::vector<bool>> good;
  for (std::int64_t batch = 1; batch <= up_to; ++batch) {
    std::vector<double> regrets;
    for (std::int64_t g = 0; g <= 8; ++g) regrets.push_back(naive_regret(alpha, cost, g, batch, contexts));
    const double least = *std::min_element(regrets.begin(), regrets.end());
    std::vector<bool> ok;
    for (std::int64_t g = 0; g <= 8; ++g) {
      const bool plain_best = regrets[0] == least;
      ok.push_back(plain_best ? g == 0 : g > 0 && regrets[static_cast<std::size_t>(g)] <= std::max(tolerance, least));
    }
    good.push_back(ok);
  }
  std::vector<std::int64_t> fewest(static_cast<std::size_t>(up_to) + 1, none);
  fewest[0] = 0;
  for (std::size_t end = 1; end <= static_cast<std::size_t>(up_to); ++end) {
    for (std::size_t gamma = 0; gamma <= 8; ++gamma) {
      for (std::size_t begin = end; begin-- > 0 && good[begin][gamma];) {
        fewest[end] = std::min(fewest[end], fewest[begin] + 1);
      }
    }
  }
  return fewest.back();
}

}  // namespace

TEST_CASE("a schedule covers every batch once with the fewest stretches that the tolerance allows") {
  for (const double alpha : {0.5, 0.7, 0.9}) {
    for (const double tolerance : {0.0, 0.01, 0.1}) {
      for (const std::vector<double>& contexts : {std::vector<double>{0}, std::vector<double>{0, 20000}}) {
        INFO(alpha << " " << tolerance << " " << contexts.size());
        const planning::DeploymentDraft d = draft(alpha, padded());
        const planning::DraftScan scan(d, 8);
        const Stretches schedule =
            planning::batch_schedule(scan, contexts, 150, {.tolerance = tolerance, .min_gain = 0}).stretches;
        REQUIRE_FALSE(schedule.empty());
        std::int64_t next = 1;
        for (const PlannedStretch& stretch : schedule) {
          CHECK(stretch.batch_low == next);
          CHECK(stretch.basis == PriceBasis::measured);
          REQUIRE(stretch.gamma);
          for (std::int64_t batch = stretch.batch_low; batch <= stretch.batch_high; ++batch) {
            const double regret = naive_regret(alpha, padded(), *stretch.gamma, batch, contexts);
            double least = 1;
            for (std::int64_t g = 0; g <= 8; ++g) {
              least = std::min(least, naive_regret(alpha, padded(), g, batch, contexts));
            }
            CHECK(regret <= std::max(tolerance, least) + 1e-12);
          }
          next = stretch.batch_high + 1;
        }
        CHECK(next == 151);
        CHECK(static_cast<std::int64_t>(schedule.size()) ==
              fewest_stretches(alpha, padded(), 150, contexts, tolerance));
      }
    }
  }
}

TEST_CASE("the crossover is the batch from which on no gamma is faster than plain decoding") {
  const planning::DeploymentDraft d = draft(0.8, padded());
  const planning::DraftScan scan(d, 8);
  const auto crossover =
      planning::crossover_batch(planning::batch_schedule(scan, {0}, 512, {.min_gain = 0}).stretches, false);
  std::int64_t expected = 513;
  while (naive_regret(0.8, padded(), 0, expected - 1, {0}) == 0) --expected;
  REQUIRE(expected <= 512);
  CHECK(crossover == expected);
  CHECK(planning::crossover_batch(planning::batch_schedule(scan, {0}, 20).stretches, false) == std::nullopt);
  CHECK(planning::crossover_batch({}, false) == std::nullopt);
}

TEST_CASE("a schedule drafts at exactly those batches at which some gamma gains as much as is asked for") {
  const planning::DeploymentDraft d = draft(0.8, padded());
  const planning::DraftScan scan(d, 8);
  for (const double min_gain : {0.0, 0.05, 0.3, 1.0}) {
    for (const std::vector<double>& contexts : {std::vector<double>{0}, std::vector<double>{0, 20000}}) {
      const Stretches schedule =
          planning::batch_schedule(scan, contexts, 200, {.tolerance = 0, .min_gain = min_gain}).stretches;
      for (const PlannedStretch& stretch : schedule) {
        for (std::int64_t batch = stretch.batch_low; batch <= stretch.batch_high; ++batch) {
          // 1 / (1 - regret) is the best speedup over plain decoding, at the context where that is largest.
          const double best = 1 / (1 - naive_regret(0.8, padded(), 0, batch, contexts));
          INFO(min_gain << " " << batch << " " << best);
          if (best < 1 + min_gain) CHECK(stretch.gamma == 0);
          if (contexts.size() == 1 && best > 1 + min_gain) CHECK(stretch.gamma.value_or(0) > 0);
        }
      }
    }
  }
}

// A round of gamma drafts verifies batch (gamma + 1) tokens, of which knee are free; at batch knee (E - gamma c) /
// (gamma
// + 1) it takes as long as its tokens do alone.
TEST_CASE("with weights alone to read the crossover is where the closed form puts it") {
  const double knee = 206.135, c = 0.107978;
  const fakes::Cost weights([&](const cost::RoundPoint& at) {
    const auto gamma = static_cast<double>(at.gamma);
    return cost::RoundTime{std::max(1.0, at.batch * (gamma + 1) / knee), c * gamma, 0};
  });
  double closed = 0;
  for (int gamma = 1; gamma <= 8; ++gamma) {
    closed = std::max(closed, knee * (fakes::constant_rate(0.8, gamma).value - c * gamma) / (gamma + 1));
  }
  const planning::DeploymentDraft d = draft(0.8, weights);
  const planning::DraftScan scan(d, 8);
  const Stretches schedule = planning::batch_schedule(scan, {0}, 206, {.tolerance = 0, .min_gain = 0}).stretches;
  const auto crossover = planning::crossover_batch(schedule, false);
  CHECK(crossover == static_cast<std::int64_t>(std::floor(closed)) + 1);
}

TEST_CASE("batches without a price are stretches of their own, without a gamma") {
  fakes::Cost cost = padded();
  cost.known = [](const cost::RoundPoint& at) { return at.gamma == 0 || (4 <= at.batch && at.batch <= 20); };
  const planning::DeploymentDraft d = draft(0.8, cost);
  const planning::DraftScan scan(d, 8);
  const Stretches schedule = planning::batch_schedule(scan, {0}, 40).stretches;
  REQUIRE(schedule.size() >= 3);
  for (const PlannedStretch* end : {&schedule.front(), &schedule.back()}) {
    CHECK(end->basis == PriceBasis::not_priced);
    CHECK_FALSE(end->gamma);
  }
  CHECK(schedule.front().batch_low == 1);
  CHECK(schedule.front().batch_high == 3);
  CHECK(schedule.back().batch_low == 21);
  CHECK(schedule.back().batch_high == 40);
  for (std::size_t i = 1; i + 1 < schedule.size(); ++i) {
    CHECK(schedule[i].basis == PriceBasis::measured);
    CHECK(schedule[i].gamma.value_or(0) > 0);
  }
  // Not even plain decoding.
  cost.known = [](const cost::RoundPoint&) { return false; };
  const planning::DeploymentDraft unknown = draft(0.8, cost);
  const Stretches nothing = planning::batch_schedule(planning::DraftScan(unknown, 8), {0}, 40).stretches;
  REQUIRE(nothing.size() == 1);
  CHECK(nothing[0].batch_high == 40);
  CHECK_FALSE(nothing[0].gamma);
}

TEST_CASE("several contexts are priced where all of them are") {
  fakes::Cost cost = padded();
  cost.known = [](const cost::RoundPoint& at) { return at.context == 0 || at.batch <= 10; };
  cost.measured = [](const cost::RoundPoint& at) { return at.context == 0 || at.batch <= 5; };
  const planning::DeploymentDraft d = draft(0.8, cost);
  for (const PlannedStretch& stretch : planning::batch_schedule(planning::DraftScan(d, 8), {0, 1000}, 12).stretches) {
    const PriceBasis expected = stretch.batch_low > 10  ? PriceBasis::not_priced
                                : stretch.batch_low > 5 ? PriceBasis::extrapolated
                                                        : PriceBasis::measured;
    CHECK(stretch.basis == expected);
  }
}

TEST_CASE("one gamma for all batches is the one that loses least where it loses most, over every batch decided") {
  const planning::DeploymentDraft d = draft(0.8, padded());
  const planning::DraftScan scan(d, 8);
  for (const std::int64_t up_to : {40, 200, 400}) {
    INFO(up_to);
    std::int64_t best = 0;
    double least = 1;
    for (std::int64_t gamma = 0; gamma <= 8; ++gamma) {
      double worst = 0;
      for (std::int64_t batch = 1; batch <= up_to; ++batch) {
        worst = std::max(worst, naive_regret(0.8, padded(), gamma, batch, {0}));
      }
      if (worst < least) {
        least = worst;
        best = gamma;
      }
    }
    const auto fixed = planning::batch_schedule(scan, {0}, up_to).fixed;
    REQUIRE(fixed);
    CHECK(fixed->gamma == best);
    CHECK(fixed->worst_regret == Approx(least).epsilon(1e-12));
    const auto at_worst = static_cast<std::int64_t>(fixed->worst_batch);
    CHECK(naive_regret(0.8, padded(), best, at_worst, {0}) == Approx(least).epsilon(1e-12));
    double slowest = 1e9;
    for (std::int64_t batch = 1; batch <= up_to; ++batch) {
      const double ratio =
          (1 - naive_regret(0.8, padded(), best, batch, {0})) / (1 - naive_regret(0.8, padded(), 0, batch, {0}));
      slowest = std::min(slowest, ratio);
    }
    CHECK(fixed->least_speedup == Approx(slowest).epsilon(1e-12));
  }
}

TEST_CASE("one gamma for all batches is the recommended one where there is one batch") {
  // Free drafts: 32 is the fastest, and the smallest within the tolerance of it is taken.
  const fakes::Cost free([](const cost::RoundPoint&) { return cost::RoundTime{1, 0, 0}; });
  planning::DeploymentQuestion question;
  question.drafts = {draft(0.45, free)};
  question.max_gamma_is_default = true;
  question.schedule_up_to = 8;
  const planning::DraftPlan plan = planning::plan_deployment(question).drafts[0];
  CHECK(plan.fixed->gamma == plan.points[0].optimal()->gamma);
  CHECK(plan.fixed->gamma < 8);
  CHECK(plan.schedule[0].gamma == plan.fixed->gamma);
}

TEST_CASE("one gamma for all batches may be one that was not measured, by what its acceptance surely is") {
  // Measured at 6 alone, where drafts pay at small batches; shorter ones are within 5%.
  const auto acceptance = std::make_shared<fakes::Curve>([](std::int64_t gamma) {
    estimate::TokensPerStep tokens = fakes::constant_rate(0.8, gamma, {1, 1}, {0.95, 1.05});
    tokens.extrapolated = gamma > 0 && gamma != 6;
    return tokens;
  });
  const auto cost = std::make_shared<fakes::Cost>([](const cost::RoundPoint& at) {
    return cost::RoundTime{1 + at.batch * static_cast<double>(at.gamma) / 300, 0.05 * static_cast<double>(at.gamma), 0};
  });
  const planning::DeploymentDraft d = {"draft", acceptance, cost};
  const planning::DraftScan scan(d, 8);
  const auto alone = planning::batch_schedule(scan, {0}, 1).fixed, all = planning::batch_schedule(scan, {0}, 300).fixed;
  REQUIRE(alone);
  REQUIRE(all);
  CHECK(alone->gamma == 6);
  CHECK(0 < all->gamma);
  CHECK(all->gamma < 6);
}

TEST_CASE("batches that are not decided have no say in the gamma for all batches") {
  fakes::Cost cost = padded();
  cost.measured = [](const cost::RoundPoint& at) { return at.batch <= 8; };
  const planning::DeploymentDraft d = draft(0.8, cost);
  const planning::DraftScan scan(d, 8);
  const auto measured = planning::batch_schedule(scan, {0}, 400).fixed;
  const auto within = planning::batch_schedule(scan, {0}, 8).fixed;
  REQUIRE(within);
  const auto all = planning::batch_schedule(scan, {0}, 400, {.extrapolate = true}).fixed;
  REQUIRE(measured);
  REQUIRE(all);
  CHECK(measured->gamma == within->gamma);
  CHECK(measured->worst_batch <= 8);
  CHECK(all->worst_regret > measured->worst_regret);
  cost.known = [](const cost::RoundPoint&) { return false; };
  const planning::DeploymentDraft unknown = draft(0.8, cost);
  CHECK_FALSE(planning::batch_schedule(planning::DraftScan(unknown, 8), {0}, 40).fixed);
}

TEST_CASE("a gamma whose cost was never timed has no place in a schedule, unless it is asked to go on") {
  fakes::Cost cost = padded();
  cost.measured = [](const cost::RoundPoint& at) { return at.gamma <= 2; };
  const planning::DeploymentDraft d = draft(0.9, cost);
  const planning::DraftScan scan(d, 8);
  for (const PlannedStretch& stretch : planning::batch_schedule(scan, {0}, 64).stretches) CHECK(stretch.gamma <= 2);
  CHECK(planning::batch_schedule(scan, {0}, 64, {.extrapolate = true}).stretches.front().gamma.value_or(0) > 2);
}

TEST_CASE("a stretch is divided where the verdict of its batches changes") {
  fakes::Cost cost([](const cost::RoundPoint& at) {
    return cost::RoundTime{1 + at.batch * static_cast<double>(at.gamma) / 200, 0.02 * static_cast<double>(at.gamma), 0};
  });
  for (int i = 0; i < 200; ++i) cost.factors.push_back(0.9 + 0.001 * i);
  planning::DeploymentQuestion question;
  question.drafts = {draft(0.8, cost)};
  question.max_gamma = 4;
  question.schedule_up_to = 300;
  const planning::DraftScan scan(question.drafts[0], 4);
  const planning::ScheduleRule rule;
  const auto verdicts = planning::batch_verdicts(scan, 300, question, rule);
  const auto whole = planning::batch_schedule(scan, {0}, 300, rule, verdicts).stretches;
  const auto divided = planning::with_verdicts(whole, verdicts);
  CHECK(divided.size() > whole.size());
  std::int64_t next = 1;
  for (const PlannedStretch& stretch : divided) {
    CHECK(stretch.batch_low == next);
    next = stretch.batch_high + 1;
    for (std::int64_t batch = stretch.batch_low; batch <= stretch.batch_high; ++batch) {
      INFO(batch);
      const auto point = planning::plan_point(scan, static_cast<double>(batch), 0, question, std::nullopt);
      const bool is_sure = point.rows[static_cast<std::size_t>(*stretch.gamma)].sure;
      CHECK((stretch.verdict == Verdict::speculate) == is_sure);
      CHECK(point.verdict == stretch.verdict);
      const auto of =
          std::find_if(whole.begin(), whole.end(), [&](const auto& one) { return batch <= one.batch_high; });
      CHECK(of->gamma == stretch.gamma);
    }
  }
  CHECK(next == 301);
}

TEST_CASE("the schedule has gammas that are sure where some are, and says of each what its own interval does") {
  // Longer drafts are less certain, and the best one is sure at small batches alone.
  planning::DeploymentQuestion question;
  question.drafts = {draft(0.8, fakes::Cost([](const cost::RoundPoint& at) {
                             const auto gamma = static_cast<double>(at.gamma);
                             return cost::RoundTime{1 + 0.0005 * at.batch * gamma, 0.1 * gamma, 0};
                           }))};
  question.drafts[0].acceptance = std::make_shared<fakes::Curve>([](std::int64_t gamma) {
    const double half = std::exp(0.18 * static_cast<double>(gamma));
    return fakes::constant_rate(0.8, gamma, {1 / half, half});
  });
  question.max_gamma = 6;
  question.schedule_up_to = 200;
  question.batches = {1, 50, 100, 200};
  const planning::DraftPlan plan = planning::plan_deployment(question).drafts[0];
  const planning::DraftScan scan(question.drafts[0], 6);
  bool some_differ = false;
  for (const PlannedStretch& stretch : plan.schedule) {
    for (std::int64_t batch = stretch.batch_low; batch <= stretch.batch_high; ++batch) {
      INFO(batch);
      const auto point = planning::plan_point(scan, static_cast<double>(batch), 0, question, std::nullopt);
      const auto& row = point.rows[static_cast<std::size_t>(*stretch.gamma)];
      some_differ = some_differ || point.unsure_row;
      CHECK((stretch.verdict == Verdict::speculate) == (row.gamma > 0 && row.speedup_ci95.lo >= 1.05));
      CHECK(stretch.verdict == point.verdict);
      CHECK(row.speedup >= (1 - question.tolerance) * point.optimal()->speedup);
    }
  }
  CHECK(some_differ);
  REQUIRE(plan.fixed);
  const auto all_batches = planning::batch_verdicts(scan, 200, question, {});
  const auto sure_everywhere = [&](std::size_t gamma) {
    return std::all_of(all_batches.begin(), all_batches.end(),
                       [&](const auto& batch) { return batch.sure.empty() || batch.sure[gamma]; });
  };
  const bool some_are = sure_everywhere(1) || sure_everywhere(2) || sure_everywhere(3);
  CHECK(sure_everywhere(static_cast<std::size_t>(plan.fixed->gamma)) == some_are);
}

TEST_CASE("the crossover reaches back over all stretches that are decided and plain") {
  const Stretches schedule = {
      {1, 8, 3, PriceBasis::measured}, {9, 20, 0, PriceBasis::measured}, {21, 64, 0, PriceBasis::extrapolated}};
  CHECK(planning::crossover_batch(schedule, true) == 9);
  CHECK(planning::crossover_batch(schedule, false) == std::nullopt);
  CHECK(planning::crossover_batch({{1, 8, 0, PriceBasis::measured}, {9, 9, std::nullopt, PriceBasis::not_priced}},
                                  true) == std::nullopt);
}

TEST_CASE("the point at which a schedule loses most against its best gamma is found") {
  planning::DraftPlan plan;
  plan.schedule = {{1, 4, 2, PriceBasis::measured}, {5, 9, std::nullopt, PriceBasis::not_priced}};
  plan.points.resize(4);
  const double batches[] = {1, 3.6, 4.4, 7};
  const double speedups[4][3] = {{1, 1.1, 1.2}, {1, 1.5, 1.47}, {1, 1.6, 1.52}, {1, 1.9, 1}};
  for (std::size_t i = 0; i < 4; ++i) {
    plan.points[i].batch = batches[i];
    for (std::int64_t gamma = 0; gamma < 3; ++gamma) {
      planning::DeploymentRow& row = plan.points[i].rows.emplace_back();
      row.gamma = gamma;
      row.speedup = speedups[i][gamma];
    }
    plan.points[i].optimal_row = i == 0 ? 2 : 1;
  }
  const auto loss = planning::largest_schedule_loss(plan);
  REQUIRE(loss);
  CHECK(loss->batch == 4.4);
  CHECK(loss->scheduled == 2);
  CHECK(loss->recommended == 1);
  CHECK(loss->regret == Approx(0.05).epsilon(1e-12));
  CHECK(loss->speedup == 1.6);
  plan.points.resize(1);
  CHECK_FALSE(planning::largest_schedule_loss(plan));
}
