#include "analysis/planning/bench_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "analysis/planning/bench_acceptance.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/analysis/planning/fakes.hpp"
#include "traces/file_error.hpp"

using namespace specdec;
using planning::BenchPlan;
using planning::BenchQuestion;
using traces::ServingCounts;

namespace {

/// A server whose rounds are affine in all that the fit knows, and whose drafts are accepted at a constant rate.
struct Server {
  double alpha = 0.7;
  double fixed = 0.012, per_draft = 0.0008, per_drafted = 2e-5, per_verified = 1e-4, per_context = 2e-9;

  double round(double gamma, double batch, double context) const {
    return fixed + per_draft * gamma + per_drafted * gamma * batch + per_verified * (gamma + 1) * batch +
           per_context * batch * context;
  }
  double tokens(std::int64_t gamma) const { return fakes::constant_rate(alpha, gamma).value; }
  double speedup(std::int64_t gamma, double batch, double context) const {
    return tokens(gamma) * round(0, batch, context) / round(static_cast<double>(gamma), batch, context);
  }
  std::int64_t best(std::int64_t up_to, double batch, double context) const {
    std::int64_t best = 0;
    for (std::int64_t gamma = 1; gamma <= up_to; ++gamma) {
      if (speedup(gamma, batch, context) > speedup(best, batch, context)) best = gamma;
    }
    return best;
  }

  /// The result of one run. Its counts are as large as to have no sampling error.
  ServingCounts run(std::int64_t gamma, double concurrency, double input = 1000, double noise = 1) const {
    constexpr double requests = 400, output = 200, rounds = 1e8;
    ServingCounts counts;
    counts.file = "g" + std::to_string(gamma) + "_c" + std::to_string(static_cast<int>(concurrency)) + ".json";
    counts.line = 1;
    counts.engine = "vllm";
    counts.unit = traces::CountUnit::run;
    counts.labels = {{"model_name", "m"}};
    const double batch = 0.9 * concurrency;
    const double context = input + output / 2;
    const double tpot = noise * round(static_cast<double>(gamma), batch, context) / tokens(gamma);
    traces::BenchRun bench;
    bench.max_concurrency = concurrency;
    bench.num_prompts = bench.completed = requests;
    bench.total_input_tokens = requests * input;
    bench.total_output_tokens = requests * output;
    bench.mean_tpot_ms = 1e3 * tpot;
    bench.output_throughput = batch / tpot;
    bench.duration_s = requests * output / *bench.output_throughput;
    counts.bench = bench;
    if (gamma == 0) return counts;
    counts.shape = traces::DraftShape::chain;
    counts.gamma = gamma;
    counts.rounds = rounds;
    counts.drafted = rounds * static_cast<double>(gamma);
    double accepted = 0;
    for (std::int64_t j = 1; j <= gamma; ++j) {
      counts.accepted_at.push_back(std::round(rounds * std::pow(alpha, static_cast<double>(j))));
      accepted += counts.accepted_at.back();
    }
    counts.accepted = accepted;
    return counts;
  }
};

BenchQuestion sweep(const Server& server, const std::vector<std::int64_t>& gammas,
                    const std::vector<double>& concurrencies) {
  BenchQuestion question;
  for (const double input : {1000.0, 8000.0}) {
    for (const double concurrency : concurrencies) {
      for (const std::int64_t gamma : gammas) question.runs.push_back(server.run(gamma, concurrency, input));
    }
  }
  return question;
}

bool has_note(const BenchPlan& plan, const std::string& code) {
  return std::any_of(plan.notes.begin(), plan.notes.end(), [&](const auto& note) { return note.code == code; });
}

}  // namespace

TEST_CASE("runs of a known server give back its speedups, and the best gamma of those that nobody ran", "[long]") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 2, 5}, {1, 8, 32, 128});
  question.holdout = {server.run(3, 20), server.run(0, 20, 4000)};
  const BenchPlan plan = planning::plan_bench(question);
  CHECK(plan.model == "m");
  CHECK(plan.runs.size() == 24);
  CHECK(plan.speedups.size() == 16);
  for (const planning::BenchSpeedup& row : plan.speedups) {
    const planning::BenchFigures& run = plan.runs[row.speculative];
    CHECK(plan.runs[row.baseline].gamma == 0);
    CHECK(plan.runs[row.baseline].max_concurrency == run.max_concurrency);
    CHECK(plan.runs[row.baseline].input_tokens == run.input_tokens);
    CHECK(row.speedup.value == Approx(server.speedup(run.gamma, run.batch, run.context)).epsilon(1e-6));
  }
  const auto& points = plan.plan.drafts[0].points;
  REQUIRE(points.size() == 8);
  for (const planning::PointPlan& point : points) {
    INFO(point.batch << " " << point.context);
    const double best = server.speedup(server.best(16, point.batch, point.context), point.batch, point.context);
    // Plain decoding is worth the gain that is asked for.
    const std::int64_t gamma = point.optimal().gamma;
    const double valued = gamma == 0 ? 1 + question.min_gain : server.speedup(gamma, point.batch, point.context);
    CHECK(valued > 0.97 * best);
    CHECK(point.optimal().speedup ==
          Approx(server.speedup(point.optimal().gamma, point.batch, point.context)).epsilon(0.04));
  }
  // Rounds are slow at large batches, so fewer drafts pay.
  CHECK(points[0].optimal().gamma > points[3].optimal().gamma);
  REQUIRE(plan.leave_one_out.size() == 24);
  for (const planning::BenchPrediction& row : plan.leave_one_out) {
    INFO(row.file << " " << row.reason);
    REQUIRE(row.relative_error);
    CHECK(std::abs(*row.relative_error) < 0.15);
  }
  CHECK(*plan.leave_one_out_error < 0.03);
  REQUIRE(plan.backtest.size() == 2);
  for (const planning::BenchPrediction& row : plan.backtest) {
    CHECK(std::abs(row.relative_error.value()) < 0.03);
    CHECK(*row.predicted / row.measured - 1 == Approx(*row.relative_error).margin(1e-15));
    REQUIRE(row.ci95);
    CHECK(row.ci95->lo < row.measured);
    CHECK(row.measured < row.ci95->hi);
    CHECK(row.ci95->hi < 1.3 * row.ci95->lo);
  }
  const auto& schedule = plan.plan.drafts[0].schedule;
  REQUIRE_FALSE(schedule.empty());
  CHECK(schedule.front().batch_low == 1);
  CHECK(schedule.back().batch_high == 115);
}

TEST_CASE("a batch is the requests that decode, by Little's law, not the concurrency", "[long]") {
  const Server server;
  const BenchPlan plan = planning::plan_bench(sweep(server, {0, 3}, {10, 40}));
  CHECK(plan.runs[0].max_concurrency == 10);
  CHECK(plan.runs[0].batch == Approx(9).epsilon(1e-12));
  CHECK(plan.runs[0].context == 1100);
  CHECK(plan.runs[1].round_seconds == Approx(server.round(3, 9, 1100)).epsilon(1e-7));
}

