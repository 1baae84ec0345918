#include "analysis/planning/deployment_plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "analysis/cost/constant_cost.hpp"
#include "analysis/planning/best_gamma.hpp"
#include "analysis/planning/closed_form.hpp"
#include "analysis/planning/draft_worlds.hpp"
#include "analysis/planning/profile_curve.hpp"
#include "analysis/planning/replay_curve.hpp"
#include "analysis/theory/walltime.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/fakes.hpp"
#include "tests/unit/analysis/planning/naive.hpp"

using namespace specdec;
using core::AcceptanceRate;
using estimate::Interval;
using planning::DeploymentDraft;
using planning::DeploymentPlan;
using planning::DeploymentQuestion;
using planning::PointPlan;
using planning::PriceBasis;
using planning::ProfileCurve;
using worlds::Certainty;

namespace {

std::shared_ptr<const estimate::AcceptanceCurve> rate(double alpha) {
  return std::make_shared<ProfileCurve>(AcceptanceRate(alpha));
}

std::shared_ptr<const estimate::AcceptanceCurve> rates(double low, double middle, double high) {
  return std::make_shared<ProfileCurve>(AcceptanceRate(middle), AcceptanceRate(low), AcceptanceRate(high));
}

/// A constant rate whose tokens per step have an interval that is a factor of them.
std::shared_ptr<const estimate::AcceptanceCurve> uncertain(double alpha, Interval ci95) {
  return std::make_shared<fakes::Curve>(
      [=](std::int64_t gamma) { return fakes::constant_rate(alpha, gamma, ci95); });
}

std::shared_ptr<const cost::RoundCost> paper(core::StepCost step) {
  return std::make_shared<cost::ConstantCost>(cost::ConstantOptions{.step = step});
}

std::shared_ptr<const cost::RoundCost> paper(double c) { return paper(core::StepCost{c, 0, {}}); }

std::shared_ptr<fakes::Cost> shared(fakes::Cost cost) { return std::make_shared<fakes::Cost>(std::move(cost)); }

/// Multiples of a plain step, as Theorem 3.8 has them; the replicates multiply the rounds.
std::shared_ptr<fakes::Cost> paper_with(double c, std::vector<double> factors) {
  auto cost = shared(fakes::Cost(
      [=](const cost::RoundPoint& at) {
        return cost::RoundTime{1, c * static_cast<double>(at.gamma), 0};
      },
      false));
  cost->factors = std::move(factors);
  return cost;
}

DeploymentQuestion question(std::shared_ptr<const estimate::AcceptanceCurve> acceptance,
                            std::shared_ptr<const cost::RoundCost> cost) {
  DeploymentQuestion q;
  q.drafts = {{"draft", std::move(acceptance), std::move(cost)}};
  return q;
}

PointPlan only_point(const DeploymentQuestion& q) {
  const DeploymentPlan plan = planning::plan_deployment(q);
  REQUIRE(plan.drafts.size() == 1);
  REQUIRE(plan.drafts[0].points.size() == 1);
  return plan.drafts[0].points[0];
}

bool has_note(const planning::DraftPlan& plan, const std::string& code) {
  return std::any_of(plan.notes.begin(), plan.notes.end(), [&](const auto& note) { return note.code == code; });
}

std::vector<double> normal_factors(double sigma, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, sigma);
  std::vector<double> factors(count);
  for (double& factor : factors) factor = std::exp(normal(random));
  return factors;
}

}  // namespace

