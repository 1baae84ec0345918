#include <memory>
#include <vector>

#include "cli/figures/deployment_defaults.hpp"
#include "cli/figures/figure_kind.hpp"
#include "cli/plan_grammar.hpp"
#include "cli/planned.hpp"
#include "render/figures/context_chart.hpp"

namespace specdec::cli {

using namespace render;
namespace {

const std::vector<double> usual_figure_contexts = {500, 1000, 2000, 4000, 8000, 16000, 32000};

Chart over_context(PlanOptions o) {
  std::vector<Assumption> assumptions;
  if (o.drafts.empty()) assumptions = default_deployment(o);
  if (o.question.context.empty()) o.question.context = usual_figure_contexts;
  require_consistent(o);
  const planner::Plan d = planned(o);
  return resting_on(d, d.files, std::move(assumptions), speedup_over_context_chart(d));
}

std::function<Chart()> set_up_context_figure(Options& options) {
  const auto chosen = std::make_shared<PlanOptions>();
  PlanOptions& o = *chosen;
  declare_acceptance(options, o, "of one draft; at most one of");
  options.group("Several drafts");
  options.texts("--draft", o.drafts, "NAME:KEY=VALUE,...", "drafts with their acceptance, as in specdec plan");
  declare_deployment(options, o);
  options.group("The chart");
  declare_context(options, o.question.context, "tokens in the cache per sequence, rising [500 to 32000]");
  declare_batch(options, o.question.batch, "a line for each, rising [1]");
  return [chosen] { return over_context(*chosen); };
}

}  // namespace

FigureKind speedup_over_context_figure() {
  return {"speedup-over-context",
          "speedup and tokens per step of drafts over the context, and which is the fastest where",
          set_up_context_figure};
}

}  // namespace specdec::cli