TEST_CASE("noisy runs have wide intervals and miss what they predict of each other by as much as the noise", "[long]") {
  const Server server;
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0, 0.03);
  BenchQuestion question;
  for (const double concurrency : {1.0, 8.0, 32.0, 128.0}) {
    for (const std::int64_t gamma : {0, 2, 5}) {
      question.runs.push_back(server.run(gamma, concurrency, 1000, std::exp(normal(random))));
    }
  }
  const BenchPlan noisy = planning::plan_bench(question);
  CHECK(*noisy.leave_one_out_error > 0.005);
  CHECK(*noisy.leave_one_out_error < 0.15);
  const auto width = [](const planning::DeploymentRow& row) {
    return std::log(row.speedup_ci95.hi / row.speedup_ci95.lo);
  };
  for (const planning::PointPlan& point : noisy.plan.drafts[0].points) CHECK(width(point.rows[5]) > 0.02);
}

TEST_CASE("a fixed part of speculative rounds is planned with, and no plan contradicts a run that it was given", "[long]") {
  const Server server;
  for (const double fixed : {0.0, 0.05, 0.15, 0.2, 0.4, 0.8}) {
    BenchQuestion question;
    for (const std::int64_t gamma : {0, 1, 4}) {
      const double round = server.round(static_cast<double>(gamma), 7.2, 1100), plain = server.round(0, 7.2, 1100);
      question.runs.push_back(server.run(gamma, 8, 1000, gamma > 0 ? (round + fixed * plain) / round : 1));
    }
    const BenchPlan plan = planning::plan_bench(question);
    const planning::PointPlan& point = plan.plan.drafts[0].points[0];
    for (const planning::BenchSpeedup& run : plan.speedups) {
      const auto gamma = static_cast<std::size_t>(plan.runs[run.speculative].gamma);
      const estimate::Interval& interval = point.rows[gamma].speedup_ci95;
      INFO("fixed part " << fixed << ", gamma " << gamma << ": " << run.speedup.value << " in " << interval.lo << " to "
                         << interval.hi);
      CHECK(interval.lo <= run.speedup.value * (1 + 1e-12));
      CHECK(run.speedup.value <= interval.hi * (1 + 1e-12));
    }
    // The speedup of a gamma that did not run.
    const double plain = server.round(0, 7.2, 1100);
    const double speedup = server.tokens(2) * plain / (server.round(2, 7.2, 1100) + fixed * plain);
    CHECK(point.rows[2].speedup == Approx(speedup).epsilon(0.05));
    CHECK(point.rows[2].speedup_ci95.lo < speedup);
    CHECK(speedup < point.rows[2].speedup_ci95.hi);
  }
}

TEST_CASE("an acceptance that is taken as exact leaves the cost's error in the interval") {
  const Server server;
  BenchQuestion question;
  question.runs = {server.run(0, 8), server.run(4, 8)};
  question.acceptance =
      std::make_shared<fakes::Curve>([](std::int64_t gamma) { return fakes::constant_rate(0.9, gamma); });
  const BenchPlan plan = planning::plan_bench(question);
  for (const planning::DeploymentRow& row : plan.plan.drafts[0].points[0].rows) {
    if (row.gamma > 0) CHECK(row.speedup_ci95.hi > 1.02 * row.speedup_ci95.lo);
  }
  // The run is compared at the acceptance that the plan takes, but that more tokens bring more prompts of others.
  const planning::DeploymentRow& ran = plan.plan.drafts[0].points[0].rows[4];
  CHECK(ran.speedup == Approx(plan.speedups[0].speedup.value * ran.tokens_per_step / server.tokens(4)).epsilon(0.05));
}

TEST_CASE("batches at which only plain rounds ran, or only drafts, are marked as not measured", "[long]") {
  const Server server;
  BenchQuestion question;
  for (const double concurrency : {1.0, 4.0, 8.0, 32.0, 64.0}) question.runs.push_back(server.run(0, concurrency));
  for (const double concurrency : {1.0, 4.0, 8.0}) {
    for (const std::int64_t gamma : {2, 4}) question.runs.push_back(server.run(gamma, concurrency));
  }
  const auto check = [](const BenchQuestion& asked, std::int64_t decided_up_to) {
    const BenchPlan plan = planning::plan_bench(asked);
    const planning::DraftPlan& draft = plan.plan.drafts[0];
    for (const planning::PointPlan& point : draft.points) {
      const bool decided = point.batch <= static_cast<double>(decided_up_to);
      INFO("batch " << point.batch);
      CHECK((point.basis == planning::PriceBasis::measured) == decided);
    }
    for (const planning::PlannedStretch& stretch : draft.schedule) {
      INFO("batches " << stretch.batch_low << " to " << stretch.batch_high);
      CHECK((stretch.basis == planning::PriceBasis::measured) == (stretch.batch_high <= decided_up_to));
    }
  };
  check(question, 9);

  BenchQuestion only_drafts;
  only_drafts.runs = {server.run(0, 1)};
  for (const double concurrency : {1.0, 8.0, 32.0}) only_drafts.runs.push_back(server.run(4, concurrency));
  check(only_drafts, 1);
}

TEST_CASE("a server's limit leaves out the points of runs at larger batches, unless all are", "[long]") {
  BenchQuestion question = sweep(Server(), {0, 2, 4}, {8, 64});
  question.schedule_up_to = 32;
  const BenchPlan limited = planning::plan_bench(question);
  for (const planning::PointPlan& point : limited.plan.drafts[0].points) CHECK(point.batch < 33);
  question.schedule_up_to = 4;
  CHECK(planning::plan_bench(question).plan.drafts[0].points.size() == 4);
}

TEST_CASE("of two runs neither is predicted by the other") {
  const Server server;
  BenchQuestion question;
  question.runs = {server.run(0, 8), server.run(4, 8)};
  const BenchPlan plan = planning::plan_bench(question);
  CHECK(plan.leave_one_out_error == std::nullopt);
  for (const planning::BenchPrediction& row : plan.leave_one_out) CHECK_FALSE(row.reason.empty());
  CHECK(plan.speedups[0].speedup.value == Approx(server.speedup(4, 7.2, 1100)).epsilon(1e-7));
}

TEST_CASE("a measured speedup has the errors of both runs", "[long]") {
  const Server server;
  BenchQuestion question;
  question.runs = {server.run(0, 8), server.run(4, 8, 1000, 1.01), server.run(4, 8, 1000, 0.99), server.run(2, 64),
                   server.run(0, 64)};
  const BenchPlan plan = planning::plan_bench(question);
  REQUIRE(plan.speedups.size() == 3);
  const double half_width = 1.9599639845400545 * std::sqrt(2) * plan.run_error;
  for (const planning::BenchSpeedup& row : plan.speedups) {
    REQUIRE(row.speedup.ci95);
    CHECK(std::log(row.speedup.ci95->hi / row.speedup.value) == Approx(half_width).epsilon(1e-9));
    CHECK(std::log(row.speedup.value / row.speedup.ci95->lo) == Approx(half_width).epsilon(1e-9));
  }
}

