#include <algorithm>
#include <memory>
#include <utility>

#include "cli/figures/deployment_defaults.hpp"
#include "cli/figures/figure_kind.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/planned.hpp"
#include "cli/usage_error.hpp"
#include "render/figures/batch_chart.hpp"

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
  const std::vector<std::int64_t> gammas = rising_integers("--gamma", o.gammas, 1, planner::largest_max_gamma);
  const bool by_runs = !o.plan.bench.empty();
  planner::PlanQuestion& question = o.plan.question;
  if (!by_runs && question.batch.empty()) question.batch = usual_figure_batches;
  if (!by_runs && question.context.empty()) {
    question.context = {usual_figure_context};
    assumptions.push_back({"context", 1000, "default"});
  }
  question.max_gamma = std::max<std::int64_t>(gammas.back(), 8);
  const planner::Plan d = planned(o.plan);
  const std::optional<double> context = by_runs ? std::nullopt : std::optional(d.points().front().context);
  return resting_on(d, d.files, std::move(assumptions), speedup_over_batch_chart(d, gammas, context));
}

std::function<Chart()> set_up_batch_figure(Options& options) {
  const auto chosen = std::make_shared<BatchFigureOptions>();
  PlanOptions& o = chosen->plan;
  declare_acceptance(options, o, "at most one of");
  declare_deployment(options, o);
  options.group("Benchmark runs (instead of --hardware)");
  options.texts("--bench", o.bench, "FILE", "results with and without speculation, as in specdec plan");
  options.group("The chart");
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