TEST_CASE("with the paper's costs every row is Theorem 3.8 and the optimum that of the closed form") {
  const std::vector<core::VerificationCost::Point> stepped = {{4, 1.0}, {5, 1.6}, {9, 1.7}, {33, 2.3}};
  const std::vector<core::StepCost> costs = {{0.05, 0, {}},
                                             {0.3, 0, {}},
                                             {0.04, 0.1, core::VerificationCost::constant(1.2)},
                                             {0.03, 0, core::VerificationCost::table(stepped)}};
  for (const core::StepCost& cost : costs) {
    for (const double alpha : {0.0, 0.05, 0.2, 0.5, 0.75, 0.9, 1.0}) {
      INFO(cost.c << " " << alpha);
      const PointPlan point = only_point(question(rate(alpha), paper(cost)));
      const planning::SearchSpace space{cost, 32};
      const theory::OptimalGamma best = planning::best_gamma(AcceptanceRate(alpha), space);
      // Plain decoding counts as 1.05 times as fast as it is; at alpha = 1 no gamma up to the limit is the best.
      if (best.speedup > 1.05 && best.gamma < 32) {
        CHECK(point.optimal().gamma == best.gamma);
        CHECK(point.optimal().speedup == Approx(best.speedup).epsilon(1e-13));
      }
      CHECK((point.optimal().gamma == 0) == (best.speedup < 1.05));
      REQUIRE(point.rows.size() == 33);
      for (const planning::DeploymentRow& row : point.rows) {
        CHECK(row.speedup ==
              Approx(theory::walltime_improvement(AcceptanceRate(alpha), row.gamma, cost)).epsilon(1e-13));
        const double counted = row.gamma == 0 ? 1.05 : row.speedup;
        CHECK(row.regret == Approx(1 - counted / std::max(1.05, best.speedup)).epsilon(0).margin(1e-13));
        CHECK(row.extrapolated == cost.extrapolates(row.gamma));
      }
      const auto break_even = theory::break_even_alpha(cost);
      REQUIRE(point.break_even_alpha.has_value() == break_even.has_value());
      if (break_even) CHECK(*point.break_even_alpha == Approx(break_even->alpha()).epsilon(0).margin(1e-11));
      CHECK(point.seconds_per_output_token == std::nullopt);
      CHECK(point.c.value() == Approx(cost.c).epsilon(1e-14));
      CHECK(point.verify_factor.value() ==
            Approx(cost.verification(std::max<std::int64_t>(point.optimal().gamma, 1) + 1)).epsilon(1e-14));
    }
  }
}

TEST_CASE("the catch-up token after a full accept moves the break-even acceptance") {
  const auto cost = shared(fakes::Cost(
      [](const cost::RoundPoint& at) {
        return cost::RoundTime{at.gamma == 0 ? 1.0 : 1.3, 0.1 * static_cast<double>(at.gamma) + 0.05 * at.full_accepts,
                               0};
      },
      false));
  const PointPlan point = only_point(question(rate(0.8), cost));
  const auto best_at = [](double alpha) {
    double best = 0;
    for (std::int64_t gamma = 1; gamma <= 32; ++gamma) {
      const auto g = static_cast<double>(gamma);
      const double time = 1.3 + 0.1 * g + 0.05 * std::pow(alpha, g);
      best = std::max(best, naive::speedup(alpha, gamma, [&](std::int64_t) { return time; }));
    }
    return best;
  };
  REQUIRE(point.break_even_alpha);
  CHECK(best_at(*point.break_even_alpha) == Approx(1).epsilon(1e-10));
  CHECK(point.optimal().speedup == Approx(best_at(0.8)).epsilon(1e-13));
}


TEST_CASE("costs with steps are scanned, since climbing would stop at the first peak") {
  const auto cost = shared(fakes::Cost(
      [](const cost::RoundPoint& at) {
        double padded = 1;
        while (padded < static_cast<double>(at.gamma) + 1) padded *= 2;
        return cost::RoundTime{at.gamma == 0 ? 1.0 : 1 + 0.1 * (padded - 1), 0, 0};
      },
      false));
  DeploymentQuestion q = question(rate(0.8), cost);
  q.max_gamma = 8;
  const PointPlan point = only_point(q);
  const std::vector<double> expected = {1, 1.6364, 1.8769, 2.2708, 1.9774, 2.1702, 2.3244, 2.4477, 1.7316};
  REQUIRE(point.rows.size() == expected.size());
  for (std::size_t gamma = 0; gamma < expected.size(); ++gamma) {
    CHECK(point.rows[gamma].speedup == Approx(expected[gamma]).epsilon(0).margin(5e-5));
  }
  CHECK(point.optimal().gamma == 7);
}