TEST_CASE("an acceptance that is given and is not what the runs counted is said to contradict them", "[long]") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 2, 4}, {1, 8});
  const auto message = [&](double alpha) {
    question.acceptance =
        std::make_shared<fakes::Curve>([alpha](std::int64_t gamma) { return fakes::constant_rate(alpha, gamma); });
    const BenchPlan plan = planning::plan_bench(question);
    const auto found = std::find_if(plan.notes.begin(), plan.notes.end(),
                                    [](const auto& note) { return note.code == "acceptance_contradicts_runs"; });
    return found == plan.notes.end() ? std::string() : found->message;
  };
  CHECK(message(0.7).empty());
  // 2.77 tokens with gamma 4, which two digits of the rate do not tell from 2.81.
  CHECK(message(0.705).empty());
  // Among the gammas that ran, 4 is the one at which (1 - .4^5) / (1 - .4) = 1.65 is furthest from the runs' own.
  const std::string low = message(0.4);
  INFO(low);
  CHECK(low.find("at gamma 4 the acceptance that is given makes 1.65 tokens a step, and the runs counted 2.77") == 0);
  CHECK(message(0.95).find("makes 4.52 tokens a step") != std::string::npos);
}

TEST_CASE(
    "one plain and one speculative run give back the measured speedup at its gamma, and others within intervals") {
  const Server server;
  BenchQuestion question;
  question.runs = {server.run(0, 8), server.run(4, 8)};
  // The speculative run holds fewer requests that decode, as servers do.
  question.runs[1].bench->output_throughput = 0.97 * *question.runs[1].bench->output_throughput;
  question.holdout = {server.run(2, 8)};
  const BenchPlan plan = planning::plan_bench(question);
  CHECK(has_note(plan, "one_batch"));
  REQUIRE(plan.plan.drafts[0].points.size() == 1);
  const planning::PointPlan& point = plan.plan.drafts[0].points[0];
  REQUIRE(point.rows.size() == 17);
  CHECK(point.rows[4].speedup == Approx(plan.speedups[0].speedup.value).epsilon(0.03));
  CHECK(point.rows[2].speedup_ci95.lo < server.speedup(2, 7.2, 1100));
  CHECK(server.speedup(2, 7.2, 1100) < point.rows[2].speedup_ci95.hi);
  CHECK(point.rows[4].time.total() == Approx(plan.runs[1].round_seconds).epsilon(0.03));
  CHECK(plan.backtest[0].ci95->lo < plan.backtest[0].measured);
  CHECK(plan.backtest[0].measured < plan.backtest[0].ci95->hi);
}

TEST_CASE("runs that lack a partner, a model or a plain run are named", "[long]") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 4}, {1, 8});
  question.runs.push_back(server.run(4, 64));
  CHECK(has_note(planning::plan_bench(question), "unmatched_run"));

  BenchQuestion plain;
  plain.runs = {server.run(0, 8), server.run(0, 16)};
  CHECK(planning::plan_bench(plain).acceptance != nullptr);
  BenchQuestion apart;
  apart.runs = {server.run(0, 8), server.run(0, 16), server.run(4, 32), server.run(4, 64)};
  const planning::BenchPlan relative = planning::plan_bench(apart);
  CHECK(has_note(relative, "plain_runs_left_out"));
  CHECK(relative.speedups.empty());
  CHECK(relative.runs.size() == 2);

  BenchQuestion models = sweep(server, {0, 4}, {1, 8});
  models.runs[3].labels = {{"model_name", "other"}};
  CHECK_THROWS_WITH(planning::plan_bench(models),
                    "g4_c8.json:1: model is other, but must be m as in g0_c1.json, or one of the models chosen");
  models.model = "m";
  CHECK(planning::plan_bench(models).runs.size() == 7);
  models.model = "third";
  CHECK_THROWS_WITH(planning::plan_bench(models), "plan_bench: no run is of model third");
  CHECK_THROWS_AS(planning::plan_bench(BenchQuestion{}), std::invalid_argument);

  BenchQuestion holdout = sweep(server, {0, 4}, {1, 8});
  holdout.holdout = {server.run(4, 4)};
  holdout.holdout[0].labels = {{"model_name", "other"}};
  CHECK_THROWS_AS(planning::plan_bench(holdout), traces::FileError);
}

TEST_CASE("runs with drafts alone say which gamma is the fastest, and not what it gains", "[long]") {
  const Server server;
  const BenchQuestion question = sweep(server, {1, 3, 6}, {1, 8, 64});
  const BenchPlan plan = planning::plan_bench(question);
  CHECK(has_note(plan, "no_plain_runs"));
  CHECK(plan.speedups.empty());
  const auto& points = plan.plan.drafts[0].points;
  REQUIRE(points.size() == 6);
  // Among drafts the fastest is the server's own; what it gains over plain decoding is open.
  for (const planning::PointPlan& point : points) {
    INFO(point.batch);
    const auto slowness = [&](std::int64_t gamma) {
      return server.round(static_cast<double>(gamma), point.batch, point.context) / server.tokens(gamma);
    };
    double fastest = slowness(1);
    for (std::int64_t gamma = 2; gamma <= 6; ++gamma) fastest = std::min(fastest, slowness(gamma));
    const planning::DeploymentRow& best = point.rows[point.drafting_row];
    CHECK(slowness(best.gamma) <= 1.03 * fastest);
    CHECK(best.speedup_ci95.hi > 1.2 * best.speedup_ci95.lo);
    CHECK(best.extrapolated);
  }
}

TEST_CASE("a run that does not say what it accepted has the tokens per step of other runs, or of another source", "[long]") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 2, 5}, {1, 8, 32});
  const BenchPlan all = planning::plan_bench(question);
  const auto forget = [](ServingCounts& run) {
    run.rounds.reset();
    run.drafted.reset();
    run.accepted.reset();
    run.accepted_at.clear();
  };
  for (ServingCounts& run : question.runs)
    if (run.gamma == 5 && run.bench->max_concurrency == 8) forget(run);
  const BenchPlan some = planning::plan_bench(question);
  CHECK(has_note(some, "acceptance_of_other_source"));
  REQUIRE(some.runs.size() == all.runs.size());
  for (std::size_t i = 0; i < some.runs.size(); ++i) {
    CHECK(some.runs[i].gamma == all.runs[i].gamma);
    CHECK(some.runs[i].round_seconds == Approx(all.runs[i].round_seconds).epsilon(0.02));
  }
  for (ServingCounts& run : question.runs)
    if (run.gamma) forget(run);
  question.acceptance =
      std::make_shared<fakes::Curve>([](std::int64_t gamma) { return fakes::constant_rate(0.7, gamma); });
  const BenchPlan other = planning::plan_bench(question);
  CHECK(other.runs[1].round_seconds == Approx(all.runs[1].round_seconds).epsilon(0.01));
  CHECK(other.leave_one_out[1].relative_error);
  CHECK(other.plan.drafts[0].points[0].optimal().gamma > 0);
}

