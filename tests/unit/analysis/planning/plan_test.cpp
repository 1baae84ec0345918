#include "analysis/planning/plan.hpp"

#include <algorithm>
#include <cmath>

#include "analysis/theory/walltime.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/naive.hpp"

using namespace specdec;
using core::AcceptanceRate;
using planning::Basis;
using planning::Plan;
using planning::PlanQuestion;

namespace {

PlanQuestion question(double alpha, double c) {
  PlanQuestion q{AcceptanceRate(alpha)};
  q.space.cost.c = c;
  q.c_hat = c;
  return q;
}

std::vector<std::int64_t> gammas(const Plan& plan) {
  std::vector<std::int64_t> shown;
  for (const auto& row : plan.rows) shown.push_back(row.gamma);
  return shown;
}

bool shows(const Plan& plan, std::int64_t gamma) {
  const auto shown = gammas(plan);
  return std::binary_search(shown.begin(), shown.end(), gamma);
}

}  // namespace

// Expected values: exact rational arithmetic of Eq. (1), Theorems 3.8 and 3.11, at 50 digits.
TEST_CASE("a plan recommends the optimum and puts the closed forms beside it") {
  const Plan plan = planning::plan(question(0.8, 0.05));
  CHECK(plan.worth_it);
  CHECK(plan.basis == Basis::optimum);
  REQUIRE(plan.recommended);
  CHECK(plan.recommended->gamma == 8);
  CHECK(plan.recommended->speedup == Approx(3.09207954286).epsilon(1e-11));
  CHECK(plan.gamma_real.value() == Approx(7.85665445887069).epsilon(1e-13));
  CHECK(plan.oracle_speedup.value() == Approx(25.0 / 6).epsilon(1e-13));
  CHECK(plan.break_even.value().alpha() == Approx(0.05).epsilon(1e-12));
  CHECK(plan.near_best == std::vector<theory::GammaRange>{{7, 9}});
  const planning::PlanRow& five = plan.rows.at(5);
  CHECK(five.gamma == 5);
  CHECK(five.expected_tokens == Approx(3.68928).epsilon(1e-13));
  CHECK(five.speedup == Approx(2.951424).epsilon(1e-13));
  CHECK(five.operations_factor == Approx(1.69409749328).epsilon(1e-11));
  CHECK(five.memory_access_factor == Approx(1 / 3.68928).epsilon(1e-13));
  CHECK_FALSE(five.extrapolated);
}

TEST_CASE("small plans show every gamma from 0 to beyond the best and the deployed one") {
  PlanQuestion q = question(0.8, 0.05);
  q.deployed = 14;
  const Plan plan = planning::plan(q);
  REQUIRE(plan.rows.size() == 19);
  for (std::size_t i = 0; i < plan.rows.size(); ++i) CHECK(plan.rows[i].gamma == static_cast<std::int64_t>(i));
}

TEST_CASE("large plans show round numbers and the neighbours of what matters, in order and once each") {
  PlanQuestion q = question(0.9999, 1e-6);
  q.deployed = 777;
  const Plan plan = planning::plan(q);
  CHECK(plan.rows.size() < 80);
  for (const std::int64_t gamma : {std::int64_t{0}, std::int64_t{1000}, std::int64_t{776}, std::int64_t{777},
                                   plan.best.gamma - 1, plan.best.gamma, plan.best.gamma + 1}) {
    CHECK(shows(plan, gamma));
  }
  const auto shown = gammas(plan);
  CHECK(std::adjacent_find(shown.begin(), shown.end(), std::greater_equal<>()) == shown.end());
}

TEST_CASE("a largest gamma bounds the rows and the recommendation, but regret is against the best of all gammas") {
  PlanQuestion q = question(0.8, 0.05);
  q.space.max_gamma = 5;
  q.deployed = 5;
  const Plan plan = planning::plan(q);
  CHECK(plan.rows.size() == 6);
  CHECK(plan.basis == Basis::max_gamma);
  CHECK(plan.recommended->gamma == 5);
  CHECK(plan.unrestricted.gamma == 8);
  // 1 - S(5) / S(8) with the speedups of the first test.
  CHECK(plan.deployed->regret == Approx(1 - 2.951424 / 3.09207954286).epsilon(1e-9));
  CHECK(plan.near_best == std::vector<theory::GammaRange>{{5, 5}});
}

TEST_CASE("a draft that does not pay is not recommended") {
  const Plan plan = planning::plan(question(0.05, 0.05));
  CHECK_FALSE(plan.worth_it);
  CHECK(plan.basis == Basis::not_worth_it);
  CHECK(plan.recommended->gamma == 0);
}

