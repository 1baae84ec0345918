#include "cli/roofline_options.hpp"

#include <fmt/format.h>
#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <span>

#include "cli/near_names.hpp"
#include "cli/usage_error.hpp"
#include "cli/values.hpp"

namespace specdec::cli {
namespace {

using cost::CalibrationPoint;
using cost::NumberType;
using cost::SourcedRange;
using cost::UncertainValue;

constexpr std::int64_t largest_tensor_parallel = 1024;
constexpr std::int64_t largest_calibrated_gamma = 1'000'000;
constexpr Range share = {1e-6, 1.0};
constexpr Range positive_number = {.lo_open = true};

/// "0.7" or "0.6:0.9", whose value is the middle.
UncertainValue uncertain_value(std::string_view option, const std::string& text, const Range& range) {
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

nlohmann::ordered_json preset_json(std::string_view kind, std::string_view name, const std::vector<std::string>& all) {
  std::vector<std::string> sources;
  for (const std::string& source : all) {
    if (!source.empty() && std::find(sources.begin(), sources.end(), source) == sources.end())
      sources.push_back(source);
  }
  return {{"kind", kind}, {"name", name}, {"sources", sources}};
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
std::vector<std::string> names_of(std::span<const Preset> presets) {
  std::vector<std::string> names;
  for (const Preset& preset : presets) {
    names.push_back(preset.name);
    names.insert(names.end(), preset.aliases.begin(), preset.aliases.end());
  }
  return names;
}

cost::HardwareSpec hardware_of(const std::string& name, const NamedSpecs& known, PricedRoofline& priced) {
  if (const cost::HardwareSpec* const preset = cost::hardware_preset(name)) {
    priced.presets.push_back(preset_json("hardware", preset->name, sources_of(*preset)));
    if (name != preset->name) priced.assumptions.push_back({"hardware", preset->name, "preset"});
    return *preset;
  }
  if (const auto spec = known.hardware.find(name); spec != known.hardware.end()) return spec->second;
  if (!std::filesystem::exists(name)) {
    refuse("--hardware", name,
           "a file or one of `specdec list hardware`" + near_names(name, names_of(cost::hardware_presets())));
  }
  priced.files.push_back(name);
  return priced.specs.hardware[name] = cost::read_hardware_spec(name);
}

cost::ModelSpec model_of(std::string_view option, const std::string& name, const NamedSpecs& known,
                         PricedRoofline& priced) {
  if (const cost::ModelSpec* const preset = cost::model_preset(name)) {
    priced.presets.push_back(preset_json("model", preset->name, preset->sources));
    if (name != preset->name) priced.assumptions.push_back({std::string(option.substr(2)), preset->name, "preset"});
    return *preset;
  }
  if (const auto spec = known.models.find(name); spec != known.models.end()) return spec->second;
  if (!std::filesystem::exists(name)) {
    refuse(option, name,
           "a config.json, its folder, a GGUF file or one of `specdec list models`" +
               near_names(name, names_of(cost::model_presets())));
  }
  const std::filesystem::path path = name;
  cost::ModelSpec model = priced.specs.models[name] = cost::read_model_spec(path);
  if (!std::filesystem::is_directory(path)) {
    priced.files.push_back(name);
    return model;
  }
  for (const char* file : {"config.json", "model.safetensors.index.json"})
    if (std::filesystem::exists(path / file)) priced.files.push_back((path / file).string());
  return model;
}

/// A loss with the option that states it and what is assumed else.
struct StatedLoss {
  std::string_view name;
  UncertainValue cost::RooflineLosses::*value;
  std::string_view option;
  std::optional<std::string> RooflineArguments::*text;
  SourcedRange cost::EfficiencyDefaults::*usual;
  Range range;
  /// Of the option's unit, in that of the loss.
  double unit = 1;
};
using cost::EfficiencyDefaults;
using cost::RooflineLosses;
const std::array<StatedLoss, 7> stated_losses = {
    {{"bandwidth_efficiency", &RooflineLosses::bandwidth_efficiency, "--bandwidth-efficiency",
      &RooflineArguments::bandwidth_efficiency, &EfficiencyDefaults::bandwidth_efficiency, share},
     {"compute_efficiency", &RooflineLosses::compute_efficiency, "--compute-efficiency",
      &RooflineArguments::compute_efficiency, &EfficiencyDefaults::compute_efficiency, share},
     {"link_efficiency", &RooflineLosses::link_efficiency, "--link-efficiency", &RooflineArguments::link_efficiency,
      &EfficiencyDefaults::link_efficiency, share},
     {"all_reduce_latency_seconds", &RooflineLosses::all_reduce_latency_seconds, "--all-reduce-latency-us",
      &RooflineArguments::all_reduce_latency_us, &EfficiencyDefaults::all_reduce_latency_seconds, Range{}, 1e-6},
     {"launch_seconds", &RooflineLosses::launch_seconds, "--launch-seconds", &RooflineArguments::launch_seconds,
      &EfficiencyDefaults::launch_seconds, Range{}},
     {"layer_seconds", &RooflineLosses::layer_seconds, "--layer-seconds", &RooflineArguments::layer_seconds,
      &EfficiencyDefaults::layer_seconds, Range{}},
     {"scheduling_seconds", &RooflineLosses::scheduling_seconds, "--scheduling-seconds",
      &RooflineArguments::scheduling_seconds, &EfficiencyDefaults::scheduling_seconds, Range{}}}};

/// Where accelerators share a model.
bool is_of_all_reduces(const StatedLoss& loss) {
  return loss.value == &RooflineLosses::all_reduce_latency_seconds || loss.value == &RooflineLosses::link_efficiency;
}

/// @param shared  accelerators share a model, so that there are all-reduces
RooflineLosses losses_of(const RooflineArguments& a, bool shared, PricedRoofline& priced) {
  RooflineLosses losses;
  const EfficiencyDefaults& usual = cost::efficiency_defaults();
  for (const StatedLoss& loss : stated_losses) {
    UncertainValue& value = losses.*loss.value;
    if (const std::optional<std::string>& text = a.*loss.text) {
      value = uncertain_value(loss.option, *text, loss.range);
      value = {value.low * loss.unit, value.value * loss.unit, value.high * loss.unit};
      continue;
    }
    if (is_of_all_reduces(loss) && !shared) continue;
    const SourcedRange& assumed = usual.*loss.usual;
    value = {assumed.low, assumed.value, assumed.high};
    priced.presets.push_back(preset_json("loss", loss.name, assumed.sources));
  }
  if (a.draft_launch_seconds) {
    losses.draft_launch_seconds = uncertain_value("--draft-launch-seconds", *a.draft_launch_seconds, {});
  }
  return losses;
}

nlohmann::ordered_json value_json(const UncertainValue& value) {
  if (value.low == value.high) return value.value;
  return fmt::format("{:.4g} ({:.4g}:{:.4g})", value.value, value.low, value.high);
}

void assume_losses(const RooflineArguments& a, const RooflineLosses& losses, bool shared, PricedRoofline& priced) {
  for (const StatedLoss& loss : stated_losses) {
    if (is_of_all_reduces(loss) && !shared) continue;
    const bool by_user = (a.*loss.text).has_value() || !a.calibrate.empty();
    priced.assumptions.push_back(
        {std::string(loss.name), value_json(losses.*loss.value), by_user ? "user" : "default"});
  }
  if (losses.draft_launch_seconds) {
    priced.assumptions.push_back({"draft_launch_seconds", value_json(*losses.draft_launch_seconds), "user"});
  }
}

/// "batch=8,tpot_ms=15.9,gamma=3,tokens_per_step=2.6,context=1000".
CalibrationPoint calibration_point(const std::string& text, PricedRoofline& priced) {
  constexpr std::string_view option = "--calibrate";
  CalibrationPoint point;
  std::optional<double> milliseconds, tokens;
  std::set<std::string_view> keys;
  for (const std::string_view part : split(text, ',')) {
    const std::size_t equals = part.find('=');
    const std::string_view key = part.substr(0, equals);
    const std::string_view value = equals == std::string_view::npos ? "" : part.substr(equals + 1);
    if (!keys.insert(key).second) refuse(option, text, fmt::format("a list that has {} once", key));
    const std::string name = fmt::format("{} in {}", key, option);
    if (key == "batch") {
      point.batch = parse_number(name, value, positive_number);
    } else if (key == "tpot_ms") {
      milliseconds = parse_number(name, value, positive_number);
    } else if (key == "gamma") {
      point.gamma = parse_integer(name, value, 0, largest_calibrated_gamma);
    } else if (key == "tokens_per_step") {
      tokens = parse_number(name, value, {.lo = 1});
    } else if (key == "context") {
      point.context = parse_number(name, value, {});
    } else {
      refuse(option, part, "KEY=VALUE with a key of batch, tpot_ms, gamma, tokens_per_step, context");
    }
  }
  if (keys.count("batch") == 0 || !milliseconds) refuse(option, text, "a list that has batch=B,tpot_ms=T");
  if (point.gamma > 0 && !tokens) refuse(option, text, "a list that has tokens_per_step beside gamma");
  if (tokens.value_or(1) > static_cast<double>(point.gamma) + 1) {
    refuse(option, text, fmt::format("a list whose tokens_per_step is at most gamma + 1, {}", point.gamma + 1));
  }
  if (keys.count("context") == 0) priced.assumptions.push_back({"context of " + text, 0, "default"});
  point.round_seconds = 1e-3 * *milliseconds * tokens.value_or(1);
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

/// Where the type of the weights comes from.
std::string type_source(const cost::PlacedModel& placed) {
  if (placed.weight_type) return "user";
  const bool stated = placed.model.weight_bytes || placed.model.weight_type;
  return !stated ? "default" : placed.model.sources.empty() ? "file" : "preset";
}

cost::PlacedModel draft_of(const RooflineArguments& a, const RooflineModels& models, const cost::PlacedModel& target,
                           PricedRoofline& priced) {
  cost::PlacedModel draft = target;
  if (models.draft) {
    draft.model = model_of(models.draft_option, *models.draft, a.known, priced);
    draft.weight_type.reset();
    // Engines take the module of a model that is named as its own draft.
    const bool has_module = !draft.model.next_token_layers.empty();
    if (models.kind == cost::DraftKind::mtp && has_module) draft.model = cost::next_token_module(draft.model);
  } else if (models.kind == cost::DraftKind::mtp) {
    if (target.model.next_token_layers.empty()) {
      throw UsageError(fmt::format("--draft-kind is mtp, but {} has no module for the next token; {} can name one",
                                   target.model.name.empty() ? "the model" : target.model.name, models.draft_option));
    }
    draft.model = cost::next_token_module(target.model);
  } else {
    throw UsageError(
        fmt::format("{} is missing: --hardware prices the draft by its architecture", models.draft_option));
  }
  if (a.draft_weight_dtype) draft.weight_type = number_type("--draft-weight-dtype", *a.draft_weight_dtype);
  if (a.draft_tensor_parallel) draft.tensor_parallel = *a.draft_tensor_parallel;
  if (models.draft_tensor_parallel) draft.tensor_parallel = *models.draft_tensor_parallel;
  return draft;
}

}  // namespace

void declare(Options& options, RooflineArguments& a) {
  options.group("Hardware");
  options.text("--hardware,--gpu", a.hardware, "NAME|FILE",
               "prices --model and --draft-model on it: a name of\n`specdec list hardware`, or a file");
  options.integer("--tensor-parallel-size,--tp", a.tensor_parallel, {1, largest_tensor_parallel},
                  "accelerators that share the target [1]");
  options.integer("--draft-tensor-parallel-size", a.draft_tensor_parallel, {1, largest_tensor_parallel},
                  "accelerators that share the draft [as the target]");
  options.text("--weight-dtype", a.weight_dtype, "TYPE",
               "fp32, fp16, bf16, fp8, int8, int4, nvfp4, mxfp4\n[what the model's file says, else bf16]");
  options.text("--draft-weight-dtype", a.draft_weight_dtype, "TYPE", "the same of the draft");
  options.text("--kv-cache-dtype", a.kv_cache_dtype, "TYPE", "of the cached keys and values [bf16]");
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
      {"--draft-tensor-parallel-size", a.draft_tensor_parallel.has_value()},
      {"--weight-dtype", a.weight_dtype.has_value()},
      {"--draft-weight-dtype", a.draft_weight_dtype.has_value()},
      {"--kv-cache-dtype", a.kv_cache_dtype.has_value()}};
  for (const StatedLoss& loss : stated_losses) given.emplace_back(loss.option, (a.*loss.text).has_value());
  given.emplace_back("--draft-launch-seconds", a.draft_launch_seconds.has_value());
  given.emplace_back("--calibrate", !a.calibrate.empty());
  return given;
}

PricedRoofline roofline_from(const RooflineArguments& a, const RooflineModels& models) {
  if (!a.hardware) throw UsageError("--hardware is missing: what the models run on");
  if (!models.target) throw UsageError(fmt::format("{} is missing: --hardware prices it", models.target_option));
  PricedRoofline priced;
  cost::RooflineOptions options;
  options.hardware = hardware_of(*a.hardware, a.known, priced);
  options.target.model = model_of(models.target_option, *models.target, a.known, priced);
  options.target.tensor_parallel = a.tensor_parallel.value_or(1);
  if (a.weight_dtype) options.target.weight_type = number_type("--weight-dtype", *a.weight_dtype);
  if (a.kv_cache_dtype) options.target.cache_type = number_type("--kv-cache-dtype", *a.kv_cache_dtype);
  options.kind = models.drafts ? models.kind : cost::DraftKind::ngram;
  if (options.kind != cost::DraftKind::ngram) {
    options.draft = draft_of(a, models, options.target, priced);
  } else {
    const auto refuse_model = [](std::string_view option, bool given) {
      if (given) throw UsageError(fmt::format("{} is given, but no model drafts", option));
    };
    refuse_model(models.draft_option, models.drafts && models.draft);
    refuse_model("--draft-weight-dtype", a.draft_weight_dtype.has_value());
    refuse_model("--draft-tensor-parallel-size", a.draft_tensor_parallel.has_value());
    refuse_model("--draft-launch-seconds", a.draft_launch_seconds.has_value());
  }
  const auto require_link = [&](std::string_view option, std::int64_t accelerators) {
    if (accelerators == 1 || options.hardware.link_bytes_per_second) return;
    throw UsageError(
        fmt::format("{} is {}, but {} has no link_bytes_per_second, which accelerators that share a model "
                    "need; a hardware file can name it",
                    option, accelerators, options.hardware.name));
  };
  require_link("--tensor-parallel-size", options.target.tensor_parallel);
  if (options.draft) require_link("--draft-tensor-parallel-size", options.draft->tensor_parallel);
  const bool shared = std::max(options.target.tensor_parallel, options.draft ? options.draft->tensor_parallel : 1) > 1;
  options.losses = losses_of(a, shared, priced);

  priced.assumptions.push_back({"weights", type_text(options.target), type_source(options.target)});
  if (options.draft) {
    priced.assumptions.push_back({"draft weights", type_text(*options.draft), type_source(*options.draft)});
  }
  priced.assumptions.push_back({"kv cache", name_of(options.target.cache_type), a.kv_cache_dtype ? "user" : "default"});
  priced.assumptions.push_back(
      {"tensor_parallel", options.target.tensor_parallel, a.tensor_parallel ? "user" : "default"});
  if (options.draft && options.draft->tensor_parallel != options.target.tensor_parallel) {
    priced.assumptions.push_back({"draft tensor_parallel", options.draft->tensor_parallel, "user"});
  }

  std::vector<CalibrationPoint> points;
  for (const std::string& text : a.calibrate) points.push_back(calibration_point(text, priced));
  auto cost = std::make_shared<cost::RooflineCost>(std::move(options));
  if (!points.empty()) cost = std::make_shared<cost::RooflineCost>(cost->calibrated(points));
  assume_losses(a, cost->options().losses, shared, priced);
  for (const cost::CostFinding& finding : cost->findings()) priced.warnings.push_back({finding.code, finding.message});
  priced.cost = std::move(cost);
  return priced;
}

}  // namespace specdec::cli
