#include "cli/roofline_options.hpp"

#include <fmt/format.h>
#include <set>

#include "cli/usage_error.hpp"
#include "cli/values.hpp"

namespace specdec::cli {
namespace {

using cost::UncertainValue;
using planner::HardwareOptions;

constexpr std::int64_t largest_tensor_parallel = 1024;
constexpr std::int64_t largest_calibrated_gamma = 1'000'000;
constexpr LegalRange share = {1e-6, 1.0};
constexpr LegalRange positive_number = {.lo_open = true};

/// "0.7" or "0.6:0.9", whose value is the middle.
UncertainValue uncertain_value(std::string_view option, const std::string& text, const LegalRange& range) {
  const auto ends = split(text, ':');
  if (ends.size() > 2) refuse(option, text, "a number or LOW:HIGH");
  const double low = parse_number(option, ends.front(), range), high = parse_number(option, ends.back(), range);
  if (low > high) refuse(option, text, "a number or LOW:HIGH with LOW <= HIGH");
  return {low, low + (high - low) / 2, high};
}

void declare_type(Options& options, const std::string& name, std::optional<cost::NumberType>& type,
                  const std::string& help) {
  options.value(name, "TYPE", help, [&type](std::string_view option, const std::string& text) {
    type = cost::number_type_named(text);
    if (!type) refuse(option, text, "one of fp32, fp16, bf16, fp8, int8, int4, nvfp4, mxfp4");
  });
}

/// @param unit  the option's, in units of the loss
void declare_loss(Options& options, const std::string& name, std::optional<UncertainValue>& loss,
                  const LegalRange& range, const std::string& help, double unit = 1) {
  options.value(name, "X|LOW:HIGH", help, [&loss, range, unit](std::string_view option, const std::string& text) {
    const UncertainValue stated = uncertain_value(option, text, range);
    loss = UncertainValue{stated.low * unit, stated.value * unit, stated.high * unit};
  });
}

/// "batch=8,tpot_ms=15.9,gamma=3,tokens_per_step=2.6,context=1000" or "prompt=2000,ttft_ms=120".
planner::TimedIteration timed_iteration(const std::string& text) {
  constexpr std::string_view option = "--calibrate";
  planner::TimedIteration timed;
  timed.name = text;
  std::optional<double> milliseconds;
  std::set<std::string_view> keys;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    if (!keys.insert(key).second) refuse(option, text, fmt::format("a list that has {} once", key));
    const std::string name = fmt::format("{} in {}", key, option);
    if (key == "batch") {
      timed.batch = parse_number(name, value, positive_number);
    } else if (key == "tpot_ms" || key == "ttft_ms") {
      milliseconds = parse_number(name, value, positive_number);
    } else if (key == "gamma") {
      timed.gamma = parse_integer(name, value, 0, largest_calibrated_gamma);
    } else if (key == "tokens_per_step") {
      timed.tokens_per_step = parse_number(name, value, {.lo = 1});
    } else if (key == "prompt") {
      timed.prompt_tokens = parse_number(name, value, {.lo = 1});
    } else if (key == "context") {
      timed.context = parse_number(name, value, {});
    } else {
      refuse(option, part, "KEY=VALUE with a key of batch, tpot_ms, gamma, tokens_per_step, context, prompt, ttft_ms");
    }
  }
  if (timed.prompt_tokens || keys.count("ttft_ms") > 0) {
    if (keys != std::set<std::string_view>{"prompt", "ttft_ms"})
      refuse(option, text, "a list of prompt=N,ttft_ms=T alone, of an idle server");
  } else if (keys.count("batch") == 0 || !milliseconds) {
    refuse(option, text, "a list that has batch=B,tpot_ms=T");
  }
  if (timed.gamma > 0 && !timed.tokens_per_step) refuse(option, text, "a list that has tokens_per_step beside gamma");
  if (timed.tokens_per_step.value_or(1) > 1 && keys.count("gamma") == 0)
    refuse(option, text, "a list that has gamma beside tokens_per_step");
  if (timed.tokens_per_step.value_or(1) > static_cast<double>(timed.gamma) + 1) {
    refuse(option, text, fmt::format("a list whose tokens_per_step is at most gamma + 1, {}", timed.gamma + 1));
  }
  timed.seconds = 1e-3 * *milliseconds;
  return timed;
}

}  // namespace