TEST_CASE("a free draft has no best gamma, but one that reaches a share of the limit") {
  const Plan plan = planning::plan(question(0.8, 0.0));
  CHECK(plan.basis == Basis::share_of_limit);
  CHECK_FALSE(plan.best_row);
  // 1 - 0.8^(gamma+1) >= 0.99 and 0.95: 0.8^21 = 0.00922, 0.8^20 = 0.01153; 0.8^14 = 0.0440, 0.8^13 = 0.0550.
  CHECK(plan.recommended->gamma == 20);
  REQUIRE(plan.shares_of_limit.size() == 2);
  CHECK(plan.shares_of_limit[0].gamma == 13);
  CHECK(plan.shares_of_limit[1].gamma == 20);
  CHECK(plan.best.speedup == Approx(5.0).epsilon(1e-13));
}

TEST_CASE("drafts that are always accepted have a limit 1 / c, or none where they are free") {
  const Plan bounded = planning::plan(question(1.0, 0.1));
  CHECK(bounded.basis == Basis::share_of_limit);
  CHECK(bounded.best.speedup == Approx(10.0));
  // (gamma + 1) / (1 + gamma / 10) >= 9.9 from gamma = 890 on.
  CHECK(bounded.recommended->gamma == 890);
  const Plan unbounded = planning::plan(question(1.0, 0.0));
  CHECK(unbounded.basis == Basis::none);
  CHECK_FALSE(unbounded.recommended);
  CHECK(unbounded.shares_of_limit.empty());
}

TEST_CASE("an interval of rates gets the gamma that loses least wherever the rate lies") {
  PlanQuestion q = question(0.75, 0.05);
  q.interval = planning::RateInterval{AcceptanceRate(0.7), AcceptanceRate(0.8)};
  q.deployed = 3;
  const Plan plan = planning::plan(q);
  CHECK(plan.basis == Basis::minimax_regret);
  CHECK(plan.recommended->gamma == 7);
  CHECK(plan.interval->best_at_low == 6);
  CHECK(plan.interval->best_at_high == 8);
  CHECK(plan.interval->all_listed);
  CHECK(plan.interval->best.size() == 3);
  const naive::Cost cost = [](auto gamma) { return 1 + 0.05 * static_cast<double>(gamma); };
  CHECK(plan.deployed->worst_regret.value() == Approx(naive::regret(0.8, 3, 60, cost)).epsilon(1e-12));
  CHECK(plan.recommended->worst_regret.value() == Approx(plan.interval->minimax.worst_regret));
}

// Best of all at 0.8 is gamma 8, which --max-gamma keeps out: 1 - S(4) / S(8) there, of every gamma by brute force.
TEST_CASE("regrets over an interval are against the best of all gammas, also those above the largest one allowed") {
  PlanQuestion q = question(0.75, 0.05);
  q.interval = planning::RateInterval{AcceptanceRate(0.7), AcceptanceRate(0.8)};
  q.space.max_gamma = 4;
  q.deployed = 2;
  const Plan plan = planning::plan(q);
  const naive::Cost cost = [](auto gamma) { return 1 + 0.05 * static_cast<double>(gamma); };
  CHECK(plan.recommended->gamma == 4);
  CHECK(plan.interval->best_lies_above);
  CHECK(plan.interval->minimax.worst_regret == Approx(naive::regret(0.8, 4, 60, cost)).epsilon(1e-12));
  CHECK(plan.recommended->worst_regret.value() == Approx(plan.interval->minimax.worst_regret));
  for (const auto& row : plan.rows) {
    const auto gamma = static_cast<int>(row.gamma);
    CHECK(row.worst_regret.value() ==
          Approx(std::max(naive::regret(0.7, gamma, 60, cost), naive::regret(0.8, gamma, 60, cost))).epsilon(1e-12));
  }
  CHECK(plan.rows.at(2).worst_regret.value() == Approx(plan.deployed->worst_regret.value()));
  // A speedup without bound at the high end: the regret there is 1, whatever the gamma, and the fastest is taken.
  q.space.cost.c = 0;
  q.interval->high = AcceptanceRate(1.0);
  const Plan free = planning::plan(q);
  CHECK(free.recommended->gamma == 4);
  CHECK(free.interval->minimax.worst_regret == 1);
}

