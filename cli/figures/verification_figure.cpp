#include <fmt/format.h>
#include <memory>
#include <optional>
#include <utility>

#include "cli/figures/deployment_defaults.hpp"
#include "cli/figures/figure_kind.hpp"
#include "cli/files.hpp"
#include "cli/given_options.hpp"
#include "cli/roofline_options.hpp"
#include "cli/usage_error.hpp"
#include "render/figures/verification_chart.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

struct VerificationFigureOptions {
  RooflineArguments roofline;
  std::optional<std::string> model;
  std::optional<std::string> timed_model;
  std::vector<std::string> cost_files;
  double context = 256;
  std::int64_t up_to = 1024;
};

std::vector<traces::TimedPass> passes_from(const VerificationFigureOptions& o) {
  refuse_given({{"--timed-model", o.timed_model && o.cost_files.empty()}}, "needs --cost beside it");
  std::vector<traces::TimedPass> passes;
  for (const std::string& file : o.cost_files) {
    const traces::TimingTable table = traces::read_timing_table(file);
    const std::vector<std::string> models = table.models();
    if (models.size() > 1 && !o.timed_model) {
      throw UsageError(fmt::format("--timed-model is missing: {} holds several models", file));
    }
    const std::string model = o.timed_model.value_or(models.front());
    const std::vector<traces::TimedPass> found = table.passes_of(model);
    if (found.empty()) refuse("--timed-model", model, fmt::format("a model of {}", file));
    passes.insert(passes.end(), found.begin(), found.end());
  }
  return passes;
}

std::vector<cost::PublishedTiming> published_of(const cost::RooflineOptions& placed) {
  std::vector<cost::PublishedTiming> found;
  const std::string type(name_of(placed.target.weight_type.value_or(cost::NumberType::bf16)));
  const auto bits_16 = [](const std::string& name) { return name == "bf16" || name == "fp16" || name.empty(); };
  for (const cost::PublishedTiming& timing : cost::published_timings()) {
    const bool same_type = timing.weights == type || (bits_16(timing.weights) && bits_16(type));
    if (timing.hardware == placed.hardware.name && timing.model == placed.target.model.name && same_type &&
        timing.tensor_parallel == placed.target.tensor_parallel && !timing.drafted) {
      found.push_back(timing);
    }
  }
  return found;
}

Chart from_options(VerificationFigureOptions o) {
  std::vector<Assumption> assumptions;
  VerificationCostInputs inputs;
  inputs.context = o.context;
  inputs.up_to = o.up_to;
  inputs.measured = passes_from(o);
  std::optional<planner::Cost> priced;
  if (o.roofline.hardware || o.model || o.cost_files.empty()) {
    if (!o.roofline.hardware) {
      o.roofline.hardware = "rtx-4090";
      assumptions.push_back({"hardware", *o.roofline.hardware, "default"});
    }
    if (!o.model) {
      o.model = "llama-3.1-8b";
      assumptions.push_back({"model", *o.model, "default"});
    }
    planner::HardwareOptions options = hardware_options(o.roofline);
    options.drafts = false;
    priced = planner::Cost::of_hardware(*o.roofline.hardware, *o.model, options);
    inputs.roofline = priced->roofline.get();
    inputs.published = published_of(priced->roofline->options());
    PlanOptions shown;
    shown.model = o.model;
    inputs.who = deployment_text(shown, o.roofline);
  } else {
    inputs.who = inputs.measured.front().model.empty() ? "measured passes" : inputs.measured.front().model;
  }
  Chart chart = verification_cost_chart(inputs);
  chart.assumptions = with_defaults(std::move(assumptions), chart.assumptions);
  for (const cost::PublishedTiming& timing : inputs.published) {
    chart.assumptions.push_back(
        {fmt::format("published: {}, batch {}, {} tokens, context {}", timing.engine, brief(timing.point.batch),
                     timing.point.gamma + 1, brief(timing.point.context)),
         fmt::format("{} ({})", timing.quoted, timing.source), "preset"});
  }
  if (priced) {
    chart.assumptions.push_back({"context", o.context, o.context == 256 ? "default" : "user"});
    chart.assumptions.insert(chart.assumptions.end(), priced->assumptions.begin(), priced->assumptions.end());
    chart.warnings = priced->warnings;
    chart.presets = priced->presets;
    for (const std::string& file : priced->files) chart.files.push_back(file_facts("FILE", file));
  }
  for (const std::string& file : o.cost_files) chart.files.push_back(file_facts("--cost", file));
  return chart;
}

std::function<Chart()> set_up_verification_figure(Options& options) {
  const auto chosen = std::make_shared<VerificationFigureOptions>();
  declare(options, chosen->roofline);
  options.group("Model [llama-3.1-8b on an RTX 4090, of which there are published times]");
  options.text("--model", chosen->model, "NAME|FILE", "a preset or a configuration");
  options.number("--context", chosen->context, {0.0, 1e9}, "tokens in the cache per sequence");
  options.integer("--up-to", chosen->up_to, {2, 1 << 20}, "most tokens of a pass");
  options.group("Measured times");
  options.texts(
      "--cost", chosen->cost_files, "FILE",
      "timed passes: a table of batch,tokens,context,seconds,\nor llama-bench files; alone or over a roofline");
  options.text("--timed-model", chosen->timed_model, "NAME", "which model of these files");
  return [chosen] { return from_options(*chosen); };
}

}  // namespace

FigureKind verification_cost_figure() {
  return {"verification-cost", "time of a pass over the tokens it verifies: roofline, knee and measured points",
          set_up_verification_figure};
}

}  // namespace specdec::cli