void declare(Options& options, RooflineArguments& a) {
  HardwareOptions& o = a.options;
  options.group("Hardware");
  options.text("--hardware,--gpu", a.hardware, "NAME|FILE",
               "prices --model and --draft-model on it: a name of\n`specdec list hardware`, or a file");
  options.integer("--tensor-parallel-size,--tp", o.tensor_parallel, {1, largest_tensor_parallel},
                  "accelerators that share the target [1]");
  options.integer(
      "--data-parallel-size,--dp", o.data_parallel, {1, largest_tensor_parallel},
      "groups of as many, each with sequences of its own,\nthat share the experts of a target with some [1]");
  options.integer("--expert-parallel-size,--ep", o.expert_parallel, {1, largest_tensor_parallel},
                  "parts that whole experts are divided into over all\naccelerators of the target [1]");
  options.integer("--draft-tensor-parallel-size", o.draft.tensor_parallel, {1, largest_tensor_parallel},
                  "accelerators that share the draft [as the target]");
  declare_type(options, "--weight-dtype", o.weight_dtype,
               "fp32, fp16, bf16, fp8, int8, int4, nvfp4, mxfp4\n[as the model's file says, else bf16]");
  declare_type(options, "--draft-weight-dtype", o.draft_weight_dtype, "the same of the draft");
  declare_type(options, "--kv-cache-dtype", o.kv_cache_dtype, "of the cached keys and values [bf16]");
  options.text("--kernel-times", o.kernel_times, "ENGINE|FILE|none",
               "measured kernels of vllm, sglang or tensorrt-llm on the\nhardware, or of a file, in place of the next "
               "four; or none\n[vllm where measured and none of the four is given]");
  declare_loss(options, "--bandwidth-efficiency", o.bandwidth_efficiency, share,
               "achieved share of the memory bandwidth; 1 is ideal");
  declare_loss(options, "--compute-efficiency", o.compute_efficiency, share, "achieved share of the dense peak");
  declare_loss(options, "--link-efficiency", o.link_efficiency, share, "achieved share of the link's bandwidth");
  declare_loss(options, "--all-reduce-latency-us", o.all_reduce_latency_seconds, {},
               "microseconds of an all-reduce beside its bytes", 1e-6);
  declare_loss(options, "--launch-seconds", o.launch_seconds, {}, "of each pass of a model");
  declare_loss(options, "--draft-launch-seconds", o.draft_launch_seconds, {},
               "of each pass of the draft [--launch-seconds]");
  declare_loss(options, "--layer-seconds", o.layer_seconds, {}, "of each layer of a pass, target's and draft's");
  declare_loss(options, "--scheduling-seconds", o.scheduling_seconds, {}, "of each iteration of the engine");
  options.texts("--calibrate", a.calibrate, "batch=B,tpot_ms=T,...",
                "a measured time per output token that the seven above\nare fitted to, repeatedly; also gamma=G with\n"
                "tokens_per_step=E, context=N; or prompt=N,ttft_ms=T\nof an idle server");
}

GivenOptions given_beside_hardware(const RooflineArguments& a) {
  const HardwareOptions& o = a.options;
  return {{"--tensor-parallel-size", o.tensor_parallel.has_value()},
          {"--data-parallel-size", o.data_parallel.has_value()},
          {"--expert-parallel-size", o.expert_parallel.has_value()},
          {"--draft-tensor-parallel-size", o.draft.tensor_parallel.has_value()},
          {"--weight-dtype", o.weight_dtype.has_value()},
          {"--draft-weight-dtype", o.draft_weight_dtype.has_value()},
          {"--kv-cache-dtype", o.kv_cache_dtype.has_value()},
          {"--kernel-times", o.kernel_times.has_value()},
          {"--bandwidth-efficiency", o.bandwidth_efficiency.has_value()},
          {"--compute-efficiency", o.compute_efficiency.has_value()},
          {"--link-efficiency", o.link_efficiency.has_value()},
          {"--all-reduce-latency-us", o.all_reduce_latency_seconds.has_value()},
          {"--launch-seconds", o.launch_seconds.has_value()},
          {"--layer-seconds", o.layer_seconds.has_value()},
          {"--scheduling-seconds", o.scheduling_seconds.has_value()},
          {"--draft-launch-seconds", o.draft_launch_seconds.has_value()},
          {"--calibrate", !a.calibrate.empty()}};
}

HardwareOptions hardware_options(const RooflineArguments& a) {
  HardwareOptions o = a.options;
  for (const std::string& text : a.calibrate) o.calibrate.push_back(timed_iteration(text));
  return o;
}

}  // namespace specdec::cli