TEST_CASE("an interval with a free draft gets the gamma that reaches the limit everywhere") {
  PlanQuestion q = question(0.75, 0.0);
  q.interval = planning::RateInterval{AcceptanceRate(0.7), AcceptanceRate(0.8)};
  const Plan plan = planning::plan(q);
  CHECK(plan.basis == Basis::share_of_limit);
  CHECK(plan.recommended->gamma == 20);
  CHECK(plan.recommended->worst_regret.value() <= 0.01);
}

// Finite speedups: exact rational recursion for alpha 0.8, gamma 5, c 0.05.
TEST_CASE("a finite generation is planned beside the long one") {
  PlanQuestion q = question(0.8, 0.05);
  q.tokens = 64;
  const Plan plan = planning::plan(q);
  CHECK(plan.rows.at(5).finite_speedup.value() == Approx(2.89407022034).epsilon(1e-11));
  REQUIRE(plan.finite);
  for (const auto& row : plan.rows) CHECK(*row.finite_speedup <= plan.finite->speedup);
  CHECK(plan.finite->searched_up_to == plan.rows.back().gamma);
  q.tokens = 1;
  CHECK(planning::plan(q).finite->speedup == 1);
}

TEST_CASE("a finite generation that would take too long is left out, not guessed", "[long]") {
  PlanQuestion q = question(0.8, 0.05);
  q.tokens = 2'000'000;
  const Plan plan = planning::plan(q);
  CHECK(plan.rows.at(9).finite_speedup.has_value());
  CHECK_FALSE(plan.rows.at(10).finite_speedup.has_value());
  CHECK(plan.finite->searched_up_to == 9);
  CHECK_FALSE(plan.finite->complete);
}

TEST_CASE("the finite generation of the recommended gamma is computed where those around it are left out") {
  PlanQuestion q = question(0.99, 0.001);
  q.tokens = 200'000;
  const Plan plan = planning::plan(q);
  CHECK(plan.recommended->gamma > 100);
  CHECK(plan.recommended->finite_speedup.has_value());
  CHECK(plan.finite->gamma == plan.recommended->gamma);
  CHECK_FALSE(plan.finite->complete);
}

TEST_CASE("measurements that give no rate to go on with are planned for within their positions") {
  PlanQuestion all_accepted{core::AcceptanceProfile::from_survival({0.8, 0.8})};
  all_accepted.space.cost.c = 0.05;
  PlanQuestion not_monotone{core::AcceptanceProfile::from_survival({0.9, 0.8})};
  not_monotone.space.cost.c = 0.05;
  not_monotone.monotone = false;
  PlanQuestion one_length{AcceptanceRate(1.0)};
  one_length.space.cost.c = 0.05;
  one_length.measured_at = 2;
  for (const PlanQuestion& q : {all_accepted, not_monotone, one_length}) {
    const Plan plan = planning::plan(q);
    CHECK(plan.basis == Basis::measured);
    CHECK(plan.recommended->gamma == 2);
    CHECK(plan.rows.back().gamma == 2);
    CHECK_FALSE(plan.oracle_speedup);
    PlanQuestion deployed = q;
    deployed.deployed = 3;
    CHECK_THROWS_WITH(planning::plan(deployed), "plan: deployed is 3, but must be in [0, 2]");
  }
}

TEST_CASE("rows above the gamma that one length was measured at are marked") {
  PlanQuestion q = question(0.8, 0.05);
  q.measured_at = 3;
  CHECK_FALSE(planning::plan(q).rows.at(3).extrapolated);
  CHECK(planning::plan(q).rows.at(4).extrapolated);
}