namespace {

/// A run of one request at a time that says its speed, and no more than that.
ServingCounts timed(std::int64_t gamma, double tokens_per_second) {
  ServingCounts counts;
  counts.file = "runs.csv";
  counts.line = gamma + 2;
  counts.unit = traces::CountUnit::run;
  counts.labels = {{"model_name", ""}};
  if (gamma > 0) counts.gamma = gamma;
  traces::BenchRun bench;
  bench.max_concurrency = bench.batch = 1;
  bench.mean_tpot_ms = 1000 / tokens_per_second;
  bench.output_throughput = tokens_per_second;
  counts.bench = bench;
  return counts;
}

/// Speedups of a plan in its worlds, in increasing order.
std::vector<double> speedups_of(const BenchPlan& plan, std::int64_t gamma) {
  const estimate::TokenWorlds tokens = plan.acceptance->draw(8, {1000, 3});
  std::vector<double> plain(plan.cost->replicates()), rounds(plan.cost->replicates()), speedups;
  plan.cost->totals_of_replicates({.gamma = 0}, plain);
  plan.cost->totals_of_replicates({.gamma = gamma}, rounds);
  for (std::size_t i = 0; i < tokens.worlds(); ++i)
    speedups.push_back(tokens.tokens[static_cast<std::size_t>(gamma)][i] * plain[i % plain.size()] /
                       rounds[i % plain.size()]);
  std::sort(speedups.begin(), speedups.end());
  return speedups;
}

double half_width(const std::vector<double>& sorted) {
  const std::size_t tail = sorted.size() / 40;
  return std::log(sorted[sorted.size() - 1 - tail] / sorted[tail]) / 2;
}

}  // namespace

TEST_CASE("two timed runs are an answer at their gamma, whatever is known of acceptance", "[long]") {
  for (const cost::DraftKind kind : {cost::DraftKind::eagle, cost::DraftKind::mtp, cost::DraftKind::model}) {
    for (const bool is_told : {false, true}) {
      BenchQuestion question;
      question.kind = kind;
      question.kind_told = is_told;
      question.runs = {timed(0, 22.92), timed(2, 29.39)};
      const BenchPlan silent = planning::plan_bench(question);
      question.runs[1].tokens_per_round = 2.63;
      const BenchPlan told = planning::plan_bench(question);
      CHECK(has_note(silent, "acceptance_of_other_source"));
      for (const BenchPlan* plan : {&silent, &told}) {
        const std::vector<double> speedups = speedups_of(*plan, 2);
        INFO(name_of(kind) << " " << is_told << " " << (plan == &told));
        CHECK(speedups[speedups.size() / 2] == Approx(29.39 / 22.92).epsilon(0.01));
        CHECK(half_width(speedups) > 0.03);
        CHECK(half_width(speedups) < 0.09);
        CHECK(half_width(speedups_of(*plan, 5)) > half_width(speedups));
      }
      CHECK(silent.cost->impossible().empty());
    }
  }
}

TEST_CASE("runs of several gammas without tokens per step share one acceptance") {
  const Server server;
  BenchQuestion question;
  for (const std::int64_t gamma : {0, 1, 2, 4, 6}) {
    question.runs.push_back(timed(gamma, server.tokens(gamma) / server.round(static_cast<double>(gamma), 1, 1000)));
  }
  question.kind = cost::DraftKind::eagle;
  const BenchPlan plan = planning::plan_bench(question);
  for (const std::int64_t gamma : {1, 2, 3, 4, 5, 6}) {
    INFO(gamma);
    const std::vector<double> speedups = speedups_of(plan, gamma);
    CHECK(speedups[speedups.size() / 2] == Approx(server.speedup(gamma, 1, 1000)).epsilon(0.03));
    CHECK(half_width(speedups) < 0.08);
  }
}

TEST_CASE("lengths without the number of their rounds are planned with, and said to be of unknown precision") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 2, 5}, {8});
  for (ServingCounts& run : question.runs) {
    if (!run.gamma) continue;
    run.tokens_per_round = server.tokens(*run.gamma);
    run.rounds.reset();
    run.drafted.reset();
    run.accepted.reset();
    run.accepted_at.clear();
  }
  const BenchPlan plan = planning::plan_bench(question);
  CHECK(plan.runs[1].tokens_per_step == Approx(server.tokens(2)));
}

TEST_CASE("an overhead beyond the runs' own slows the plan and held-out runs, and not the runs", "[long]") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 2, 5}, {1, 8, 32});
  question.holdout = {server.run(5, 16)};
  const BenchPlan without = planning::plan_bench(question);
  question.overhead_seconds = 0.004;
  const BenchPlan with = planning::plan_bench(question);
  CHECK(*with.leave_one_out_error == *without.leave_one_out_error);
  const auto& point = with.plan.drafts[0].points[0];
  const auto& before = without.plan.drafts[0].points[0];
  CHECK(point.rows[5].time.total() == Approx(before.rows[5].time.total() + 0.004));
  CHECK(point.rows[0].time.total() == before.rows[0].time.total());
  const double tokens = server.tokens(5);
  CHECK(*with.backtest[0].predicted == Approx(*without.backtest[0].predicted + 0.004 / tokens).epsilon(2e-3));
  question.overhead_seconds = 0;
  question.overhead_steps = 0.5;
  const BenchPlan steps = planning::plan_bench(question);
  CHECK(steps.plan.drafts[0].points[0].rows[5].time.total() ==
        Approx(before.rows[5].time.total() + 0.5 * before.rows[0].time.total()));
  // The intervals hold the measured speedups less the overhead, so that they are no wider for it.
  CHECK(point.rows[5].speedup_ci95.hi < before.rows[5].speedup_ci95.hi);
}

TEST_CASE("a held-out run says what has drifted: its rounds, its acceptance, both or nothing", "[long]") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 2, 5}, {1, 8, 32});
  Server slower = server, other = server, both = server;
  slower.fixed *= 1.6;
  other.alpha = both.alpha = 0.5;
  both.fixed *= 1.6;
  question.holdout = {server.run(2, 8), slower.run(2, 8), other.run(2, 8), both.run(2, 8), slower.run(0, 8)};
  const BenchPlan plan = planning::plan_bench(question);
  REQUIRE(plan.backtest.size() == 5);
  const char* const drifted[] = {"", "rounds", "acceptance", "rounds and acceptance", "rounds"};
  for (std::size_t i = 0; i < 5; ++i) CHECK(plan.backtest[i].drifted() == drifted[i]);
  const planning::BenchPrediction& slow = plan.backtest[1];
  REQUIRE(slow.round);
  CHECK(slow.round->measured == Approx(slower.round(2, 7.2, 1100)));
  CHECK(slow.round->predicted == Approx(server.round(2, 7.2, 1100)).epsilon(0.03));
  REQUIRE(slow.tokens);
  CHECK(slow.tokens->measured == Approx(server.tokens(2)).epsilon(1e-6));
  CHECK(*slow.predicted == Approx(slow.round->predicted / slow.tokens->predicted));
  CHECK_FALSE(plan.backtest[4].tokens);
  planning::BenchPrediction far;
  far.predicted = 1.4;
  far.measured = 3;
  far.ci95 = estimate::Interval{1, 2};
  CHECK(far.drifted() == "time");
}