TEST_CASE("a pair of models on an accelerator has the best gamma of its batch") {
  const double context = 2048;
  DeploymentQuestion q = question(rate(0.8), shared(fakes::pair_cost(fakes::llama_70b(), fakes::llama_8b())));
  q.batches = {1, 64};
  q.contexts = {context};
  q.schedule_up_to = 512;
  const planning::DraftPlan plan = planning::plan_deployment(q).drafts[0];
  CHECK(plan.points[0].optimal().gamma == 5);
  CHECK(plan.points[0].optimal().speedup == Approx(2.374232).epsilon(0).margin(2e-5));
  CHECK(plan.points[0].rows[4].speedup == Approx(2.329418).epsilon(0).margin(2e-5));
  CHECK(plan.points[0].seconds_per_output_token->baseline == Approx(14.619402e-3).epsilon(0).margin(1e-7));
  CHECK(*plan.points[0].c == Approx(0.110772).epsilon(0).margin(1e-6));
  CHECK(plan.points[1].optimal().gamma == 2);
  CHECK(plan.points[1].optimal().speedup == Approx(1.695073).epsilon(0).margin(2e-5));
  CHECK(plan.points[1].output_tokens_per_second->speculative / plan.points[1].output_tokens_per_second->baseline ==
        Approx(1.695073).epsilon(0).margin(2e-5));

  q = question(rate(0.7), shared(fakes::pair_cost(fakes::llama_70b(), fakes::llama_1b())));
  q.contexts = {context};
  CHECK(only_point(q).optimal().gamma == 8);
  CHECK(only_point(q).optimal().speedup == Approx(2.785043).epsilon(0).margin(2e-5));
}

TEST_CASE("the combined interval covers the true speedup when both acceptance and cost err", "[long]") {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal(0, 1);
  const double sigma_tokens = 0.04, sigma_cost = 0.05, alpha = 0.7;
  const double z = 1.959963984540054;
  const std::vector<double> factors = normal_factors(sigma_cost, 400, 11);
  int covered = 0, covered_by_twin = 0;
  const int draws = 1500;
  for (int draw = 0; draw < draws; ++draw) {
    const double token_error = std::exp(sigma_tokens * normal(random));
    const double cost_error = std::exp(sigma_cost * normal(random));
    const auto acceptance = std::make_shared<fakes::Curve>([=](std::int64_t gamma) {
      estimate::TokensPerStep tokens = fakes::constant_rate(alpha, gamma);
      if (gamma == 0) return tokens;
      tokens.value *= token_error;
      tokens.ci95 = {tokens.value * std::exp(-z * sigma_tokens), tokens.value * std::exp(z * sigma_tokens)};
      return tokens;
    });
    const auto cost = shared(fakes::Cost(
        [=](const cost::RoundPoint& at) {
          return at.gamma == 0 ? cost::RoundTime{1, 0, 0} : cost::RoundTime{cost_error, 0.1 * cost_error, 0};
        },
        false));
    DeploymentQuestion q = question(acceptance, cost);
    q.max_gamma = 1;
    const double truth = (1 + alpha) / 1.1;
    const auto covers = [&](const PointPlan& point) {
      return point.rows[1].speedup_ci95.lo <= truth && truth <= point.rows[1].speedup_ci95.hi;
    };
    if (covers(only_point(q))) ++covered_by_twin;
    cost->factors = factors;
    if (covers(only_point(q))) ++covered;
  }
  // False alarms: 1,500 draws at 95% leave .92 to .98 once in 10^6; 1,000 worlds move that by .01 at most.
  CHECK(static_cast<double>(covered) / draws == Approx(0.95).epsilon(0).margin(0.03));
  CHECK(static_cast<double>(covered_by_twin) / draws < 0.8);
}