TEST_CASE("a closed form prefers a measured gamma to one beyond that gains too little") {
  PlanQuestion q = question(0.8, 0.2);
  REQUIRE(planning::plan(q).recommended->gamma == 4);
  q.measured_at = 3;
  const Plan plan = planning::plan(q);
  CHECK(plan.recommended->gamma == 3);
  CHECK(plan.basis == planning::Basis::measured);
  CHECK(plan.prefers_measured());
  CHECK(plan.best.gamma == 4);
  q.measured_at = 4;
  CHECK(planning::plan(q).basis == planning::Basis::optimum);
  CHECK_FALSE(planning::plan(q).prefers_measured());
  q.measured_at = 3;
  q.prefer_measured = 0.01;  // 1.2% would be lost
  CHECK(planning::plan(q).recommended->gamma == 4);

  // By the reading that says least, 1.2% are no sure gain either, nor are any.
  q.readings = {core::AcceptanceProfile(core::AcceptanceRate(0.75))};
  CHECK(planning::plan(q).recommended->gamma == 3);
  CHECK(planning::plan(q).least_best_speedup == Approx((1 - std::pow(0.75, 5)) / 0.25 / 1.8).epsilon(1e-14));
  q.readings = {core::AcceptanceProfile(core::AcceptanceRate(0.8))};
  CHECK(planning::plan(q).recommended->gamma == 4);

  // Where the best is not sure to gain, the longest shorter one beyond what was measured that is.
  PlanQuestion sure = question(0.85, 0.1);
  sure.measured_at = 1;
  sure.readings = {core::AcceptanceProfile::from_survival(std::vector<double>{0.85, 0.5, 0.2, 0.1})};
  const Plan surer = planning::plan(sure);
  CHECK(surer.basis == planning::Basis::sure);
  CHECK(surer.prefers_measured());
  const std::int64_t gamma = surer.recommended->gamma;
  const auto gains = [&](std::int64_t drafted) {
    return 0.95 * theory::walltime_improvement(sure.readings[0], drafted, sure.space.cost) > 1.85 / 1.1;
  };
  CHECK(1 < gamma);
  CHECK(gamma < surer.best.gamma);
  CHECK(gains(gamma));
  CHECK_FALSE(gains(gamma + 1));

  // Free drafts: 1 / 0.2 = 5 tokens per step in the limit, 2.95 at gamma 3 and 4.95 at 20.
  PlanQuestion free = question(0.8, 0);
  free.measured_at = 3;
  CHECK(planning::plan(free).basis == planning::Basis::share_of_limit);
  free.measured_at = 20;
  CHECK(planning::plan(free).basis == planning::Basis::measured);
  CHECK(planning::plan(free).recommended->gamma == 20);

  // A table of verification that ends at 4 tokens measures gammas up to 3.
  PlanQuestion table = question(0.8, 0.2);
  const core::VerificationCost::Point points[] = {{2, 1}, {4, 1}};
  table.space.cost.verification = core::VerificationCost::table(points);
  CHECK(planning::plan(table).recommended->gamma == 3);
}

TEST_CASE(
    "a closed form prefers plain decoding where it is faster than what was measured and nothing beyond surely gains") {
  // 1.038 at 2, 0.973 at 1.
  PlanQuestion slow = question(0.8, 0.5);
  slow.space.cost.overhead = 0.35;
  slow.measured_at = 1;
  const Plan plan = planning::plan(slow);
  CHECK(plan.recommended->gamma == 0);
  CHECK(plan.basis == Basis::not_worth_it);
  CHECK_FALSE(plan.worth_it);
  CHECK(plan.prefers_plain());
  CHECK(plan.prefers_measured());
  CHECK(plan.best.gamma == 2);
  // 1.038 > 1 / 0.97
  slow.prefer_measured = 0.03;
  CHECK(planning::plan(slow).recommended->gamma == 2);
  CHECK(planning::plan(slow).worth_it);
  CHECK_FALSE(planning::plan(slow).prefers_plain());

  // 1.091 tokens in 1.05 plain steps at 1, 1.1 in 1.15 at 3, the only one that was measured.
  PlanQuestion shorter = question(0.09097, 0.05);
  shorter.measured_at = 3;
  shorter.measured_from = 3;
  // A shorter draft lies within what was measured.
  CHECK(planning::plan(shorter).recommended->gamma == 1);

  // Where it is fastest, nothing is passed over.
  CHECK_FALSE(planning::plan(question(0.1, 0.5)).prefers_measured());
}

TEST_CASE("no row lies above the largest gamma there is") {
  PlanQuestion q = question(0.75, 0.05);
  q.interval = planning::RateInterval{AcceptanceRate(0.7), AcceptanceRate(0.8)};
  q.deployed = planning::no_max_gamma;
  CHECK(planning::plan(q).rows.back().gamma == planning::no_max_gamma);
  q.space.cost.c = 1e-18;
  q.deployed.reset();
  CHECK(planning::plan(q).rows.back().gamma <= planning::no_max_gamma);
}

TEST_CASE("speculation is worth it in an interval where some rate of it has a gamma that pays") {
  PlanQuestion q = question(0.2, 0.25);
  q.interval = planning::RateInterval{AcceptanceRate(0.0), AcceptanceRate(0.4)};
  CHECK(planning::plan(q).worth_it);  // at 0.4 one draft gains 1.4 / 1.25
  q.interval->high = AcceptanceRate(0.2);
  CHECK_FALSE(planning::plan(q).worth_it);
}