TEST_CASE("prompts of other requests are priced where lengths are known, by what is usual if all are of one", "[long]") {
  const Server server;
  BenchQuestion question;
  for (const double concurrency : {1.0, 8.0, 32.0})
    for (const std::int64_t gamma : {0, 3}) question.runs.push_back(server.run(gamma, concurrency));
  question.contexts = {1100, 4000};
  const BenchPlan said = planning::plan_bench(question);
  for (ServingCounts& run : question.runs) run.bench->total_output_tokens.reset();
  const BenchPlan unsaid = planning::plan_bench(question);
  const auto longer = [](const BenchPlan& plan) {
    return plan.cost->round({.gamma = 0, .batch = 28.8, .context = 4000}).total() /
           plan.cost->round({.gamma = 0, .batch = 28.8, .context = 1100}).total();
  };
  CHECK(longer(unsaid) == Approx(1));
  CHECK(longer(said) > 1.1);
  question.prompts_apart = true;
  CHECK(planning::plan_bench(question).cost->round({.gamma = 0, .batch = 28.8}).total() > 0);
}

namespace {

/// Counts of a benchmark of a server that keeps so many requests in flight, iteration by iteration: where one ends
/// another begins, whose prompt is read whole in the next iteration, while the others wait for their tokens.
ServingCounts closed_loop(const Server& server, std::int64_t gamma, int concurrency, double input,
                          double prompt_token) {
  constexpr int requests = 1500, mean_output = 100;
  std::mt19937_64 random(static_cast<std::uint64_t>(gamma) + 10);
  struct Place {
    int left = 0, output = 0;
    double first_token = -1;
  };
  const auto next_request = [&] {
    const int output = std::uniform_int_distribution<int>(mean_output / 2, 3 * mean_output / 2)(random);
    return Place{output - 1, output};
  };
  std::vector<Place> places(static_cast<std::size_t>(concurrency));
  for (Place& place : places) place = next_request();
  double now = 0, tpot = 0, outputs = 0, rounds = 0, accepted = 0;
  for (int done = 0; done < requests;) {
    const auto reads = [](const Place& place) { return place.first_token < 0; };
    const auto prompts = static_cast<double>(std::count_if(places.begin(), places.end(), reads));
    const double batch = concurrency - prompts;
    if (batch > 0) now += server.round(static_cast<double>(gamma), batch, input + mean_output / 2.0);
    now += prompt_token * input * prompts;
    for (Place& place : places) {
      if (reads(place)) {
        place.first_token = now;
        continue;
      }
      int tokens = 1;
      while (tokens <= gamma && std::uniform_real_distribution<double>(0, 1)(random) < server.alpha) ++tokens;
      rounds += 1;
      accepted += tokens - 1;
      place.left -= tokens;
      if (place.left > 0) continue;
      tpot += (now - place.first_token) / (place.output - 1) / requests;
      outputs += place.output;
      ++done;
      place = next_request();
    }
  }
  ServingCounts counts = server.run(gamma, concurrency, input);
  counts.file = "p" + std::to_string(static_cast<int>(input)) + "_" + counts.file.string();
  traces::BenchRun& bench = *counts.bench;
  bench.completed = bench.num_prompts = requests;
  bench.total_input_tokens = requests * input;
  bench.total_output_tokens = outputs;
  bench.mean_tpot_ms = 1e3 * tpot;
  bench.output_throughput = outputs / now;
  bench.duration_s = now;
  if (gamma == 0) return counts;
  counts.rounds = rounds;
  counts.drafted = rounds * static_cast<double>(gamma);
  counts.accepted = accepted;
  counts.accepted_at.clear();
  return counts;
}

}  // namespace

TEST_CASE(
    "where prompts of two lengths ran, what reading them delays is predicted for a third, plain and with drafts", "[long]") {
  const Server server;
  constexpr double prompt_token = 2e-5;
  BenchQuestion question;
  for (const double input : {500.0, 2000.0}) {
    for (const int concurrency : {4, 16, 48}) {
      for (const std::int64_t gamma : {0, 4}) {
        question.runs.push_back(closed_loop(server, gamma, concurrency, input, prompt_token));
      }
    }
  }
  for (const int concurrency : {8, 32}) {
    for (const std::int64_t gamma : {0, 2, 4}) {
      question.holdout.push_back(closed_loop(server, gamma, concurrency, 4000, prompt_token));
    }
  }
  const BenchPlan plan = planning::plan_bench(question);
  for (const planning::BenchPrediction& row : plan.backtest) {
    INFO(row.file << ": " << 1e3 * row.predicted.value() << " for " << 1e3 * row.measured << " ms a token");
    CHECK(std::abs(row.relative_error.value()) < 0.04);
  }
}

TEST_CASE("where prompts are served apart rounds are priced without those of other requests", "[long]") {
  const Server server;
  constexpr double prompt_token = 2e-5, input = 1000, context = input + 50;
  BenchQuestion question;
  for (const int concurrency : {1, 16, 48}) {
    for (const std::int64_t gamma : {0, 4}) {
      question.runs.push_back(closed_loop(server, gamma, concurrency, input, prompt_token));
    }
  }
  const auto relative_errors = [&](const BenchPlan& plan) {
    std::vector<double> errors;
    for (const double batch : {1, 16, 40}) {
      for (const std::int64_t gamma : {0, 4}) {
        const double priced = plan.cost->round({.gamma = gamma, .batch = batch, .context = context}).total();
        errors.push_back(priced / server.round(static_cast<double>(gamma), batch, context) - 1);
      }
    }
    return errors;
  };
  question.prompts_apart = true;
  const BenchPlan untold = planning::plan_bench(question);
  CHECK(std::abs(relative_errors(untold).back()) < 0.1);

  question.prompt_tokens_per_second = 1 / prompt_token;
  const BenchPlan stated = planning::plan_bench(question);
  CHECK(has_note(stated, "prompts_taken_out"));
  for (const double error : relative_errors(stated)) CHECK(std::abs(error) < 0.04);

  question.prompt_tokens_per_second = 100;
  CHECK_THROWS_WITH(planning::plan_bench(question),
                    Catch::Contains("reading the prompts of other requests at 100 tokens/s"));

  question.prompt_tokens_per_second.reset();
  for (const int concurrency : {1, 16, 48}) {
    for (const std::int64_t gamma : {0, 4}) {
      question.runs.push_back(closed_loop(server, gamma, concurrency, 3 * input, prompt_token));
    }
  }
  for (const double error : relative_errors(planning::plan_bench(question))) CHECK(std::abs(error) < 0.06);
}

