#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "cli/figures/figure_kind.hpp"
#include "cli/files.hpp"
#include "cli/interruption.hpp"
#include "cli/sweep.hpp"
#include "cli/sweep_file.hpp"
#include "render/figures/sweep_chart.hpp"
#include "render/version.hpp"

namespace specdec::cli {
namespace {

constexpr const char* usual_sweep = R"([plan]
model = "llama-3.3-70b"
draft-model = "eagle3-llama-3.3-70b"
draft-kind = "eagle"
hardware = ["h100", "h200", "b200"]
tp = [2, 4, 8]
context = 2000
batch = [1, 4, 16, 64, 256]
)";

struct SweepFigureOptions {
  std::optional<std::string> sweep;
  std::optional<std::string> cache;
  std::int64_t threads = 1;
};

Chart pareto_of(const SweepFigureOptions& o) {
  const SweepPoints asked = o.sweep ? read_sweep(*o.sweep) : sweep_points("sweep", sweep_sections("sweep", usual_sweep));
  planner::SweepSettings settings{std::string(render::version()), {}, asked.uncertain, {}, o.threads};
  if (o.cache) settings.cache = *o.cache;
  const Interruption interruption;
  const planner::Sweep answered =
      planner::sweep(asked.command, asked.points, settings, interruptible("answering", true));
  Chart chart = render::pareto_chart(answered);
  chart.warnings = answered.warnings;
  if (o.sweep) {
    std::vector<std::string> files = asked.files;
    files.push_back(*o.sweep);
    chart.files = facts_of(files);
  } else {
    chart.assumptions.push_back(
        {"sweep", "llama-3.3-70b with its EAGLE-3 head on 2, 4 and 8 of three devices, batches 1 to 256", "default"});
  }
  return chart;
}

std::function<Chart()> set_up_sweep_figure(Options& options) {
  const auto chosen = std::make_shared<SweepFigureOptions>();
  chosen->threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 64);
  options.text("--sweep", chosen->sweep, "FILE", "what specdec sweep reads [a 70B model on three devices]");
  options.text("--cache", chosen->cache, "FOLDER", "that of specdec sweep, whose answers need not be made again");
  options.integer("--threads", chosen->threads, {.lo = 1, .hi = 1024}, "points at a time");
  return [chosen] { return pareto_of(*chosen); };
}

}  // namespace

FigureKind sweep_figure() {
  return {"pareto", "cost against time per token over the points of specdec sweep", set_up_sweep_figure};
}

}  // namespace specdec::cli
