#include "cli/roofline_options.hpp"

#include <fmt/format.h>
#include <array>
#include <set>

#include "cli/usage_error.hpp"
#include "cli/values.hpp"

namespace specdec::cli {
namespace {

using cost::NumberType;
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

NumberType number_type(std::string_view option, const std::string& text) {
  if (const auto type = cost::number_type_named(text)) return *type;
  refuse(option, text, "one of fp32, fp16, bf16, fp8, int8, int4, nvfp4, mxfp4");
}

/// A loss by its option.
struct LossOption {
  std::string_view option;
  std::optional<std::string> RooflineArguments::*text;
  std::optional<UncertainValue> HardwareOptions::*loss;
  LegalRange range;
  /// The option's unit, in units of the loss.
  double unit = 1;
};
constexpr std::array<LossOption, 8> loss_options = {
    {{"--bandwidth-efficiency", &RooflineArguments::bandwidth_efficiency, &HardwareOptions::bandwidth_efficiency,
      share},
     {"--compute-efficiency", &RooflineArguments::compute_efficiency, &HardwareOptions::compute_efficiency, share},
     {"--link-efficiency", &RooflineArguments::link_efficiency, &HardwareOptions::link_efficiency, share},
     {"--all-reduce-latency-us", &RooflineArguments::all_reduce_latency_us,
      &HardwareOptions::all_reduce_latency_seconds, LegalRange{}, 1e-6},
     {"--launch-seconds", &RooflineArguments::launch_seconds, &HardwareOptions::launch_seconds, LegalRange{}},
     {"--layer-seconds", &RooflineArguments::layer_seconds, &HardwareOptions::layer_seconds, LegalRange{}},
     {"--scheduling-seconds", &RooflineArguments::scheduling_seconds, &HardwareOptions::scheduling_seconds,
      LegalRange{}},
     {"--draft-launch-seconds", &RooflineArguments::draft_launch_seconds, &HardwareOptions::draft_launch_seconds,
      LegalRange{}}}};

/// "batch=8,tpot_ms=15.9,gamma=3,tokens_per_step=2.6,context=1000".
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
    } else if (key == "tpot_ms") {
      milliseconds = parse_number(name, value, positive_number);
    } else if (key == "gamma") {
      timed.gamma = parse_integer(name, value, 0, largest_calibrated_gamma);
    } else if (key == "tokens_per_step") {
      timed.tokens_per_step = parse_number(name, value, {.lo = 1});
    } else if (key == "context") {
      timed.context = parse_number(name, value, {});
    } else {
      refuse(option, part, "KEY=VALUE with a key of batch, tpot_ms, gamma, tokens_per_step, context");
    }
  }
  if (keys.count("batch") == 0 || !milliseconds) refuse(option, text, "a list that has batch=B,tpot_ms=T");
  if (timed.gamma > 0 && !timed.tokens_per_step) refuse(option, text, "a list that has tokens_per_step beside gamma");
  if (timed.tokens_per_step.value_or(1) > 1 && keys.count("gamma") == 0)
    refuse(option, text, "a list that has gamma beside tokens_per_step");
  if (timed.tokens_per_step.value_or(1) > static_cast<double>(timed.gamma) + 1) {
    refuse(option, text, fmt::format("a list whose tokens_per_step is at most gamma + 1, {}", timed.gamma + 1));
  }
  timed.seconds_per_output_token = 1e-3 * *milliseconds;
  return timed;
}

}  // namespace