TEST_CASE("plain requests that end and begin together may take longer out of step") {
  // Runs of two servers: where 16 requests are in flight, plain tokens hold no prompts and take 0.8 of their time, so
  // that 0.72 of the clients decode beside 0.9 with drafts.
  const Server server;
  BenchQuestion question;
  for (const double concurrency : {1.0, 4.0, 16.0})
    for (const std::int64_t gamma : {0, 2, 4}) question.runs.push_back(server.run(gamma, concurrency));
  const BenchPlan out_of_step = planning::plan_bench(question);
  CHECK_FALSE(has_note(out_of_step, "plain_in_step"));
  *question.runs[6].bench->mean_tpot_ms *= 0.8;
  const BenchPlan in_step = planning::plan_bench(question);
  CHECK(has_note(in_step, "plain_in_step"));
  const auto& points = in_step.plan.drafts[0].points;
  const planning::PointPlan& last = points.back();
  const double batch = 0.72 * 16;
  REQUIRE(last.batch == Approx(batch));
  for (const std::int64_t gamma : {2, 4}) {
    const estimate::Interval& ci95 = last.rows[static_cast<std::size_t>(gamma)].speedup_ci95;
    INFO(gamma << ": " << ci95.lo << " to " << ci95.hi);
    CHECK(ci95.lo < 0.85 * server.speedup(gamma, batch, 1100));
    CHECK(server.speedup(gamma, batch, 1100) < ci95.hi);
  }
  // The effect of runs in step on plain tokens at one batch is not claimed for others.
  const planning::DeploymentRow& first = points.front().rows[2];
  CHECK(first.speedup_ci95.hi < 1.15 * first.speedup);
}

/// A tree of the server, and the tokens of its rounds.
struct TreeOfServer {
  cost::DraftTree tree;
  double tokens = 1;

  double round(const Server& server, double batch, double context) const {
    const auto depth = static_cast<double>(tree.depth), width = static_cast<double>(tree.top_k);
    return server.fixed + server.per_draft * depth + server.per_drafted * (1 + (depth - 1) * width) * batch +
           server.per_verified * static_cast<double>(tree.verified) * batch + server.per_context * batch * context;
  }
  double speedup(const Server& server, double batch, double context) const {
    return tokens * server.round(0, batch, context) / round(server, batch, context);
  }
  /// Its run, as SGLang describes it: the drafts are the tree's, root included.
  ServingCounts run(const Server& server, double concurrency) const {
    ServingCounts counts = server.run(tree.depth, concurrency);
    counts.file = fmt::format("t{}_c{:g}.json", tree.verified, concurrency);
    counts.shape = traces::DraftShape::tree;
    counts.top_k = tree.top_k;
    counts.verified_per_round = tree.verified;
    counts.drafted = *counts.rounds * static_cast<double>(tree.verified);
    counts.accepted = *counts.rounds * (tokens - 1);
    counts.accepted_at.clear();
    const double batch = 0.9 * concurrency, tpot = round(server, batch, 1100) / tokens;
    counts.bench->mean_tpot_ms = 1e3 * tpot;
    counts.bench->output_throughput = batch / tpot;
    return counts;
  }
};

const TreeOfServer small_tree = {{4, 2, 8}, 3.3}, large_tree = {{6, 8, 48}, 4.8};

/// Runs whose prompts are of one length.
BenchQuestion short_sweep(const Server& server, const std::vector<std::int64_t>& gammas,
                          const std::vector<double>& concurrencies) {
  BenchQuestion question;
  for (const std::int64_t gamma : gammas)
    for (const double concurrency : concurrencies) question.runs.push_back(server.run(gamma, concurrency));
  return question;
}

BenchQuestion with_trees(const Server& server) {
  BenchQuestion question = short_sweep(server, {0, 4}, {1, 8, 32});
  for (const double concurrency : {1, 8, 32}) {
    question.runs.push_back(small_tree.run(server, concurrency));
    question.runs.push_back(large_tree.run(server, concurrency));
  }
  return question;
}

TEST_CASE("a tree is a draft of its own, priced by what it verifies and with the tokens that it made") {
  const Server server;
  const BenchPlan plan = planning::plan_bench(with_trees(server));
  REQUIRE(plan.plan.drafts.size() == 3);
  CHECK(plan.plan.drafts[0].name == "chains");
  CHECK_FALSE(plan.plan.drafts[0].tree.has_value());
  CHECK(plan.plan.drafts[1].name == "tree 4-2-8");
  CHECK(plan.plan.drafts[2].tree == large_tree.tree);
  REQUIRE(plan.costs.size() == 3);
  for (const auto& [draft, its] : {std::pair(1, small_tree), std::pair(2, large_tree)}) {
    const auto& points = plan.plan.drafts[static_cast<std::size_t>(draft)].points;
    REQUIRE(points.size() == 3);
    for (const planning::PointPlan& point : points) {
      INFO(draft << " at " << point.batch);
      REQUIRE(point.rows.size() == 2);
      const planning::DeploymentRow& row = point.rows[1];
      const double truth = its.speedup(server, point.batch, point.context);
      CHECK(row.gamma == its.tree.depth);
      CHECK(row.tokens_per_step == Approx(its.tokens));
      CHECK(row.speedup == Approx(truth).epsilon(0.03));
      CHECK((row.speedup_ci95.lo < truth && truth < row.speedup_ci95.hi));
    }
  }
  // Which is the fastest hangs on the batch; every run says it.
  for (std::size_t i = 0; i < plan.plan.drafts[0].points.size(); ++i) {
    const planning::PointPlan& point = plan.plan.drafts[0].points[i];
    const double of_chain = server.speedup(point.optimal().gamma, point.batch, point.context);
    const double of_small = small_tree.speedup(server, point.batch, point.context);
    const double of_large = large_tree.speedup(server, point.batch, point.context);
    const std::size_t fastest = of_large > std::max(of_small, of_chain) ? 2 : of_small > of_chain ? 1 : 0;
    CHECK(plan.plan.best_draft[i] == fastest);
  }
  CHECK(plan.plan.best_draft.front() == 2);
  CHECK(plan.plan.best_draft.back() != 2);
}

TEST_CASE("what one tree accepts says nothing of another, nor of chains", "[long]") {
  const Server server;
  const BenchQuestion question = with_trees(server);
  const BenchPlan before = planning::plan_bench(question);
  BenchQuestion changed = question;
  for (ServingCounts& run : changed.runs)
    if (run.verified_per_round == large_tree.tree.verified) run.accepted = *run.rounds * 2;
  const BenchPlan after = planning::plan_bench(changed);
  const auto tokens = [](const BenchPlan& plan, std::size_t draft) {
    std::vector<double> all;
    for (const auto& row : plan.plan.drafts[draft].points.front().rows) all.push_back(row.tokens_per_step);
    return all;
  };
  CHECK(tokens(after, 0) == tokens(before, 0));
  CHECK(tokens(after, 1) == tokens(before, 1));
  CHECK(tokens(after, 2)[1] == Approx(3));
  CHECK(tokens(before, 2)[1] == Approx(4.8));
}

TEST_CASE("where a tree did not run, its price is not measured") {
  const Server server;
  BenchQuestion question = short_sweep(server, {0, 4}, {1, 8, 32});
  for (const double concurrency : {1, 8}) question.runs.push_back(small_tree.run(server, concurrency));
  const planning::PointPlan point = planning::plan_bench(question).plan.drafts[1].points.back();
  CHECK(point.basis == planning::PriceBasis::extrapolated);
  if (point.next) CHECK(point.next->tree == small_tree.tree);
}

