#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <span>
#include <stdexcept>

#include "analysis/cost/kernel_times.hpp"
#include "analysis/estimate/acceptance_curve.hpp"
#include "planner/acceptance.hpp"
#include "planner/cost.hpp"
#include "planner/near_names.hpp"
#include "planner/number_text.hpp"
#include "planner/question_error.hpp"

namespace specdec::planner {
namespace {

using cost::CalibrationPoint;
using cost::EfficiencyDefaults;
using cost::NumberType;
using cost::RooflineLosses;
using cost::SourcedRange;
using cost::UncertainValue;

UsedPreset used(std::string_view kind, std::string_view name, const std::vector<std::string>& all) {
  UsedPreset preset{std::string(kind), std::string(name), {}};
  for (const std::string& source : all) {
    if (!source.empty()) append_new(preset.sources, {source});
  }
  return preset;
}

std::vector<std::string> sources_of(const cost::HardwareSpec& hardware) {
  std::vector<std::string> sources = {hardware.memory_bytes.source, hardware.memory_bandwidth_bytes_per_second.source};
  for (const auto& peak : hardware.peak_flops) sources.push_back(peak.second.source);
  for (const auto& figure : {hardware.link_bytes_per_second, hardware.watts, hardware.gpus_per_node})
    if (figure) sources.push_back(figure->source);
  return sources;
}

/// Names and aliases.
template <class Preset>
std::vector<std::string> all_names(std::span<const Preset> presets) {
  std::vector<std::string> names;
  for (const Preset& preset : presets) {
    names.push_back(preset.name);
    names.insert(names.end(), preset.aliases.begin(), preset.aliases.end());
  }
  return names;
}

cost::HardwareSpec hardware_of(const std::string& name, const NamedSpecs& known, Cost& cost) {
  if (const cost::HardwareSpec* const preset = cost::hardware_preset(name)) {
    cost.presets.push_back(used("hardware", preset->name, sources_of(*preset)));
    if (name != preset->name) cost.assumptions.push_back({"hardware", preset->name, "preset"});
    return *preset;
  }
  if (const auto spec = known.hardware.find(name); spec != known.hardware.end()) return spec->second;
  if (!std::filesystem::exists(name)) {
    refuse("--hardware", name,
           "a file or one of `specdec list hardware`" + near_names(name, all_names(cost::hardware_presets())));
  }
  cost.files.push_back(name);
  return cost.specs.hardware[name] = cost::read_hardware_spec(name);
}

cost::ModelSpec model_of(std::string_view option, const std::string& name, const NamedSpecs& known, Cost& cost) {
  if (const cost::ModelSpec* const preset = cost::model_preset(name)) {
    if (!has_shape(*preset)) refuse(option, name, "a model whose shape is known: nobody published that of this one");
    cost.presets.push_back(used("model", preset->name, preset->sources));
    if (name != preset->name) cost.assumptions.push_back({std::string(option.substr(2)), preset->name, "preset"});
    return *preset;
  }
  if (const auto spec = known.models.find(name); spec != known.models.end()) return spec->second;
  if (!std::filesystem::exists(name)) {
    refuse(option, name,
           "a config.json, its folder, a GGUF file or one of `specdec list models`" +
               near_names(name, all_names(cost::model_presets())));
  }
  const std::filesystem::path path = name;
  cost::ModelSpec model = cost.specs.models[name] = cost::read_model_spec(path);
  if (!std::filesystem::is_directory(path)) {
    cost.files.push_back(name);
    return model;
  }
  for (const char* file : {"config.json", "model.safetensors.index.json"})
    if (std::filesystem::exists(path / file)) cost.files.push_back((path / file).string());
  return model;
}

/// Notes that these kernels, which come with the program, price the passes.
cost::KernelTimes preset_kernels(const cost::KernelTimes& kernels, std::string_view source, Cost& cost) {
  const std::string text = fmt::format("{} {}", kernels.engine, kernels.version);
  cost.presets.push_back(used("kernel_times", text, {kernels.source}));
  cost.assumptions.push_back({"kernel_times", text, std::string(source)});
  return kernels;
}

/// @param hardware  the one whose kernels they must be
cost::KernelTimes kernels_of(const std::string& name, const cost::HardwareSpec& hardware, const NamedSpecs& specs,
                             Cost& cost) {
  const std::vector<cost::KernelTimes> known = cost::kernel_times_of(hardware.name);
  std::vector<std::string> engines;
  for (const cost::KernelTimes& kernels : known) engines.push_back(kernels.engine);
  if (const auto found = std::find(engines.begin(), engines.end(), name); found != engines.end()) {
    return preset_kernels(known[static_cast<std::size_t>(found - engines.begin())], "preset", cost);
  }
  const auto of_file = [&](const cost::KernelTimes& kernels) {
    cost.assumptions.push_back({"kernel_times", fmt::format("{} {}", kernels.engine, kernels.version), "file"});
    return kernels;
  };
  if (const auto spec = specs.kernels.find(name); spec != specs.kernels.end()) return of_file(spec->second);
  if (!std::filesystem::exists(name)) {
    const std::string measured =
        known.empty() ? fmt::format("a file: no kernels of {} come with the program, but of {}", hardware.name,
                                    fmt::join(cost::devices_with_kernel_times(), ", "))
                      : fmt::format("a file, none or, on {}, one of {}", hardware.name, fmt::join(engines, ", "));
    refuse("--kernel-times", name, measured + near_names(name, engines));
  }
  std::vector<cost::KernelTimes> read = cost::read_kernel_times(name);
  if (read.size() != 1) refuse("--kernel-times", name, fmt::format("a file of one engine, not of {}", read.size()));
  if (read.front().device != hardware.name) {
    refuse("--kernel-times", name,
           fmt::format("a file of {}, the hardware, not of {}", hardware.name, read.front().device));
  }
  cost.files.push_back(name);
  return of_file(cost.specs.kernels[name] = read.front());
}

/// The name of the roofline for --kernel-times.
constexpr std::string_view no_kernels = "none";
/// Whose kernels on a device price passes where nobody says: with their constants they come nearest to what other
/// engines served there (docs/validation.md#served-times-that-others-measured).
constexpr std::string_view usual_engine = "vllm";

/// A loss, where it is stated and what is assumed else.
struct StatedLoss {
  std::string_view name;
  UncertainValue RooflineLosses::*value;
  std::optional<UncertainValue> HardwareOptions::*stated;
  SourcedRange EfficiencyDefaults::*usual;
};
constexpr std::array<StatedLoss, 7> stated_losses = {
    {{"bandwidth_efficiency", &RooflineLosses::bandwidth_efficiency, &HardwareOptions::bandwidth_efficiency,
      &EfficiencyDefaults::bandwidth_efficiency},
     {"compute_efficiency", &RooflineLosses::compute_efficiency, &HardwareOptions::compute_efficiency,
      &EfficiencyDefaults::compute_efficiency},
     {"link_efficiency", &RooflineLosses::link_efficiency, &HardwareOptions::link_efficiency,
      &EfficiencyDefaults::link_efficiency},
     {"all_reduce_latency_seconds", &RooflineLosses::all_reduce_latency_seconds,
      &HardwareOptions::all_reduce_latency_seconds, &EfficiencyDefaults::all_reduce_latency_seconds},
     {"launch_seconds", &RooflineLosses::launch_seconds, &HardwareOptions::launch_seconds,
      &EfficiencyDefaults::launch_seconds},
     {"layer_seconds", &RooflineLosses::layer_seconds, &HardwareOptions::layer_seconds,
      &EfficiencyDefaults::layer_seconds},
     {"scheduling_seconds", &RooflineLosses::scheduling_seconds, &HardwareOptions::scheduling_seconds,
      &EfficiencyDefaults::scheduling_seconds}}};

/// True for a loss that applies only if accelerators share a model.
bool is_of_all_reduces(const StatedLoss& loss) {
  return loss.value == &RooflineLosses::all_reduce_latency_seconds || loss.value == &RooflineLosses::link_efficiency;
}

/// True for a loss that measured kernels determine.
bool is_measured(const StatedLoss& loss) {
  return is_of_all_reduces(loss) || loss.value == &RooflineLosses::bandwidth_efficiency ||
         loss.value == &RooflineLosses::compute_efficiency;
}

std::string option_of(const StatedLoss& loss) {
  if (loss.value == &RooflineLosses::all_reduce_latency_seconds) return "--all-reduce-latency-us";
  std::string option = fmt::format("--{}", loss.name);
  std::replace(option.begin(), option.end(), '_', '-');
  return option;
}

/// Those that come with the program for a device of its own, unless they say nothing of what is asked for.
std::optional<cost::KernelTimes> usual_kernels(const cost::RooflineOptions& asked, const HardwareOptions& o,
                                               Cost& cost) {
  const std::vector<cost::KernelTimes> known = cost::kernel_times_of(asked.hardware.name);
  const auto usual = std::find_if(known.begin(), known.end(),
                                  [](const cost::KernelTimes& kernels) { return kernels.engine == usual_engine; });
  if (usual == known.end()) return std::nullopt;
  const auto instead = [&](const std::string& why) {
    cost.assumptions.push_back({"kernel_times", fmt::format("{}: {}", no_kernels, why), "default"});
    return std::nullopt;
  };
  for (const StatedLoss& loss : stated_losses)
    if (is_measured(loss) && o.*loss.stated) return instead(option_of(loss) + " is given");
  std::vector<std::int64_t> groups = {asked.target.tensor_parallel};
  if (asked.draft) groups.push_back(asked.draft->tensor_parallel);
  for (const std::int64_t accelerators : groups) {
    if (accelerators == 1 || usual->all_reduce_over(accelerators) != nullptr) continue;
    cost.warnings.push_back(
        {"kernels_left_out", fmt::format("all-reduces over {} accelerators are not among the kernels measured on {} "
                                         "(they are of {}): a roofline prices everything instead, and its times do not "
                                         "compare with those of other numbers of accelerators",
                                         accelerators, usual->device, usual->measured_accelerators())});
    return instead(fmt::format("no all-reduces over {} accelerators were measured", accelerators));
  }
  return preset_kernels(*usual, "default", cost);
}

/// The losses beside measured kernels.
RooflineLosses losses_beside(const cost::KernelTimes& kernels, const HardwareOptions& o, Cost& cost) {
  RooflineLosses losses;
  losses.layer_seconds = {kernels.layer_seconds, kernels.layer_seconds, kernels.layer_seconds};
  losses.scheduling_seconds = {kernels.iteration_seconds, kernels.iteration_seconds, kernels.iteration_seconds};
  for (const StatedLoss& loss : stated_losses) {
    if (!(o.*loss.stated)) continue;
    if (is_measured(loss)) {
      throw QuestionError(fmt::format("{} is given beside --kernel-times, which measured it", option_of(loss)));
    }
    losses.*loss.value = *(o.*loss.stated);
  }
  losses.draft_launch_seconds = o.draft_launch_seconds;
  if (!cost::looks_up(cost.kind) && o.drafts && !o.draft_launch_seconds && !o.launch_seconds) {
    const SourcedRange& assumed = cost::efficiency_defaults().draft_launch_seconds;
    losses.draft_launch_seconds = assumed;
    cost.presets.push_back(used("loss", "draft_launch_seconds", assumed.sources));
  }
  return losses;
}

/// The type of most products of a pass.
NumberType multiplied_type(const cost::PlacedModel& placed) {
  const cost::ModelSpec& model = placed.model;
  const NumberType dense = placed.weight_type.value_or(model.weight_type.value_or(NumberType::bf16));
  if (!cost::has_experts(model) || placed.weight_type) return dense;
  return model.expert_weight_type.value_or(dense);
}

/// @param shared  accelerators share a model, so that there are all-reduces
RooflineLosses losses_of(const HardwareOptions& o, const cost::RooflineOptions& placed, bool shared, Cost& cost) {
  RooflineLosses losses;
  const EfficiencyDefaults& usual = cost::efficiency_defaults();
  for (const StatedLoss& loss : stated_losses) {
    if (o.*loss.stated) {
      losses.*loss.value = *(o.*loss.stated);
      continue;
    }
    if (is_of_all_reduces(loss) && !shared) continue;
    const SourcedRange& assumed = loss.value == &RooflineLosses::compute_efficiency
                                      ? cost::compute_efficiency_for(placed.hardware, multiplied_type(placed.target))
                                      : usual.*loss.usual;
    losses.*loss.value = assumed;
    cost.presets.push_back(used("loss", loss.name, assumed.sources));
  }
  losses.draft_launch_seconds = o.draft_launch_seconds;
  return losses;
}

nlohmann::ordered_json json_of(const UncertainValue& value) {
  if (value.low == value.high) return value.value;
  return fmt::format("{:.4g} ({:.4g}:{:.4g})", value.value, value.low, value.high);
}

bool is_kernel_file(const HardwareOptions& o, const Cost& cost) {
  return o.kernel_times && (cost.specs.kernels.contains(*o.kernel_times) || o.known.kernels.contains(*o.kernel_times));
}

void assume_losses(const HardwareOptions& o, const cost::RooflineOptions& priced, bool shared, Cost& cost) {
  const RooflineLosses& losses = priced.losses;
  const std::string_view source_of_kernels = is_kernel_file(o, cost) ? "file" : "preset";
  for (const StatedLoss& loss : stated_losses) {
    if (is_of_all_reduces(loss) && !shared) continue;
    if (is_measured(loss) && priced.kernels) continue;
    const bool of_kernels = priced.kernels && (loss.value == &RooflineLosses::layer_seconds ||
                                               loss.value == &RooflineLosses::scheduling_seconds);
    cost.assumptions.push_back({std::string(loss.name), json_of(losses.*loss.value),
                                std::string(o.*loss.stated ? "user"
                                            : of_kernels   ? source_of_kernels
                                                           : "default")});
  }
  if (losses.draft_launch_seconds) {
    const char* const source = o.draft_launch_seconds ? "user" : "default";
    cost.assumptions.push_back({"draft_launch_seconds", json_of(*losses.draft_launch_seconds), source});
  }
}

std::string name_of(const TimedIteration& timed) {
  return timed.name.empty() ? fmt::format("the time at batch {}", timed.batch) : timed.name;
}

/// Tokens per step of a timed iteration and of the acceptance may differ by this share beyond the interval.
constexpr double equal_tokens_per_step = 0.05;

/// Empty if the acceptance gives what the iteration states, or ends before its gamma.
std::optional<Note> acceptance_difference(const TimedIteration& timed, const estimate::AcceptanceCurve& acceptance) {
  estimate::TokensPerStep planned;
  try {
    planned = acceptance.tokens_per_step(timed.gamma);
  } catch (const std::domain_error&) {
    return std::nullopt;
  }
  const double stated = *timed.tokens_per_step, within = 1 + equal_tokens_per_step;
  if (planned.ci95.lo <= stated * within && stated <= planned.ci95.hi * within) return std::nullopt;
  return Note{"calibration_acceptance_differs",
              fmt::format("--calibrate: {} was timed at {} tokens per step, where the acceptance gives {}: the time is "
                          "taken for a round's, and speedups are by the acceptance",
                          name_of(timed), brief(stated), brief(planned.value))};
}

CalibrationPoint calibration_point(const TimedIteration& timed, Cost& cost) {
  if (!timed.context) cost.assumptions.push_back({"context of " + name_of(timed), 0, "default"});
  CalibrationPoint point;
  point.batch = timed.batch;
  point.gamma = timed.gamma;
  point.context = timed.context.value_or(0);
  point.round_seconds = timed.seconds * timed.tokens_per_step.value_or(1);
  return point;
}

std::string type_text(const cost::PlacedModel& placed) {
  const cost::ModelSpec& model = placed.model;
  if (placed.weight_type) return std::string(name_of(*placed.weight_type));
  if (model.weight_bytes) return fmt::format("{} bytes", *model.weight_bytes);
  std::string text(name_of(model.weight_type.value_or(NumberType::bf16)));
  if (model.expert_weight_type) text += fmt::format(", experts {}", name_of(*model.expert_weight_type));
  if (model.unquantized_type && model.unquantized_type != model.weight_type) {
    text += fmt::format(", {} {}", model.quantized_head ? "embedding" : "embedding and head",
                        name_of(*model.unquantized_type));
  }
  return text;
}

/// The source of the weights' type.
std::string type_source(const cost::PlacedModel& placed) {
  if (placed.weight_type) return "user";
  const bool stated = placed.model.weight_bytes || placed.model.weight_type;
  return !stated ? "default" : placed.model.sources.empty() ? "file" : "preset";
}

/// The published EAGLE-3 head of a target; empty if there is none.
std::string published_head(const std::string& target) {
  const cost::ModelSpec* const preset = cost::model_preset(target);
  const std::string head = preset ? "eagle3-" + preset->name : "";
  return cost::model_preset(head) != nullptr ? head : "";
}

cost::PlacedModel placed_draft(const HardwareOptions& o, const cost::PlacedModel& target, Cost& cost) {
  const std::string option = draft_option_of(o.draft, "model");
  cost::PlacedModel draft = target;
  if (o.draft.model) {
    draft.model = model_of(option, *o.draft.model, o.known, cost);
    draft.weight_type.reset();
    // Engines use the module of a model that is named as its own draft.
    const bool has_module = !draft.model.next_token_layers.empty();
    if (cost.kind == cost::DraftKind::mtp && has_module) draft.model = cost::next_token_module(draft.model);
  } else if (cost.kind == cost::DraftKind::mtp) {
    if (target.model.next_token_layers.empty()) {
      throw QuestionError(fmt::format("--draft-kind is mtp, but {} has no module for the next token; {} can name one",
                                      target.model.name.empty() ? "the model" : target.model.name, option));
    }
    draft.model = cost::next_token_module(target.model);
  } else {
    const std::string head = published_head(cost.target_model);
    throw QuestionError(fmt::format("{} is missing: --hardware prices the draft by its architecture; {}", option,
                                    head.empty() ? "specdec list models names them" : "its EAGLE-3 head is " + head));
  }
  if (o.draft_weight_dtype) draft.weight_type = o.draft_weight_dtype;
  draft.tensor_parallel = o.draft.tensor_parallel.value_or(draft.tensor_parallel);
  if (!has_experts(draft.model) || draft.accelerators() % draft.expert_parallel != 0) draft.expert_parallel = 1;
  if (draft.tensor_parallel > target.tensor_parallel) {
    refuse("--draft-tensor-parallel-size", fmt::format("{}", draft.tensor_parallel),
           fmt::format("at most --tensor-parallel-size, {}: the draft runs on the target's accelerators",
                       target.tensor_parallel));
  }
  return draft;
}

/// Refuses draft settings if no model drafts.
void refuse_draft(const HardwareOptions& o) {
  const auto refuse_given = [](std::string_view option, bool given) {
    if (given) throw QuestionError(fmt::format("{} is given, but no model drafts", option));
  };
  refuse_given(draft_option_of(o.draft, "model"), o.drafts && o.draft.model);
  refuse_given("--draft-weight-dtype", o.draft_weight_dtype.has_value());
  refuse_given("--draft-tensor-parallel-size", o.draft.tensor_parallel.has_value());
  refuse_given("--draft-launch-seconds", o.draft_launch_seconds.has_value());
}

/// Refuses a layout that does not fit the target.
void require_layout(const cost::PlacedModel& placed) {
  const auto require_experts = [&](std::string_view option, std::int64_t value, std::string_view remedy) {
    if (value == 1 || has_experts(placed.model)) return;
    throw QuestionError(fmt::format("{} is {}, but {} has no experts to share{}", option, value,
                                    placed.model.name.empty() ? "the model" : placed.model.name, remedy));
  };
  require_experts("--data-parallel-size", placed.data_parallel, ": groups that share nothing are --replicas");
  require_experts("--expert-parallel-size", placed.expert_parallel, "");
  if (placed.accelerators() % placed.expert_parallel != 0) {
    refuse("--expert-parallel-size", fmt::format("{}", placed.expert_parallel),
           fmt::format("a divisor of the {} accelerators of the target", placed.accelerators()));
  }
  for (const cost::LayerGroup& group : placed.model.layers) {
    if (group.experts % placed.expert_parallel == 0) continue;
    refuse("--expert-parallel-size", fmt::format("{}", placed.expert_parallel),
           fmt::format("a divisor of the {} experts of a layer", group.experts));
  }
}

void require_link(std::string_view option, const cost::HardwareSpec& hardware, std::int64_t accelerators) {
  if (accelerators == 1 || hardware.link_bytes_per_second) return;
  throw QuestionError(
      fmt::format("{} is {}, but {} has no link_bytes_per_second, which accelerators that share a "
                  "model need; a hardware file can name it",
                  option, accelerators, hardware.name));
}

void require_all_reduces(const cost::KernelTimes& kernels, std::string_view option, std::int64_t accelerators) {
  if (accelerators == 1 || kernels.all_reduce_over(accelerators) != nullptr) return;
  throw QuestionError(
      fmt::format("{} is {}, but the kernels of {} on {} were measured over these numbers of "
                  "accelerators alone: {}",
                  option, accelerators, kernels.engine, kernels.device, kernels.measured_accelerators()));
}

void assume_placement(const HardwareOptions& o, const cost::RooflineOptions& placed, Cost& cost) {
  cost.assumptions.push_back({"weights", type_text(placed.target), type_source(placed.target)});
  if (placed.draft) cost.assumptions.push_back({"draft weights", type_text(*placed.draft), type_source(*placed.draft)});
  cost.assumptions.push_back({"kv cache", name_of(placed.target.cache_type), o.kv_cache_dtype ? "user" : "default"});
  cost.assumptions.push_back(
      {"tensor_parallel", placed.target.tensor_parallel, o.tensor_parallel ? "user" : "default"});
  if (o.data_parallel) cost.assumptions.push_back({"data_parallel", placed.target.data_parallel, "user"});
  if (o.expert_parallel) cost.assumptions.push_back({"expert_parallel", placed.target.expert_parallel, "user"});
  if (placed.target.expert_parallel > 1) {
    cost.assumptions.push_back({"positions of the busiest part of the experts / of the mean one",
                                fmt::format("{:.3g}", std::pow(static_cast<double>(placed.target.expert_parallel),
                                                               cost::RooflineCost::expert_load_exponent)),
                                "default"});
  }
  if (placed.draft && placed.draft->tensor_parallel != placed.target.tensor_parallel) {
    cost.assumptions.push_back({"draft tensor_parallel", placed.draft->tensor_parallel, "user"});
  }
}

}  // namespace

std::string without_link(const cost::HardwareSpec& hardware) {
  if (hardware.link_bytes_per_second) return "";
  return fmt::format(", once joined by a link, of which {} names none (link_bytes_per_second of a hardware file)",
                     hardware.name);
}

Cost Cost::of_hardware(const std::string& hardware, const std::string& model, HardwareOptions o) {
  Cost cost;
  if (o.draft.kind == cost::DraftKind::eagle && !o.draft.model) {
    if (const std::string head = published_head(model); !head.empty()) {
      o.draft.model = head;
      cost.assumptions.push_back({"draft_model", head, "preset"});
    }
  }
  cost.draft = o.draft;
  cost.target_model = model;
  cost.kind = draft_kind(o.draft, model, o.known, true);
  if (auto kind = assumed_kind(o.draft, cost.kind); kind && o.drafts) cost.assumptions.push_back(*std::move(kind));
  cost::RooflineOptions options;
  options.hardware = hardware_of(hardware, o.known, cost);
  if (options.hardware.point_error) options.point_error = options.hardware.point_error->value;
  options.target.model = model_of("--model", model, o.known, cost);
  options.target.tensor_parallel = o.tensor_parallel.value_or(1);
  options.target.data_parallel = o.data_parallel.value_or(1);
  options.target.expert_parallel = o.expert_parallel.value_or(1);
  require_layout(options.target);
  options.target.weight_type = o.weight_dtype;
  options.target.cache_type = o.kv_cache_dtype.value_or(options.target.cache_type);
  options.kind = o.drafts ? cost.kind : cost::DraftKind::ngram;
  if (!cost::looks_up(options.kind)) {
    options.draft = placed_draft(o, options.target, cost);
  } else {
    refuse_draft(o);
  }
  require_link("--tensor-parallel-size", options.hardware, options.target.tensor_parallel);
  require_link("--data-parallel-size", options.hardware, options.target.data_parallel);
  if (options.draft) require_link("--draft-tensor-parallel-size", options.hardware, options.draft->tensor_parallel);
  const bool shared = std::max(options.target.accelerators(), options.draft ? options.draft->accelerators() : 1) > 1;
  if (o.kernel_times == no_kernels) {
    cost.assumptions.push_back({"kernel_times", no_kernels, "user"});
  } else if (o.kernel_times) {
    options.kernels = kernels_of(*o.kernel_times, options.hardware, o.known, cost);
    require_all_reduces(*options.kernels, "--tensor-parallel-size", options.target.tensor_parallel);
    if (options.draft)
      require_all_reduces(*options.kernels, "--draft-tensor-parallel-size", options.draft->tensor_parallel);
  } else if (cost::hardware_preset(hardware) != nullptr) {
    options.kernels = usual_kernels(options, o, cost);
  }
  options.losses = options.kernels ? losses_beside(*options.kernels, o, cost) : losses_of(o, options, shared, cost);
  assume_placement(o, options, cost);

  std::vector<CalibrationPoint> points;
  std::vector<cost::TimedPrompt> prompts;
  for (const TimedIteration& timed : o.calibrate) {
    if (timed.prompt_tokens)
      prompts.push_back({*timed.prompt_tokens, timed.seconds});
    else
      points.push_back(calibration_point(timed, cost));
  }
  auto priced = std::make_shared<cost::RooflineCost>(std::move(options));
  try {
    if (!points.empty()) priced = std::make_shared<cost::RooflineCost>(priced->calibrated(points));
    priced = std::make_shared<cost::RooflineCost>(priced->with_prompts(prompts));
  } catch (const std::domain_error& error) {
    throw QuestionError(fmt::format("--calibrate: {}", error.what()));
  }
  assume_losses(o, priced->options(), shared, cost);
  if (priced->is_calibrated()) cost.assumptions.push_back({"deployment factor", priced->factor(), "fitted"});
  append(cost.warnings, priced->findings());
  cost.words = CostWords{{}, hardware, model, o};
  cost.words->options.known.hardware.insert(cost.specs.hardware.begin(), cost.specs.hardware.end());
  cost.words->options.known.models.insert(cost.specs.models.begin(), cost.specs.models.end());
  cost.words->options.known.kernels.insert(cost.specs.kernels.begin(), cost.specs.kernels.end());
  cost.rounds = cost.roofline = std::move(priced);
  return cost;
}

std::vector<Note> calibration_doubts(const Cost& cost, const Acceptance* acceptance, double context) {
  std::vector<Note> doubts;
  if (!cost.words) return doubts;
  for (const TimedIteration& timed : cost.words->options.calibrate) {
    if (timed.prompt_tokens) continue;
    if (!timed.context && context > 0) {
      doubts.push_back(
          {"calibration_without_context",
           fmt::format("--calibrate: {} says no context and counts as of an empty cache; add context=N, the "
                       "tokens of a prompt and half an answer",
                       name_of(timed))});
    }
    if (timed.gamma == 0 || acceptance == nullptr) continue;
    if (auto difference = acceptance_difference(timed, *acceptance->curve)) {
      doubts.push_back(*std::move(difference));
    } else if (timed.tokens_per_step && acceptance->stated && acceptance->stated->prior != nullptr) {
      doubts.push_back(
          {"prior_beside_measured",
           fmt::format("--calibrate: {0} was timed at {1} tokens per step, and speculation is planned by a "
                       "prior all the same: --acceptance-length {2}:{1} plans by what was measured",
                       name_of(timed), brief(*timed.tokens_per_step), timed.gamma)});
    }
  }
  return doubts;
}

}  // namespace specdec::planner
