#include <fmt/format.h>
#include <algorithm>
#include <memory>
#include <utility>

#include "cli/figures/deployment_defaults.hpp"
#include "cli/figures/figure_kind.hpp"
#include "cli/files.hpp"
#include "cli/given_options.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/planned.hpp"
#include "cli/usage_error.hpp"
#include "render/figures/batch_chart.hpp"
#include "render/plan.hpp"

namespace specdec::cli {

using namespace render;
namespace {

struct BatchFigureOptions {
  PlanOptions plan;
  std::string gammas = "1,3,5";
};

/// Steps of about a factor of the square root of 2, to where the usual engine stops.
const std::vector<double> usual_figure_batches = {1,  1.5, 2,  3,  4,   6,   8,   12,  16, 24,
                                                  32, 48,  64, 96, 128, 192, 256, 384, 512};
constexpr double usual_figure_context = 1000;

Chart from_options(BatchFigureOptions o) {
  std::vector<Assumption> assumptions = default_deployment(o.plan);
  require_consistent(o.plan);
  SpeedupOverBatchInputs inputs;
  inputs.gammas = rising_integers("--gamma", o.gammas, 1, planner::largest_max_gamma);
  const bool by_runs = !o.plan.bench.empty();
  planner::PlanQuestion& question = o.plan.question;
  if (!by_runs && question.batch.empty()) question.batch = usual_figure_batches;
  if (!by_runs && question.context.empty()) {
    question.context = {usual_figure_context};
    assumptions.push_back({"context", 1000, "default"});
  }
  question.max_gamma = std::max<std::int64_t>(inputs.gammas.back(), 8);
  const planner::Plan d = planned(o.plan);
  inputs.points = d.points();
  if (!by_runs) inputs.context = d.points().front().context;
  inputs.in_seconds = d.in_seconds;
  inputs.min_gain = d.min_gain;
  if (d.shown_plan().crossover_batch) inputs.crossover = static_cast<double>(*d.shown_plan().crossover_batch);
  if (d.bench) inputs.measured = &*d.bench;
  inputs.who = by_runs ? d.target_model : deployment_text(o.plan);
  Chart chart = speedup_over_batch_chart(inputs);
  std::vector<Assumption> of_costs;
  for (const planner::Draft& draft : d.drafts) planner::append_new(of_costs, draft.cost.assumptions);
  chart.assumptions = with_defaults(with_defaults(std::move(assumptions), of_costs), chart.assumptions);
  chart.warnings.insert(chart.warnings.end(), d.warnings.begin(), d.warnings.end());
  chart.presets = d.presets;
  chart.files = facts_of(d.files);
  return chart;
}

std::function<Chart()> set_up_batch_figure(Options& options) {
  const auto chosen = std::make_shared<BatchFigureOptions>();
  PlanOptions& o = chosen->plan;
  declare_one_acceptance(options, o, "A|LOW:HIGH", "acceptance rate, or an interval of it");
  declare_deployment(options, o);
  options.group("Benchmark runs (instead of --hardware)");
  options.texts("--bench", o.bench, "FILE", "results with and without speculation, as in specdec plan");
  options.group("What is shown");
  options.text("-k,--gamma,--num-speculative-tokens", chosen->gammas, "G1,G2,...",
               "lines beside that of the best gamma");
  declare_batch(options, o.question.batch, "rising [1 to 512, or those of the runs]");
  declare_context(options, o.question.context, "tokens in the cache per sequence [1000, or those of the runs]", "N");
  options.number("--min-gain", o.question.min_gain, {},
                 "speculation must be 1 + X times as fast to be worth it [0.05]");
  return [chosen] { return from_options(*chosen); };
}

}  // namespace

FigureKind speedup_over_batch_figure() {
  return {"speedup-over-batch", "speedup and throughput over the batch, and where speculation stops paying",
          set_up_batch_figure};
}

}  // namespace specdec::cli