TEST_CASE("the largest regret allowed is held against the loss to the recommended gamma at the same end") {
  PlanQuestion q = question(0.75, 0.05);
  q.interval = planning::RateInterval{AcceptanceRate(0.6), AcceptanceRate(0.9)};
  q.max_regret = 0.001;
  const std::int64_t recommended = planning::plan(q).recommended->gamma;
  const auto speedup = [](double alpha, std::int64_t gamma) {
    const double exponent = static_cast<double>(gamma) + 1;
    return (1 - std::pow(alpha, exponent)) / (1 - alpha) / (0.05 * (exponent - 1) + 1);
  };
  for (std::int64_t gamma = 0; gamma <= 20; ++gamma) {
    q.deployed = gamma;
    const planning::DeployedGamma deployed = *planning::plan(q).deployed;
    double most = 0;
    for (const double alpha : {0.6, 0.75, 0.9}) {
      most = std::max(most, 1 - speedup(alpha, gamma) / speedup(alpha, recommended));
    }
    CHECK(deployed.behind_recommended == Approx(most).margin(1e-12));
    CHECK(deployed.behind_recommended <= deployed.worst_regret.value() + 1e-12);
    CHECK(deployed.exceeds_max_regret == (gamma != recommended));
  }
}

TEST_CASE("what is recommended is never behind itself, also where a faster gamma was not measured") {
  PlanQuestion q{core::AcceptanceProfile::from_survival({0.8, 0.63, 0.49})};
  q.space.cost.c = 0.02;
  q.measured_at = 3;
  q.max_regret = 0.0;
  q.deployed = planning::plan(q).recommended->gamma;
  CHECK(planning::plan(q).deployed->behind_recommended == 0);
  CHECK_FALSE(planning::plan(q).deployed->exceeds_max_regret);
  CHECK(planning::judge_deployed(q, std::nullopt).behind_recommended == planning::plan(q).deployed->regret);
}

TEST_CASE("rows beyond what was measured are marked") {
  PlanQuestion q{core::AcceptanceProfile::from_survival({0.805, 0.632, 0.483})};
  q.space.cost.c = 0.02;
  const Plan plan = planning::plan(q);
  CHECK_FALSE(plan.rows.at(3).extrapolated);
  CHECK(plan.rows.at(4).extrapolated);
  CHECK_FALSE(plan.gamma_real);

  PlanQuestion table = question(0.8, 0.05);
  const core::VerificationCost::Point points[] = {{2, 1.02}, {5, 1.10}};
  table.space.cost.verification = core::VerificationCost::table(points);
  CHECK_FALSE(planning::plan(table).rows.at(4).extrapolated);
  CHECK(planning::plan(table).rows.at(5).extrapolated);
  CHECK_FALSE(planning::plan(table).oracle_speedup);
}

TEST_CASE("the pooled rate of measured positions is accepted drafts over drafts looked at") {
  // 1000 steps with 700, 480, 350, 270 accepted at the four positions: 1800 / (1000 + 700 + 480 + 350).
  const auto profile = core::AcceptanceProfile::from_survival({0.7, 0.48, 0.35, 0.27});
  CHECK(planning::pooled_rate(profile).alpha() == Approx(1800.0 / 2530).epsilon(1e-13));
  CHECK(planning::pooled_rate(AcceptanceRate::from_rejection(1e-12)).rejection() == 1e-12);
  CHECK(planning::pooled_rate(core::AcceptanceProfile::from_survival({1.0, 1.0})).alpha() == 1);
}

TEST_CASE("the oracle of a profile reaches its expected tokens without limit on gamma") {
  PlanQuestion q{core::AcceptanceProfile::from_survival({0.5, 0.25})};  // a rate of 1/2 in disguise
  q.space.cost.c = 0.1;
  CHECK(planning::plan(q).oracle_speedup.value() == Approx(1 / (0.5 + 0.5 * 0.1)).epsilon(1e-13));
}

TEST_CASE("a question outside its ranges is refused with the range") {
  PlanQuestion q = question(0.8, 0.05);
  q.tolerance = 0;
  CHECK_THROWS_AS(planning::plan(q), std::domain_error);
  q = question(0.8, 0.05);
  q.space.max_gamma = 4;
  q.deployed = 5;
  CHECK_THROWS_WITH(planning::plan(q), "plan: deployed is 5, but must be in [0, 4]");
  q = question(0.8, 0.05);
  q.tokens = 0;
  CHECK_THROWS_WITH(planning::plan(q), "plan: tokens is 0, but must be in [1, 9007199254740992]");
}
