#include <memory>
#include <utility>

#include "cli/capacity_question.hpp"
#include "cli/figures/deployment_defaults.hpp"
#include "cli/figures/figure_kind.hpp"
#include "cli/given_options.hpp"
#include "cli/values.hpp"
#include "render/figures/chart_words.hpp"
#include "render/figures/load_charts.hpp"

namespace specdec::cli {

using namespace render;
namespace {

Chart from_options(CapacityOptions o) {
  refuse_given({{"--gpus", o.question.gpus.has_value()},
                {"--concurrency", o.question.concurrency.has_value()},
                {"--replicas", o.question.replicas.has_value()}},
               "figures go over loads of one replica and of as many as a load needs");
  std::vector<Assumption> assumptions = default_service(o);
  o.question.arrival_rate.reset();
  const AskedCapacity given = asked_capacity(o);
  const planner::Capacity capacity = planner::asked_capacity(given.acceptance, given.cost, given.question);
  return resting_on(capacity, files_of(given, capacity), std::move(assumptions),
                    cost_and_time_chart(capacity, deployment_of(given.cost.target_model, &given.cost)));
}

std::function<Chart()> set_up_cost_figure(Options& options) {
  const auto chosen = std::make_shared<CapacityOptions>();
  chosen->question.threads = default_threads();
  declare(options, *chosen);
  options.footer(
      "Without options: what docs/examples/chat_70b.toml holds, prompts of 1000 and answers of 250 tokens, and 2.5 for "
      "a GPU hour.\nEvery option is one of specdec capacity: docs/guide/gpus.md.");
  return [chosen] { return from_options(*chosen); };
}

}  // namespace

FigureKind cost_and_time_figure() {
  return {"cost-and-time-per-token", "time per token against the cost of a million, with and without speculation",
          set_up_cost_figure};
}

}  // namespace specdec::cli
