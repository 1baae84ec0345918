#include <algorithm>
#include <memory>
#include <thread>
#include <utility>

#include "cli/capacity_question.hpp"
#include "cli/figures/deployment_defaults.hpp"
#include "cli/figures/figure_kind.hpp"
#include "cli/given_options.hpp"
#include "render/figures/load_charts.hpp"

namespace specdec::cli {

using namespace render;
namespace {

/// Which figure, and at how many loads times are simulated for it.
struct LoadFigureKind {
  Chart (*draw)(const LoadChartInputs&);
  std::size_t loads;
};

Chart from_options(CapacityOptions o, const LoadFigureKind& kind) {
  refuse_given({{"--gpus", o.gpus.has_value()},
                {"--concurrency", o.concurrency.has_value()},
                {"--replicas", o.replicas.has_value()}},
               "figures go over loads of one replica and of as many as a load needs");
  std::vector<Assumption> assumptions = default_service(o);
  const std::optional<double> asked = o.arrival_rate;
  o.arrival_rate.reset();
  const AskedCapacity given = asked_capacity(o);
  const planner::Capacity capacity = planner::asked_capacity(given.acceptance, given.cost, given.question);
  LoadChartInputs shown = load_chart_inputs(capacity, kind.loads);
  shown.who = deployment_text(o.shared, o.roofline);
  shown.asked = asked;
  Chart chart = kind.draw(shown);
  chart.files = file_facts_of(given, capacity);
  chart.presets = capacity.presets;
  chart.assumptions = with_defaults(with_defaults(std::move(assumptions), capacity.assumptions), chart.assumptions);
  chart.warnings.insert(chart.warnings.end(), capacity.warnings.begin(), capacity.warnings.end());
  return chart;
}

/// GPUs that layouts are searched for on where nobody says how many.
constexpr std::int64_t usual_gpus = 16;

Chart layouts_from_options(CapacityOptions o) {
  const bool states_layout = o.roofline.tensor_parallel.has_value();
  std::vector<Assumption> assumptions = default_service(o);
  if (!states_layout) {
    o.roofline.tensor_parallel.reset();
    std::erase_if(assumptions, [](const Assumption& taken) { return taken.name == "tensor_parallel"; });
  }
  if (!o.gpus) {
    o.gpus = usual_gpus;
    assumptions.push_back({"gpus", usual_gpus, "default"});
  }
  const AskedCapacity given = asked_capacity(o);
  const planner::LayoutSearch search = planner::price_layouts(given.acceptance, given.cost, given.question);
  std::string who = o.shared.model.value_or("");
  if (o.shared.draft_model) who += " with " + *o.shared.draft_model;
  Chart chart = layouts_chart(search, given.question.tpot_ms, who + " on " + o.roofline.hardware.value_or(""));
  chart.presets = given.cost.presets;
  chart.assumptions = with_defaults(std::move(assumptions), chart.assumptions);
  return chart;
}

std::function<Chart()> set_up_layouts_figure(Options& options) {
  const auto chosen = std::make_shared<CapacityOptions>();
  chosen->threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
  declare(options, *chosen);
  options.footer(
      "Without options: what docs/examples/chat_70b.toml holds on up to 16 GPUs, prompts of 1000 and answers of 250 "
      "tokens, and 2.5 for a GPU hour.\nEvery option is one of specdec capacity: docs/capacity.md.");
  return [chosen] { return layouts_from_options(*chosen); };
}

template <const LoadFigureKind& kind>
std::function<Chart()> set_up_load_figure(Options& options) {
  const auto chosen = std::make_shared<CapacityOptions>();
  chosen->threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
  declare(options, *chosen);
  options.footer(
      "Without options: what docs/examples/chat_70b.toml holds, prompts of 1000 and answers of 250 tokens, and 2.5 for "
      "a GPU hour.\nEvery option is one of specdec capacity: docs/capacity.md.");
  return [chosen] { return from_options(*chosen, kind); };
}

constexpr LoadFigureKind gpus_kind = {gpus_over_load_chart, 0};
constexpr LoadFigureKind latency_kind = {latency_over_load_chart, 8};
constexpr LoadFigureKind cost_kind = {cost_and_time_chart, 8};

}  // namespace

std::vector<FigureKind> load_figures() {
  return {{"cost-and-time-per-token", "time per token against the cost of a million, with and without speculation",
           set_up_load_figure<cost_kind>},
          {"gpus-over-load", "GPUs that loads need, with and without speculation", set_up_load_figure<gpus_kind>},
          {"layouts", "time per token against cost of the layouts on so many GPUs", set_up_layouts_figure},
          {"latency-over-load", "percentiles of the times to first token and per output token over the load",
           set_up_load_figure<latency_kind>}};
}

}  // namespace specdec::cli