TEST_CASE("what is deployed is held against the best gamma of every point") {
  DeploymentQuestion q =
      question(rates(0.6, 0.7, 0.8), shared(fakes::pair_cost(fakes::llama_70b(), fakes::llama_8b())));
  q.contexts = {2048};
  q.batches = {1, 64.4, 64.6, 200};
  q.deployed = {{1, 64, 5}, {65, 128, 2}, {129, 512, 0}};
  q.max_regret = 0.3;
  const DeploymentPlan plan = planning::plan_deployment(q);
  const auto& points = plan.drafts[0].points;
  const std::vector<std::int64_t> gammas = {5, 5, 2, 0};
  bool any = false;
  for (std::size_t i = 0; i < points.size(); ++i) {
    REQUIRE(points[i].deployed);
    const auto gamma = static_cast<std::size_t>(gammas[i]);
    CHECK(points[i].deployed->gamma == gammas[i]);
    CHECK(points[i].deployed->speedup == points[i].rows[gamma].speedup);
    CHECK(points[i].deployed->regret == points[i].rows[gamma].regret);
    const auto& rows = points[i].rows;
    const double behind = std::max(0.0, 1 - rows[gamma].speedup / points[i].optimal().speedup);
    CHECK(points[i].deployed->behind_recommended >= behind - 0.02);
    CHECK(points[i].deployed->exceeds_max_regret == (points[i].deployed->behind_recommended > 0.3));
    any = any || points[i].deployed->exceeds_max_regret;
  }
  CHECK(plan.exceeds_max_regret == any);
  CHECK(any);
  q.max_regret = 0.9;
  CHECK_FALSE(planning::plan_deployment(q).exceeds_max_regret);

  q.deployed = {{1, 64, 5}, {129, 512, 0}};
  CHECK_THROWS_WITH(planning::plan_deployment(q), "plan_deployment: what is deployed leaves out batch 65");
}

TEST_CASE("drafts are compared at equal batch by their seconds per token") {
  DeploymentQuestion q;
  q.drafts = {{"8b", rate(0.8), shared(fakes::pair_cost(fakes::llama_70b(), fakes::llama_8b()))},
              {"1b", rate(0.7), shared(fakes::pair_cost(fakes::llama_70b(), fakes::llama_1b()))}};
  q.contexts = {2048};
  q.batches = {1, 8, 64, 512};
  const DeploymentPlan plan = planning::plan_deployment(q);
  std::vector<double> worst(2);
  for (std::size_t i = 0; i < q.batches.size(); ++i) {
    const double a = plan.drafts[0].points[i].optimal().speedup;
    const double b = plan.drafts[1].points[i].optimal().speedup;
    if (std::max(a, b) > 1.05) CHECK(plan.best_draft[i] == (a > b ? 0 : 1));
    worst[0] = std::max(worst[0], 1 - a / std::max(a, b));
    worst[1] = std::max(worst[1], 1 - b / std::max(a, b));
  }
  CHECK(plan.recommended_draft == (worst[0] < worst[1] ? 0 : 1));

  // The faster target decides where drafts come with their own.
  const auto halved = shared(fakes::Cost([](const cost::RoundPoint& at) {
    cost::RoundTime time = fakes::pair_cost(fakes::llama_70b(), fakes::llama_8b()).round(at);
    return cost::RoundTime{time.target / 2, time.draft, 0};
  }));
  q.drafts[0].cost = halved;
  CHECK(planning::plan_deployment(q).recommended_draft == 0);

  q.drafts = {{"a", rate(0.1), paper(0.2)}, {"b", rate(0.1), paper(0.3)}};
  CHECK(planning::plan_deployment(q).recommended_draft == std::nullopt);
  q.drafts[1].name = std::string("a");
  CHECK_THROWS_WITH(planning::plan_deployment(q), "plan_deployment: two drafts are named a");
}

TEST_CASE("gammas without known acceptance are left out and the plan says so") {
  const auto short_curve = std::make_shared<fakes::Curve>([](std::int64_t gamma) {
    if (gamma > 3) throw std::domain_error("not beyond 3");
    return fakes::constant_rate(0.9, gamma);
  });
  DeploymentQuestion q = question(short_curve, paper(0.05));
  const planning::DraftPlan plan = planning::plan_deployment(q).drafts[0];
  CHECK(plan.points[0].rows.size() == 4);
  CHECK(has_note(plan, "gamma_not_known"));
  q.deployed = {{1, 1, 5}};
  CHECK_THROWS_WITH(planning::plan_deployment(q), "not beyond 3");
}