TEST_CASE("runs of trees alone are planned, and held-out runs of theirs are predicted") {
  const Server server;
  BenchQuestion question = short_sweep(server, {0}, {1, 8, 32});
  for (const double concurrency : {1, 32}) question.runs.push_back(small_tree.run(server, concurrency));
  question.holdout = {small_tree.run(server, 8), large_tree.run(server, 8), server.run(4, 8)};
  const BenchPlan plan = planning::plan_bench(question);
  REQUIRE(plan.plan.drafts.size() == 1);
  CHECK(plan.acceptance == nullptr);
  CHECK(plan.plan.recommended_draft == 0u);
  REQUIRE(plan.backtest.size() == 3);
  CHECK(*plan.backtest[0].predicted == Approx(plan.backtest[0].measured).epsilon(0.1));
  CHECK(plan.backtest[0].drifted() == "");
  for (const std::size_t other : {1, 2}) {
    CHECK_FALSE(plan.backtest[other].predicted.has_value());
    CHECK(plan.backtest[other].reason == "no run of its tree, or of a chain, is among those that predict it");
  }
}

TEST_CASE("trees are left out of a plan with another acceptance, with what they took") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 4}, {1, 8});
  question.acceptance =
      std::make_shared<fakes::Curve>([](std::int64_t gamma) { return fakes::constant_rate(0.6, gamma); });
  ServingCounts tree = server.run(4, 8, 1000, 0.9);
  tree.file = "tree.json";
  tree.shape = traces::DraftShape::tree;
  question.runs.insert(question.runs.begin(), tree);
  const BenchPlan beside = planning::plan_bench(question);
  const auto note = std::find_if(beside.notes.begin(), beside.notes.end(),
                                 [](const auto& one) { return one.code == "tree_left_out"; });
  REQUIRE(note != beside.notes.end());
  CHECK_THAT(note->message, Catch::Contains("tree.json:1 drafted trees"));
  // 7.2 sequences decode at 8 in flight.
  const double speedup = server.speedup(4, 7.2, 1100) / 0.9;
  CHECK_THAT(note->message, Catch::Contains(fmt::format("{:.2f}x the speed of g0_c8.json:1", speedup)));
  CHECK(beside.plan.drafts.size() == 1);
  for (ServingCounts& run : question.runs)
    if (run.gamma) run.shape = traces::DraftShape::tree;
  CHECK_THROWS_WITH(planning::plan_bench(question),
                    Catch::Contains("is a tree (topk above 1)") && Catch::Contains("only a run of it tells"));
}

TEST_CASE("a tree's run must say its shape") {
  const Server server;
  const auto refusal_without = [&](auto member) {
    BenchQuestion question = sweep(server, {0}, {1, 8});
    question.runs.push_back(small_tree.run(server, 8));
    (question.runs.back().*member).reset();
    try {
      static_cast<void>(planning::plan_bench(question));
    } catch (const traces::FileError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK_THAT(refusal_without(&ServingCounts::top_k), Catch::Contains("topk is missing, but must be given"));
  CHECK_THAT(refusal_without(&ServingCounts::verified_per_round), Catch::Contains("verified_tokens"));
  BenchQuestion question = sweep(server, {0}, {1, 8});
  question.runs.push_back(small_tree.run(server, 8));
  question.runs.back().verified_per_round = 4;
  CHECK_THROWS_WITH(planning::plan_bench(question), Catch::Contains("is 4, but must be above 4"));
  // Four passes of topk 2 propose 2 + 3 * 4 tokens.
  question.runs.back().top_k = 2;
  question.runs.back().verified_per_round = 15;
  CHECK_NOTHROW(planning::plan_bench(question));
  question.runs.back().verified_per_round = 16;
  CHECK_THROWS_WITH(planning::plan_bench(question), Catch::Contains("is 16, but must be at most 15"));
  question.runs.back().top_k = 4'000'000'000;
  CHECK_THROWS_WITH(planning::plan_bench(question), Catch::Contains("topk is 4000000000, but must be at most 1000000"));
}

TEST_CASE("a run without the length of its drafts needs it stated", "[long]") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 4}, {1, 8, 32});
  for (ServingCounts& run : question.runs) {
    if (!run.gamma) continue;
    run.gamma.reset();
    run.drafted.reset();
    run.accepted_at.clear();
  }
  CHECK_THROWS_WITH(planning::plan_bench(question),
                    "g4_c1.json:1: drafted tokens per round is unknown, but must be counted by the run, or gamma "
                    "stated (--at)");
  question.gamma = 4;
  CHECK(planning::plan_bench(question).runs[1].gamma == 4);

  question = sweep(server, {0, 4}, {1, 8, 32});
  question.runs[1].gamma.reset();
  question.runs[1].drafted = 3.4e8;
  CHECK_THROWS_AS(planning::plan_bench(question), traces::FileError);
  question.runs[1].bench.reset();
  CHECK_THROWS_AS(planning::plan_bench(question), traces::FileError);
}

TEST_CASE("windows of logs price rounds at batches that no run had") {
  Server server;
  server.per_context = 0;  // which logs do not say
  BenchQuestion question;
  question.runs = {server.run(0, 8), server.run(4, 8)};
  const auto with_windows = [&](std::int64_t gamma) {
    for (const double batch : {8.0, 32.0, 128.0}) {
      for (int i = 0; i < 3; ++i) {
        ServingCounts& window = question.windows.emplace_back(server.run(gamma, batch));
        window.file = gamma > 0 ? "spec.log" : "plain.log";
        window.unit = traces::CountUnit::window;
        window.bench.reset();
        const double seconds = server.round(static_cast<double>(gamma), batch, 0);
        window.window = traces::EngineWindow{batch, 0.0, 0.0, batch * server.tokens(gamma) / seconds};
      }
    }
  };
  with_windows(4);
  with_windows(0);
  // Windows that count read no prompts.
  question.prompts_apart = true;
  const BenchPlan plan = planning::plan_bench(question);
  CHECK(has_note(plan, "rounds_of_logs"));
  CHECK_FALSE(has_note(plan, "one_batch"));
  CHECK(plan.runs.size() == 2);
  CHECK(plan.leave_one_out.size() == 2);
  CHECK(plan.cost->round({2, 64, 1100}).total() == Approx(server.round(2, 64, 0)).epsilon(0.05));
  CHECK(plan.cost->round({0, 128, 1100}).total() == Approx(server.round(0, 128, 0)).epsilon(0.03));
}

