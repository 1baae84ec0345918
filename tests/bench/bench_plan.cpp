// How fast is a plan over batch and context? 1,000 points, gamma to 32, with a schedule; docs/benchmarks.md states the
// figures.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "analysis/cost/constant_cost.hpp"
#include "analysis/cost/measured_cost.hpp"
#include "analysis/planning/deployment_plan.hpp"
#include "analysis/planning/profile_curve.hpp"
#include "tests/bench/timing.hpp"

using namespace specdec;

namespace {

/// By the clock on the wall and by processor time, which other processes disturb less.
void measure(const std::string& what, const planning::DeploymentQuestion& question, std::int64_t rounds) {
  double checksum = 0;
  const auto plan = [&] {
    const planning::DeploymentPlan answer = planning::plan_deployment(question);
    for (const auto& point : answer.drafts[0].points) checksum += point.optimal().speedup;
  };
  const bench::Seconds seconds = bench::median_seconds(rounds, plan);
  fmt::print(
      "{:<66} {:7.2f} ms, processor {:7.2f} ms (mean speedup {:.4f})\n", what, 1e3 * seconds.wall,
      1e3 * seconds.processor,
      checksum / static_cast<double>(rounds) / static_cast<double>(question.batches.size() * question.contexts.size()));
}

/// Passes of a model as a memory-bound and then compute-bound machine would time them.
std::vector<traces::TimedPass> passes(double seconds, bool with_error) {
  std::vector<traces::TimedPass> all;
  for (const double context : {0.0, 4096.0, 16384.0}) {
    for (double tokens = 1; tokens <= 8192; tokens *= 2) {
      traces::TimedPass pass;
      pass.batch = tokens;
      pass.context = context;
      pass.seconds = seconds * std::max(1.0, tokens / 512) + 1e-8 * tokens * context;
      if (with_error) {
        pass.stddev_seconds = 0.02 * pass.seconds;
        pass.repetitions = 5;
      }
      all.push_back(pass);
    }
  }
  return all;
}

std::shared_ptr<const cost::RoundCost> measured(bool with_error) {
  return std::make_shared<cost::MeasuredCost>(passes(0.015, with_error), passes(0.001, with_error),
                                              cost::MeasuredOptions{});
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t rounds = 15;
  std::int64_t max_gamma = 32;
  CLI::App app("Speed of a plan over batch and context");
  app.add_option("--rounds", rounds)->capture_default_str();
  app.add_option("--max-gamma", max_gamma)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  planning::DeploymentQuestion question;
  question.max_gamma = max_gamma;
  question.batches.clear();
  question.contexts.clear();
  for (int batch = 1; batch <= 100; ++batch) question.batches.push_back(2 * batch);
  for (int context = 0; context < 10; ++context) question.contexts.push_back(1024 * context);
  const auto acceptance = std::make_shared<planning::ProfileCurve>(
      core::AcceptanceRate(0.75), core::AcceptanceRate(0.7), core::AcceptanceRate(0.8));
  const cost::ConstantOptions options = {.step = {.c = 0.05, .overhead = 0.02}};
  const auto ask = [&](const std::string& what, std::shared_ptr<const cost::RoundCost> cost) {
    question.drafts = {{"draft", acceptance, std::move(cost)}};
    question.schedule_up_to = std::nullopt;
    measure(what + ", 1000 points", question, rounds);
    question.schedule_up_to = 200;
    measure(what + ", 1000 points and a schedule to 200", question, rounds);
  };
  ask("constant cost", std::make_shared<cost::ConstantCost>(options));
  ask("measured cost", measured(false));
  ask("measured cost with 200 replicates", measured(true));
  return 0;
}