TEST_CASE("questions outside their ranges are refused") {
  const DeploymentQuestion good = question(rate(0.8), paper(0.1));
  const auto refuses = [&](auto change) {
    DeploymentQuestion q = good;
    change(q);
    CHECK_THROWS(planning::plan_deployment(q));
  };
  refuses([](auto& q) { q.drafts.clear(); });
  refuses([](auto& q) { q.drafts[0].cost = nullptr; });
  refuses([](auto& q) { q.batches.clear(); });
  refuses([](auto& q) { q.batches = {0}; });
  refuses([](auto& q) { q.contexts = {-1}; });
  refuses([](auto& q) { q.contexts.clear(); });
  refuses([](auto& q) { q.max_gamma = 0; });
  refuses([](auto& q) { q.max_gamma = planning::largest_scanned_gamma + 1; });
  refuses([](auto& q) { q.min_gain = -0.1; });
  refuses([](auto& q) { q.max_regret = 2; });
  refuses([](auto& q) { q.schedule_up_to = 0; });
  refuses([](auto& q) { q.deployed = {{1, 4, 2}, {4, 8, 1}}; });
  refuses([](auto& q) { q.deployed = {{1, 4, 33}}; });
  CHECK_NOTHROW(planning::plan_deployment(good));
}

TEST_CASE("a replayed recording is a curve up to the largest gamma that was replayed") {
  estimate::ReplayReport report;
  report.sequences = 5;
  report.tokens = 500;
  const std::vector<double> tokens = {1, 1.7, 2.2};
  for (std::size_t gamma = 0; gamma < tokens.size(); ++gamma) {
    estimate::GammaReplay row;
    row.gamma = static_cast<std::int64_t>(gamma);
    row.tokens_per_step = {tokens[gamma], Interval{tokens[gamma] * 0.9, tokens[gamma] * 1.1}, ""};
    report.gammas.push_back(row);
  }
  report.gammas[0].tokens_per_step.ci95 = Interval{1, 1};
  const planning::ReplayCurve curve(report);
  CHECK(curve.tokens_per_step(2).value == 2.2);
  CHECK(curve.tokens_per_step(2).ci95.lo == Approx(1.98).epsilon(1e-14));
  CHECK(curve.tokens_per_step(2).full_accepts == Approx(0.5).epsilon(1e-13));
  CHECK(curve.tokens_per_step(0).full_accepts == 1);
  CHECK_FALSE(curve.tokens_per_step(2).extrapolated);
  CHECK_THROWS_AS(curve.tokens_per_step(3), std::domain_error);

  estimate::ReplayReport upper = report;
  upper.gammas[2].tokens_per_step = {2.4, std::nullopt, ""};
  const planning::ReplayCurve bracket(report, upper);
  CHECK(bracket.tokens_per_step(2).value == Approx(2.3).epsilon(1e-14));
  CHECK(bracket.tokens_per_step(2).ci95.lo == Approx(1.98).epsilon(1e-14));
  // A recording without an interval says nothing of the error.
  CHECK(bracket.tokens_per_step(2).ci95.hi == 3);
  REQUIRE(bracket.tokens_per_step(2).bracket);
  CHECK(bracket.tokens_per_step(2).bracket->lo == 2.2);
  CHECK(bracket.tokens_per_step(2).bracket->hi == 2.4);
  CHECK_FALSE(curve.tokens_per_step(2).bracket);
}

TEST_CASE("texts of one token decide nothing, and no rate that they exclude is an upper end") {
  estimate::ReplayReport report;
  report.sequences = report.tokens = 40;
  for (std::int64_t gamma = 0; gamma <= 32; ++gamma) {
    report.gammas.emplace_back().gamma = gamma;
    report.gammas.back().tokens_per_step.value = 1;
  }
  const auto curve = std::make_shared<planning::ReplayCurve>(report, std::nullopt, Interval{0.56, 0.83});
  CHECK(curve->tokens_per_step(32).ci95.lo == 1);
  CHECK(curve->tokens_per_step(32).ci95.hi == Approx(fakes::constant_rate(0.83, 32).value).epsilon(1e-12));
  CHECK(planning::ReplayCurve(report).tokens_per_step(32).ci95.hi == 33);
  const PointPlan point = only_point(question(curve, paper(0.05)));
  CHECK(point.certainty == Certainty::open);
  CHECK(point.doubt == curve->refused());
  CHECK_FALSE(point.next);
}

