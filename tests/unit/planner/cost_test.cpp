#include "planner/cost.hpp"

#include <string>

#include "analysis/cost/kernel_times.hpp"
#include "planner/question_error.hpp"
#include "tests/support/catch.hpp"

using namespace specdec;
using planner::Cost;
using planner::QuestionError;

namespace {

std::string parameter_refused(const std::string& hardware, const std::string& model,
                              const planner::HardwareOptions& options = {}) {
  try {
    Cost::of_hardware(hardware, model, options);
  } catch (const QuestionError& error) {
    return error.parameter();
  }
  return "none";
}

}  // namespace

TEST_CASE("constants price a round as Theorem 3.8 does") {
  const Cost cost = Cost::of_constants(0.1);
  CHECK(cost.rounds->round({4, 1, 0, 0}).total() == Approx(1 + 4 * 0.1));
  CHECK(cost.rounds->round({0, 1, 0, 0}).total() == Approx(1));
  CHECK(cost.assumptions.size() == 2);
}

TEST_CASE("drafts that make a step need c, and those that make none have no other than 0") {
  CHECK_THROWS_AS(Cost::of_constants(planner::StepTimes{}), QuestionError);
  CHECK_NOTHROW(Cost::of_constants(planner::StepTimes{}, {.kind = cost::DraftKind::ngram}));
  planner::StepTimes times;
  times.c = 0.1;
  CHECK_THROWS_AS(Cost::of_constants(times, {.kind = cost::DraftKind::ngram}), QuestionError);
}

TEST_CASE("hardware and models are found by name, and a wrong one is named") {
  const Cost cost = Cost::of_hardware("h100", "llama-3.1-70b", {.draft = {.model = "llama-3.2-1b"}});
  REQUIRE(cost.roofline);
  CHECK(cost.roofline->options().hardware.name == "h100-sxm");
  CHECK(cost.presets.size() > 3);
  CHECK(parameter_refused("h1000", "llama-3.1-70b") == "hardware");
  CHECK(parameter_refused("h100", "llama-9") == "model");
  CHECK(parameter_refused("h100", "llama-3.1-70b") == "draft_model");
  CHECK(parameter_refused("h100", "llama-3.1-70b", {.draft = {.model = "llama-9"}}) == "draft_model");
  CHECK(parameter_refused("h100", "llama-3.1-70b", {.drafts = false}) == "none");
}

TEST_CASE("a device's passes are priced by vLLM's measured kernels unless it has none, or something else is said") {
  const auto engine = [](const Cost& cost) {
    return cost.roofline->options().kernels ? cost.roofline->options().kernels->engine : "none";
  };
  const auto assumed = [](const Cost& cost) {
    for (const planner::Assumption& assumption : cost.assumptions)
      if (assumption.name == "kernel_times") return assumption.value.get<std::string>() + ", " + assumption.source;
    return std::string("nothing");
  };
  const auto cost_on = [](const std::string& hardware, planner::HardwareOptions options = {}) {
    options.drafts = false;
    return Cost::of_hardware(hardware, "llama-3.1-8b", options);
  };
  for (const std::string& device : cost::devices_with_kernel_times()) {
    INFO(device);
    CHECK(engine(cost_on(device, {.tensor_parallel = 2})) == "vllm");
  }
  CHECK_THAT(assumed(cost_on("h100")), Catch::Matchers::StartsWith("vllm 0."));
  CHECK_THAT(assumed(cost_on("h100")), Catch::Matchers::EndsWith(", default"));
  CHECK(engine(cost_on("h100", {.kernel_times = "sglang"})) == "sglang");
  CHECK(engine(cost_on("h100", {.kernel_times = "none"})) == "none");
  CHECK(assumed(cost_on("h100", {.kernel_times = "none"})) == "none, user");
  const Cost stated = cost_on("h100", {.bandwidth_efficiency = cost::UncertainValue{0.8, 0.8, 0.8}});
  CHECK(engine(stated) == "none");
  CHECK(assumed(stated) == "none: --bandwidth-efficiency is given, default");
  const Cost wide = cost_on("h100", {.tensor_parallel = 16});
  CHECK(engine(wide) == "none");
  CHECK(assumed(wide) == "none: no all-reduces over 16 accelerators were measured, default");
  CHECK(engine(cost_on("mi300x")) == "none");
  CHECK(assumed(cost_on("mi300x")) == "nothing");
}

TEST_CASE("passes of a draft take what heads took beside measured kernels, unless a time is given or no model drafts") {
  const auto launch = [](planner::HardwareOptions options) {
    return Cost::of_hardware("h100", "llama-3.3-70b", options).roofline->options().losses.draft_launch_seconds;
  };
  planner::HardwareOptions options = {.draft = {.model = "eagle3-llama-3.3-70b"}, .tensor_parallel = 4};
  const cost::SourcedRange& usual = cost::efficiency_defaults().draft_launch_seconds;
  REQUIRE(launch(options));
  CHECK(launch(options)->value == usual.value);
  CHECK(launch(options)->low < launch(options)->high);
  options.draft_launch_seconds = cost::UncertainValue{1e-4, 1e-4, 1e-4};
  CHECK(launch(options)->value == 1e-4);
  options.draft_launch_seconds.reset();
  options.launch_seconds = cost::UncertainValue{2e-4, 2e-4, 2e-4};
  CHECK_FALSE(launch(options));
  options.launch_seconds.reset();
  options.kernel_times = "none";
  CHECK_FALSE(launch(options));
  CHECK_FALSE(launch({.drafts = false}));
}

TEST_CASE("a head drafts as one without being told, and not otherwise") {
  const Cost cost = Cost::of_hardware("h100", "llama-3.3-70b", {.draft = {.model = "eagle3-llama-3.3-70b"}});
  CHECK(cost.kind == cost::DraftKind::eagle);
  CHECK(parameter_refused("h100", "llama-3.3-70b",
                          {.draft = {.model = "eagle3-llama-3.3-70b", .kind = cost::DraftKind::model}}) ==
        "draft_kind");
}
