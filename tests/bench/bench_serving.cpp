// How many output tokens a second does the serving simulation serve, on one core? docs/benchmarks.md states the figures.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/cost/hardware_spec.hpp"
#include "analysis/cost/measured_cost.hpp"
#include "analysis/cost/model_spec.hpp"
#include "analysis/cost/roofline_cost.hpp"
#include "sim/random.hpp"
#include "sim/serving/serving_simulation.hpp"
#include "tests/bench/timing.hpp"

using namespace specdec;

namespace {

class LinearIterations final : public cost::IterationCost {
 public:
  double price(std::size_t, const cost::Iteration& iteration) const override {
    return 0.01 + 1e-5 * (iteration.sequences * static_cast<double>(iteration.gamma + 1) + iteration.prompt_tokens) +
           1e-9 * (iteration.context_tokens + iteration.prompt_pairs);
  }
};

std::shared_ptr<const cost::IterationCost> measured() {
  std::vector<traces::TimedPass> passes;
  for (const double context : {0.0, 4096.0, 16384.0}) {
    for (double tokens = 1; tokens <= 16384; tokens *= 2) {
      traces::TimedPass pass;
      pass.batch = tokens;
      pass.context = context;
      pass.seconds = 0.015 * std::max(1.0, tokens / 512) + 1e-8 * tokens * context;
      passes.push_back(pass);
    }
  }
  std::vector<traces::TimedPass> draft = passes;
  for (traces::TimedPass& pass : draft) pass.seconds /= 20;
  return cost::iterations_of(std::make_shared<cost::MeasuredCost>(passes, draft, cost::MeasuredOptions{}), {});
}

/// The model drafts for itself: what matters here is how long the price takes.
std::shared_ptr<const cost::IterationCost> roofline() {
  cost::RooflineOptions options;
  options.hardware = *cost::hardware_preset("h100-sxm");
  options.target.model = *cost::model_preset("llama-3.1-8b");
  options.draft = options.target;
  return std::make_shared<cost::RooflineCost>(options);
}

/// Requests enough to keep `batch` of them running, one replication's worth of tokens.
sim::ServingQuestion question_of(std::int64_t batch, std::int64_t gamma, std::int64_t requests) {
  sim::ServingQuestion question;
  for (std::int64_t i = 0; i < requests; ++i) {
    const auto length = [&](std::int64_t slot, double mean) {
      const double u = sim::RandomStream(1, 0).uniform(i, slot, sim::Purpose::test);
      return 1 + static_cast<std::int64_t>(-std::log1p(-u) * mean);
    };
    question.requests.push_back({0, length(0, 800), length(1, 250)});
  }
  question.engine.schedule = {{1, gamma}};
  question.engine.max_num_seqs = batch;
  question.engine.cache_blocks = 1 << 20;
  question.acceptance = {{{0.8, 0.75, 0.7}}, {{0.6}}};
  return question;
}

void measure(const std::string& what, const sim::ServingQuestion& question, std::int64_t rounds) {
  double tokens = 0;
  std::int64_t iterations = 0;
  const auto serve = [&] {
    const sim::ServingResult result = sim::simulate_serving(question);
    tokens = 0;
    for (const sim::ServedRequest& request : result.requests) tokens += static_cast<double>(request.output_tokens);
    iterations = result.iterations;
  };
  const bench::Seconds seconds = bench::median_seconds(rounds, serve);
  fmt::print("{:<44} {:8.1f} million tokens a second, {:8.1f} per core-second, {} iterations\n", what,
             1e-6 * tokens / seconds.wall, 1e-6 * tokens / seconds.processor, iterations);
}

}  // namespace

int main(int argc, char** argv) {
  std::int64_t rounds = 5;
  std::int64_t requests = 20000;
  CLI::App app("Speed of the serving simulation");
  app.add_option("--rounds", rounds)->capture_default_str();
  app.add_option("--requests", requests)->capture_default_str();
  CLI11_PARSE(app, argc, argv);

  const std::vector<std::pair<std::string, std::shared_ptr<const cost::IterationCost>>> costs = {
      {"linear", std::make_shared<LinearIterations>()}, {"measured", measured()}, {"roofline", roofline()}};
  for (const auto& [name, cost] : costs) {
    for (const std::int64_t gamma : {0, 4}) {
      for (const std::int64_t batch : {8, 64, 256}) {
        sim::ServingQuestion question = question_of(batch, gamma, requests);
        question.cost = cost;
        measure(fmt::format("{} cost, gamma {}, batch {}", name, gamma, batch), question, rounds);
      }
    }
  }
  return 0;
}