TEST_CASE("points draft what the schedule drafts at their batch") {
  DeploymentQuestion q =
      question(uncertain(0.7, {0.93, 1.07}), shared(fakes::pair_cost(fakes::llama_70b(), fakes::llama_8b())));
  q.contexts = {2048};
  q.batches = {1, 4, 17.3, 64, 200, 512};
  q.schedule_up_to = 512;
  const planning::DraftPlan plan = planning::plan_deployment(q).drafts[0];
  REQUIRE_FALSE(plan.schedule.empty());
  CHECK(plan.schedule.front().batch_low == 1);
  CHECK(plan.schedule.back().batch_high == 512);
  for (std::size_t i = 1; i < plan.schedule.size(); ++i) {
    CHECK(plan.schedule[i].batch_low == plan.schedule[i - 1].batch_high + 1);
    CHECK(plan.schedule[i].gamma < plan.schedule[i - 1].gamma);
  }
  for (const PointPlan& point : plan.points) {
    const auto whole = static_cast<std::int64_t>(planning::whole_batch(point.batch));
    const auto stretch = std::find_if(plan.schedule.begin(), plan.schedule.end(),
                                      [&](const auto& one) { return whole <= one.batch_high; });
    CHECK(point.optimal().gamma == stretch->gamma);
    // A schedule of few stretches loses little of what each batch would choose by itself.
    double least = 1;
    for (const planning::DeploymentRow& row : point.rows) least = std::min(least, row.regret);
    CHECK(point.optimal().regret <= least + 0.02);
  }
}

TEST_CASE("the ends of an interval of rates are alternatives, and the worst of them decides") {
  DeploymentQuestion q = question(rates(0.5, 0.7, 0.9), paper(0.05));
  q.min_gain = 0;
  const PointPlan point = only_point(q);
  const auto cost = [](std::int64_t gamma) { return 1 + 0.05 * static_cast<double>(gamma); };
  double least = 1;
  for (std::int64_t gamma = 0; gamma <= 32; ++gamma)
    least = std::min(least, std::max(naive::regret(0.5, gamma, 32, cost), naive::regret(0.9, gamma, 32, cost)));
  const std::int64_t chosen = point.optimal().gamma;
  const double worst = std::max(naive::regret(0.5, chosen, 32, cost), naive::regret(0.9, chosen, 32, cost));
  CHECK(worst == Approx(least).margin(worlds::alike_regrets));
  CHECK(point.optimal().regret == Approx(worst).margin(1e-12));
  CHECK(point.optimal().speedup_ci95.lo == Approx(naive::speedup(0.5, chosen, cost)).epsilon(1e-12));
  CHECK(point.optimal().speedup_ci95.hi == Approx(naive::speedup(0.9, chosen, cost)).epsilon(1e-12));
}

TEST_CASE("what is uncertain is what knowing the acceptance or the cost would save") {
  const auto vague = uncertain(0.6, {0.75, 1.3});
  const auto cost = paper_with(0.15, normal_factors(0.15, 200, 5));
  const PointPlan of_acceptance = only_point(question(vague, paper(0.15)));
  CHECK(of_acceptance.uncertainty.regret > 0);
  CHECK(of_acceptance.uncertainty.with_acceptance_known == 0);
  CHECK(of_acceptance.uncertainty.with_cost_known == Approx(of_acceptance.uncertainty.regret).epsilon(0.1));
  const PointPlan of_cost = only_point(question(rate(0.2), cost));
  CHECK(of_cost.uncertainty.with_cost_known == 0);
  CHECK(of_cost.uncertainty.with_acceptance_known == Approx(of_cost.uncertainty.regret).epsilon(0.1));
}

TEST_CASE("how sure a gain is, is the share of worlds in which it is had") {
  const auto share = [](double spread) {
    return only_point(question(rate(0.75), paper_with(0.3, normal_factors(spread, 1000, 3)))).share;
  };
  const PointPlan exact = only_point(question(rate(0.75), paper(0.3)));
  const double needed = std::log(exact.optimal().speedup / 1.05);
  const double expected = 0.5 * (1 + std::erf(needed / 0.3 / std::sqrt(2.0)));
  CHECK(share(0.3) == Approx(expected).margin(0.06));
  CHECK(share(0.01) == 1);
  CHECK(exact.certainty == Certainty::sure);
}