void declare(Options& options, RooflineArguments& a) {
  options.group("Hardware");
  options.text("--hardware,--gpu", a.hardware, "NAME|FILE",
               "prices --model and --draft-model on it: a name of\n`specdec list hardware`, or a file");
  options.integer("--tensor-parallel-size,--tp", a.tensor_parallel, {1, largest_tensor_parallel},
                  "accelerators that share the target [1]");
  options.integer(
      "--data-parallel-size,--dp", a.data_parallel, {1, largest_tensor_parallel},
      "groups of as many, each with sequences of its own,\nthat share the experts of a target with some [1]");
  options.integer("--expert-parallel-size,--ep", a.expert_parallel, {1, largest_tensor_parallel},
                  "parts that whole experts are divided into over all\naccelerators of the target [1]");
  options.integer("--draft-tensor-parallel-size", a.draft_tensor_parallel, {1, largest_tensor_parallel},
                  "accelerators that share the draft [as the target]");
  options.text("--weight-dtype", a.weight_dtype, "TYPE",
               "fp32, fp16, bf16, fp8, int8, int4, nvfp4, mxfp4\n[what the model's file says, else bf16]");
  options.text("--draft-weight-dtype", a.draft_weight_dtype, "TYPE", "the same of the draft");
  options.text("--kv-cache-dtype", a.kv_cache_dtype, "TYPE", "of the cached keys and values [bf16]");
  options.text("--kernel-times", a.kernel_times, "ENGINE|FILE|none",
               "measured kernels of vllm, sglang or tensorrt-llm on the\nhardware, or of a file, in place of the next "
               "four; or none\n[vllm where measured and none of the four is given]");
  options.text("--bandwidth-efficiency", a.bandwidth_efficiency, "X|LOW:HIGH",
               "achieved share of the memory bandwidth; 1 is ideal");
  options.text("--compute-efficiency", a.compute_efficiency, "X|LOW:HIGH", "achieved share of the dense peak");
  options.text("--link-efficiency", a.link_efficiency, "X|LOW:HIGH", "achieved share of the link's bandwidth");
  options.text("--all-reduce-latency-us", a.all_reduce_latency_us, "X|LOW:HIGH",
               "microseconds of an all-reduce beside its bytes");
  options.text("--launch-seconds", a.launch_seconds, "X|LOW:HIGH", "of each pass of a model");
  options.text("--draft-launch-seconds", a.draft_launch_seconds, "X|LOW:HIGH",
               "of each pass of the draft [--launch-seconds]");
  options.text("--layer-seconds", a.layer_seconds, "X|LOW:HIGH", "of each layer of a pass, target's and draft's");
  options.text("--scheduling-seconds", a.scheduling_seconds, "X|LOW:HIGH", "of each iteration of the engine");
  options.texts("--calibrate", a.calibrate, "batch=B,tpot_ms=T,...",
                "a measured time per output token that the seven above\nare fitted to, repeatedly; also gamma=G with\n"
                "tokens_per_step=E, context=N");
}

std::vector<std::pair<std::string_view, bool>> given_beside_hardware(const RooflineArguments& a) {
  std::vector<std::pair<std::string_view, bool>> given = {
      {"--tensor-parallel-size", a.tensor_parallel.has_value()},
      {"--data-parallel-size", a.data_parallel.has_value()},
      {"--expert-parallel-size", a.expert_parallel.has_value()},
      {"--draft-tensor-parallel-size", a.draft_tensor_parallel.has_value()},
      {"--weight-dtype", a.weight_dtype.has_value()},
      {"--draft-weight-dtype", a.draft_weight_dtype.has_value()},
      {"--kv-cache-dtype", a.kv_cache_dtype.has_value()},
      {"--kernel-times", a.kernel_times.has_value()}};
  for (const LossOption& loss : loss_options) given.emplace_back(loss.option, (a.*loss.text).has_value());
  given.emplace_back("--calibrate", !a.calibrate.empty());
  return given;
}

HardwareOptions hardware_options(const RooflineArguments& a) {
  HardwareOptions o;
  o.draft.tensor_parallel = a.draft_tensor_parallel;
  o.tensor_parallel = a.tensor_parallel;
  o.data_parallel = a.data_parallel;
  o.expert_parallel = a.expert_parallel;
  if (a.weight_dtype) o.weight_dtype = number_type("--weight-dtype", *a.weight_dtype);
  if (a.draft_weight_dtype) o.draft_weight_dtype = number_type("--draft-weight-dtype", *a.draft_weight_dtype);
  if (a.kv_cache_dtype) o.kv_cache_dtype = number_type("--kv-cache-dtype", *a.kv_cache_dtype);
  o.kernel_times = a.kernel_times;
  for (const LossOption& loss : loss_options) {
    const std::optional<std::string>& text = a.*loss.text;
    if (!text) continue;
    const UncertainValue value = uncertain_value(loss.option, *text, loss.range);
    o.*loss.loss = UncertainValue{value.low * loss.unit, value.value * loss.unit, value.high * loss.unit};
  }
  for (const std::string& text : a.calibrate) o.calibrate.push_back(timed_iteration(text));
  return o;
}

}  // namespace specdec::cli