TEST_CASE("a plan from runs takes the acceptance, the points and the kind of drafts that it is told", "[long]") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 2, 5}, {1, 8, 32});
  question.acceptance =
      std::make_shared<fakes::Curve>([](std::int64_t gamma) { return fakes::constant_rate(0.9, gamma); });
  question.batches = {4, 16};
  question.contexts = {1100, 3000};
  question.schedule_up_to = 64;
  const BenchPlan plan = planning::plan_bench(question);
  const auto& points = plan.plan.drafts[0].points;
  REQUIRE(points.size() == 4);
  CHECK(points[3].batch == 16);
  CHECK(points[3].context == 3000);
  CHECK(points[3].rows[4].tokens_per_step == Approx(fakes::constant_rate(0.9, 4).value));
  CHECK(points[3].rows[4].time.total() == Approx(server.round(4, 16, 3000)).epsilon(0.03));
  CHECK(plan.plan.drafts[0].schedule.back().batch_high == 64);
  // The runs are predicted by what they accepted.
  CHECK(*plan.leave_one_out_error < 0.03);

  // One pass drafts all tokens: the round costs the same for the drafts of one pass or five.
  question = BenchQuestion{};
  question.kind = cost::DraftKind::parallel;
  for (const double concurrency : {1.0, 8.0, 32.0}) {
    for (const std::int64_t gamma : {0, 2, 5}) {
      const double passes = gamma > 0 ? 1 : 0;
      const double batch = 0.9 * concurrency, all = static_cast<double>(gamma);
      const double seconds = server.fixed + server.per_draft * passes + server.per_verified * (all + 1) * batch;
      question.runs.push_back(server.run(gamma, concurrency, 1000, seconds / server.round(all, batch, 1100)));
    }
  }
  const BenchPlan parallel = planning::plan_bench(question);
  CHECK(parallel.cost->round({9, 9, 1100}).total() ==
        Approx(server.fixed + server.per_draft + server.per_verified * 10 * 9).epsilon(0.08));
}

TEST_CASE("speculative runs of several drafts are refused unless one is chosen", "[long]") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 4}, {1, 8, 32});
  question.runs[1].labels.push_back({"draft", "small"});
  CHECK(planning::plan_bench(question).runs.size() == 12);
  question.runs[3].labels.push_back({"draft", "head"});
  CHECK_THROWS_WITH(planning::plan_bench(question),
                    "g4_c8.json:1: draft is head, but must be small as in g4_c1.json, or one of them chosen by --draft-model");
  question.draft = "other";
  CHECK_THROWS_AS(planning::plan_bench(question), traces::FileError);
  question.draft = "head";
  CHECK(planning::plan_bench(question).runs.size() == 11);

  question = sweep(server, {0, 4}, {1, 8});
  question.runs.push_back(question.runs[3]);
  question.runs[3].labels.push_back({"label", "small"});
  question.runs.back().labels.push_back({"label", "head"});
  CHECK(has_note(planning::plan_bench(question), "labels_differ"));
}

TEST_CASE("repeats that contradict each other and failed requests are reported", "[long]") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 4}, {1, 8});
  question.runs.push_back(server.run(0, 8, 1000, 1.1));
  CHECK_FALSE(has_note(planning::plan_bench(question), "runs_disagree"));
  question.runs.push_back(server.run(0, 8, 1000, 1.5));
  CHECK(has_note(planning::plan_bench(question), "runs_disagree"));
  question.runs.back().bench->completed = 350;
  CHECK(has_note(planning::plan_bench(question), "requests_failed"));
}

TEST_CASE("a time per token in another unit is asked about, and loads that differ by much are not", "[long]") {
  const Server server;
  CHECK_FALSE(has_note(planning::plan_bench(sweep(server, {0, 4}, {1, 64, 512})), "times_far_apart"));
  for (const double factor : {1e-3, 1e3}) {
    BenchQuestion question = sweep(server, {0, 4}, {1, 8, 32});
    traces::BenchRun& run = *question.runs[2].bench;
    run.mean_tpot_ms = factor * *run.mean_tpot_ms;
    run.output_throughput = *run.output_throughput / factor;
    const BenchPlan plan = planning::plan_bench(question);
    const auto found = std::find_if(plan.notes.begin(), plan.notes.end(),
                                    [](const auto& note) { return note.code == "times_far_apart"; });
    REQUIRE(found != plan.notes.end());
    CHECK(found->message.find("g0_c8.json") != std::string::npos);
    CHECK(found->message.find(factor < 1 ? "1 of 12 runs" : "11 of 12 runs") == 0);
  }
}

TEST_CASE("what is deployed is checked at the batches that were run", "[long]") {
  const Server server;
  BenchQuestion question = sweep(server, {0, 2, 5}, {1, 8, 32, 128});
  question.deployed = {{1, 512, 5}};
  question.max_regret = 0.01;
  CHECK(planning::plan_bench(question).plan.exceeds_max_regret);
  question.max_regret = 0.99;
  CHECK_FALSE(planning::plan_bench(question).plan.exceeds_max_regret);
}

TEST_CASE("the luck of a run's requests is in the interval of its speedup, however exactly the run was timed") {
  const Server server;
  const auto half_width = [&](double requests) {
    BenchQuestion question;
    for (const double concurrency : {4.0, 16.0, 64.0}) {
      for (const std::int64_t gamma : {0, 3}) {
        ServingCounts run = server.run(gamma, concurrency);
        run.bench->num_prompts = run.bench->completed = requests;
        if (gamma > 0) {
          const double fewer = requests * 80 / *run.rounds;
          for (std::optional<double>* count : {&run.rounds, &run.drafted, &run.accepted}) **count *= fewer;
          for (double& accepted : run.accepted_at) accepted *= fewer;
        }
        question.runs.push_back(std::move(run));
      }
    }
    const planning::BenchPlan plan = planning::plan_bench(question);
    const planning::DeploymentRow& row = plan.plan.drafts[0].points[0].rows[3];
    return std::log(row.speedup_ci95.hi / row.speedup_ci95.lo) / 2;
  };
  CHECK(half_width(20) > 0.05);
  CHECK(half_width(20) > 1.05 * half_width(2000));
}

TEST_CASE("acceptance of runs is as counted at their gammas, and elsewhere that of a population that gives all of them") {
  const Server server;
  ServingCounts two = server.run(2, 8), six = server.run(6, 8);
  const std::vector<planning::CountedRun> runs = {{&two, 2}, {&six, 6}};
  const estimate::PopulationCurve acceptance = planning::bench_acceptance(runs);
  CHECK(acceptance.tokens_per_step(0).value == 1);
  for (std::int64_t gamma = 1; gamma <= 6; ++gamma) {
    const estimate::TokensPerStep tokens = acceptance.tokens_per_step(gamma);
    const bool ran = gamma == 2 || gamma == 6;
    CHECK(tokens.value == Approx(server.tokens(gamma)).epsilon(ran ? 1e-4 : 0.03));
    CHECK_FALSE(tokens.extrapolated);
    CHECK((tokens.ci95.lo <= server.tokens(gamma) && server.tokens(gamma) <= tokens.ci95.hi));
    CHECK((acceptance.evidence().measured.count(gamma) == 1) == ran);
  }
  CHECK(acceptance.tokens_per_step(7).extrapolated);
  // So are longer drafts that counted fewer tokens than shorter ones.
  Server worse = server;
  worse.alpha = 0.2;
  six = worse.run(6, 8);
  const estimate::PopulationCurve strange = planning::bench_acceptance(runs);
  CHECK(strange.tokens_per_step(2).value == Approx(server.tokens(2)).epsilon(1e-4));
  CHECK(strange.tokens_per_step(6).value == Approx(worse.tokens(6)).epsilon(1e-4));
  CHECK_THROWS_AS(planning::bench_acceptance({}), std::invalid_argument);
}
