#include "cli/commands.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/cost/hardware_spec.hpp"
#include "analysis/cost/kernel_times.hpp"
#include "analysis/cost/model_spec.hpp"
#include "analysis/planning/published_acceptance.hpp"
#include "analysis/planning/published_lengths.hpp"
#include "cli/values.hpp"
#include "planner/near_names.hpp"
#include "render/table.hpp"
#include "render/text.hpp"

namespace specdec::cli {

using namespace render;
namespace {

using cost::HardwareSpec;
using cost::ModelSpec;
using cost::NumberType;
using cost::SourcedNumber;
using nlohmann::ordered_json;
using planning::PublishedAcceptance;
using planning::PublishedLength;
using planning::PublishedPrior;

struct ListOptions {
  std::vector<std::string> names;

  void declare(Options& options) {
    options.arguments("NAME", names, "list these alone, by name or alias", Options::Least::none);
  }
};

constexpr std::string_view sources_told = "--format json has the pages that print them.";

/// Those that were named, in that order; all of them where none was.
/// @param elsewhere  names that another list holds
template <class Preset>
std::vector<const Preset*> chosen(const std::vector<std::string>& names, std::span<const Preset> all,
                                  const Preset* (*find)(std::string_view),
                                  const std::vector<std::string>& elsewhere = {}) {
  std::vector<const Preset*> presets;
  for (const std::string& name : names) {
    presets.push_back(find(name));
    if (presets.back() != nullptr) continue;
    std::vector<std::string> known = elsewhere;
    for (const Preset& preset : all) {
      known.push_back(preset.name);
      if constexpr (requires { preset.aliases; }) {
        known.insert(known.end(), preset.aliases.begin(), preset.aliases.end());
      }
    }
    refuse("NAME", name, "a name or an alias of the list" + planner::near_names(name, known));
  }
  if (names.empty()) {
    for (const Preset& preset : all) presets.push_back(&preset);
  }
  return presets;
}

// ------------------------------------------------------------------------------------------------------- hardware

struct Figure {
  std::string name;
  std::optional<SourcedNumber> number;
};

constexpr std::string_view peak_types[] = {"fp64", "fp32", "fp16", "bf16", "fp8", "int8", "fp4"};

std::optional<SourcedNumber> peak(const HardwareSpec& hardware, std::string_view type) {
  const auto found = hardware.peak_flops.find(std::string(type));
  return found == hardware.peak_flops.end() ? std::nullopt : std::optional(found->second);
}

/// Every figure, in the order of the output; the peaks as peak_flops_bf16, ...
std::vector<Figure> figures_of(const HardwareSpec& hardware) {
  std::vector<Figure> figures = {{"memory_bytes", hardware.memory_bytes},
                                 {"memory_bandwidth_bytes_per_second", hardware.memory_bandwidth_bytes_per_second}};
  for (const std::string_view type : peak_types)
    figures.push_back({fmt::format("peak_flops_{}", type), peak(hardware, type)});
  figures.push_back({"link_bytes_per_second", hardware.link_bytes_per_second});
  figures.push_back({"watts", hardware.watts});
  figures.push_back({"gpus_per_node", hardware.gpus_per_node});
  figures.push_back({"point_error", hardware.point_error});
  return figures;
}

bool has_kernel_times(const HardwareSpec& hardware) {
  const std::vector<std::string> devices = cost::devices_with_kernel_times();
  return std::find(devices.begin(), devices.end(), hardware.name) != devices.end();
}

ordered_json json_of(const HardwareSpec& hardware) {
  ordered_json json = {{"name", hardware.name}, {"aliases", hardware.aliases}, {"vendor", hardware.vendor}};
  ordered_json sources = ordered_json::array();
  for (const auto& [name, number] : figures_of(hardware)) {
    json[name] = number ? ordered_json(number->value) : ordered_json();
    if (!number) continue;
    sources.push_back(
        {{"figure", name},
         {"source", number->source},
         {"note", number->note},
         {"second_source", number->second_source.empty() ? ordered_json() : ordered_json(number->second_source)}});
  }
  json["kernel_times"] = has_kernel_times(hardware);
  json["sources"] = std::move(sources);
  return json;
}

/// A figure in this unit.
std::string cell(const std::optional<SourcedNumber>& number, double unit) {
  return number ? brief(number->value / unit) : "-";
}

std::string text_of(const std::vector<const HardwareSpec*>& presets) {
  const auto figure = [](std::string heading, auto number, double unit) {
    return Column<const HardwareSpec*>{
        std::move(heading), [=](const auto* hardware) { return cell(std::invoke(number, *hardware), unit); }};
  };
  const auto peak_of = [](std::string_view type) {
    return [type](const HardwareSpec& hardware) { return peak(hardware, type); };
  };
  std::string text =
      text_of(make_table(presets, {{"hardware", {Align::left}, [](const auto* hardware) { return hardware->name; }},
                                   figure("memory GB", &HardwareSpec::memory_bytes, 1e9),
                                   figure("GB/s", &HardwareSpec::memory_bandwidth_bytes_per_second, 1e9),
                                   figure("bf16 TFLOP/s", peak_of("bf16"), 1e12),
                                   figure("fp8 TFLOP/s", peak_of("fp8"), 1e12),
                                   figure("link GB/s", &HardwareSpec::link_bytes_per_second, 1e9),
                                   figure("watts", &HardwareSpec::watts, 1)})) +
      "\nPeaks are dense; the link is one accelerator's, in each direction. 1 GB is 10^9 bytes.\n";
  std::vector<std::string> measured;
  for (const HardwareSpec* const hardware : presets)
    if (has_kernel_times(*hardware)) measured.push_back(hardware->name);
  if (!measured.empty()) {
    const char* const others = measured.size() < presets.size() ? "; the others are priced by the roofline" : "";
    text +=
        wrapped(fmt::format("--kernel-times has measured kernels of {}{}.", fmt::join(measured, ", "), others)) + "\n";
  }
  return text;
}

// --------------------------------------------------------------------------------------------------------- models

ordered_json name_or_null(const std::optional<NumberType>& type) {
  return type ? ordered_json(name_of(*type)) : ordered_json();
}

double kv_bytes_per_token(const ModelSpec& model) {
  return static_cast<double>(cached_values_per_token(model)) * cost::stored_bits(NumberType::bf16) / 8;
}

/// The model's layers taken together; null without layers, and for a model whose shape is not published.
ordered_json json_of_layers(const ModelSpec& model) {
  std::int64_t layers = 0, windowed_layers = 0;
  ordered_json window, experts, experts_per_token;
  for (const cost::LayerGroup& group : model.layers) {
    layers += group.count;
    if (group.window) {
      windowed_layers += group.count;
      window = *group.window;
    }
    if (group.experts > 0) {
      experts = group.experts;
      experts_per_token = group.experts_per_token;
    }
  }
  const bool known = has_shape(model);
  return {{"layers", known ? ordered_json(layers) : ordered_json()},
          {"windowed_layers", known ? ordered_json(windowed_layers) : ordered_json()},
          {"window", window},
          {"experts", experts},
          {"experts_per_token", experts_per_token}};
}

std::int64_t parameters_of(const ModelSpec& model) { return model.stated_parameters.value_or(total_parameters(model)); }

ordered_json json_of(const ModelSpec& model) {
  const auto if_known = [&](auto value) { return has_shape(model) ? ordered_json(value) : ordered_json(); };
  ordered_json next_token;
  if (!model.next_token_layers.empty()) next_token = total_parameters(next_token_module(model));
  ordered_json json = {{"name", model.name},
                       {"aliases", model.aliases},
                       {"model_type", if_known(model.model_type)},
                       {"parameters", parameters_of(model)},
                       {"active_parameters", if_known(active_parameters(model))},
                       {"next_token_parameters", next_token},
                       {"kv_bytes_per_token", if_known(kv_bytes_per_token(model))},
                       {"max_context", model.max_context ? ordered_json(*model.max_context) : ordered_json()}};
  json.update(json_of_layers(model));
  json.update({{"width", if_known(model.width)},
               {"vocabulary", if_known(model.vocabulary)},
               {"weight_dtype", name_or_null(model.weight_type)},
               {"expert_weight_dtype", name_or_null(model.expert_weight_type)},
               {"sources", model.sources}});
  return json;
}

/// "494M", "70.6B", "1.03T".
std::string parameters_text(std::int64_t parameters) {
  const auto count = static_cast<double>(parameters);
  if (count < 999.5e6) return brief(count / 1e6, 3) + 'M';
  return count < 999.5e9 ? brief(count / 1e9, 3) + 'B' : brief(count / 1e12, 3) + 'T';
}

std::string weights_text(const ModelSpec& model) {
  std::string text(model.weight_type ? name_of(*model.weight_type) : "-");
  if (model.expert_weight_type && model.expert_weight_type != model.weight_type)
    text += fmt::format(", experts {}", name_of(*model.expert_weight_type));
  return text;
}

std::string text_of(const std::vector<const ModelSpec*>& presets) {
  const Table table = make_table(
      presets,
      {{"model", {Align::left}, [](const auto* model) { return model->name; }},
       {"parameters", [](const auto* model) { return parameters_text(parameters_of(*model)); }},
       {"active",
        [](const auto* model) { return has_shape(*model) ? parameters_text(active_parameters(*model)) : "-"; }},
       {"KV kB per token",
        [](const auto* model) { return has_shape(*model) ? brief(kv_bytes_per_token(*model) / 1e3) : "-"; }},
       {"context", [](const auto* model) { return model->max_context ? fmt::format("{}", *model->max_context) : "-"; }},
       {"weights", {Align::left}, [](const auto* model) { return weights_text(*model); }}});
  const bool is_shapeless =
      std::any_of(presets.begin(), presets.end(), [](const ModelSpec* model) { return !has_shape(*model); });
  return text_of(table) + '\n' +
         wrapped(
             "Active: what one token is multiplied by, the head included. KV in bf16, over all layers; layers with "
             "a window keep no more than that, and states of linear attention are beside it. Weights as the "
             "configuration stores them." +
             std::string(is_shapeless ? " A model with dashes cannot be priced: nobody published its shape." : "")) +
         '\n';
}

// ---------------------------------------------------------------------------------------------- published acceptance

ordered_json json_of(const PublishedAcceptance& published) {
  const auto measured = [&](auto planning::PublishedSpeed::*member) {
    return published.measured ? ordered_json((*published.measured).*member) : ordered_json();
  };
  return {{"name", published.name},
          {"task", published.task},
          {"target_model", published.target_model},
          {"draft_model", published.draft_model},
          {"temperature", published.temperature},
          {"lenience", published.lenience},
          {"alpha", published.alpha},
          {"alpha_interval", {published.interval.low.alpha(), published.interval.high.alpha()}},
          {"tokens", published.tokens},
          {"gamma", measured(&planning::PublishedSpeed::gamma)},
          {"c", measured(&planning::PublishedSpeed::c)},
          {"measured_speedup", measured(&planning::PublishedSpeed::speed)},
          {"expected_speedup", measured(&planning::PublishedSpeed::expected)},
          {"where", published.where},
          {"source", published.source}};
}

ordered_json json_of(const PublishedPrior& prior) {
  ordered_json lengths = ordered_json::array();
  for (const planning::PriorLength& length : prior.lengths) {
    lengths.push_back({{"gamma", length.gamma},
                       {"tokens_per_step", {{"value", length.tokens_per_step}, {"ci95", pair_of(length.ci95)}}}});
  }
  return {{"name", prior.name},
          {"kind", prior.kind},
          {"target_model", prior.target_model ? ordered_json(*prior.target_model) : ordered_json()},
          {"figures", prior.figures.size()},
          {"deployments", prior.deployments},
          {"figures_of_kind", prior.figures_of_kind},
          {"deployments_of_kind", prior.deployments_of_kind},
          {"targets_of_kind", prior.targets_of_kind},
          {"task_spread", prior.task_spread},
          {"deployment_spread", prior.deployment_spread},
          {"target_spread", prior.target_spread},
          {"lengths", std::move(lengths)}};
}

/// One row for each gamma.
void add_rows(const PublishedLength& figure, ordered_json& rows) {
  for (const auto& [gamma, tokens] : figure.tokens_per_step) {
    rows.push_back({{"method", figure.method},
                    {"target_model", figure.target_model},
                    {"draft_model", figure.draft_model},
                    {"task", figure.task},
                    {"temperature", figure.temperature ? ordered_json(*figure.temperature) : ordered_json()},
                    {"gamma", gamma},
                    {"tokens_per_step", tokens},
                    {"where", figure.where},
                    {"source", figure.source}});
  }
}

std::string text_of(const std::vector<const PublishedPrior*>& priors) {
  std::vector<Column<const PublishedPrior*>> columns = {
      {"prior", {Align::left}, [](const auto* prior) { return prior->name; }},
      {"figures", [](const auto* prior) { return fmt::format("{}", prior->figures.size()); }},
      {"drafts", [](const auto* prior) { return fmt::format("{}", prior->deployments); }}};
  for (std::size_t i = 0; i < std::size(planning::prior_gammas); ++i) {
    columns.push_back({fmt::format("at {}", planning::prior_gammas[i]),
                       [i](const auto* prior) { return fixed(prior->lengths[i].tokens_per_step, 2); }});
    columns.push_back({"95%", [i](const auto* prior) {
                         const auto& [lo, hi] = prior->lengths[i].ci95;
                         return fmt::format("{:.2f} to {:.2f}", lo, hi);
                       }});
  }
  return text_of(make_table(priors, columns)) + '\n' +
         wrapped(
             "Tokens per step at a gamma: priors say what a head not yet measured may accept on a task of its own, "
             "from published acceptance lengths of its kind; names are the kind and the target, or the kind alone "
             "for any other target. --draft-model takes the one of its head where no acceptance is given.") +
         '\n';
}

std::string text_of(const std::vector<const PublishedAcceptance*>& presets) {
  const Table table = make_table(
      presets, {{"acceptance", {Align::left}, [](const auto* p) { return p->name; }},
                {"target", {Align::left}, [](const auto* p) { return p->target_model; }},
                {"draft", {Align::left}, [](const auto* p) { return p->draft_model; }},
                {"alpha", [](const auto* p) { return brief(p->alpha); }},
                {"95%",
                 [](const auto* p) {
                   return fmt::format("{:.3f} to {:.3f}", p->interval.low.alpha(), p->interval.high.alpha());
                 }},
                {"gamma", [](const auto* p) { return p->measured ? fmt::format("{}", p->measured->gamma) : "-"; }},
                {"c", [](const auto* p) { return p->measured ? brief(p->measured->c) : "-"; }},
                {"speedup", [](const auto* p) { return p->measured ? fixed(p->measured->speed, 1) : "-"; }}});
  return text_of(table) + '\n' +
         wrapped(
             "Names are task, draft and temperature, and l the lenience. Printed rates are known to half a unit of "
             "their last digit and as well as their tokens tell, where these are independent; of the pair that "
             "comes with the program the interval is that of its recording.") +
         '\n';
}

// ------------------------------------------------------------------------------------------------------- commands

template <class Preset>
Report list(const std::string& key, std::string_view one, const std::vector<const Preset*>& presets) {
  Report report;
  ordered_json& rows = report.json[key] = ordered_json::array();
  for (const Preset* const preset : presets) rows.push_back(json_of(*preset));
  report.spoken = render::said(fmt::format("{}.", counted(std::ssize(presets), one)), std::string(sources_told),
                               '\n' + text_of(presets));
  return report;
}

/// Rates and priors, and the figures behind these.
Report list_published(const ListOptions& options, const Options&) {
  ListOptions rates = options, priors = options;
  const auto is_prior = [](const std::string& name) { return planning::published_prior(name) != nullptr; };
  std::erase_if(rates.names, is_prior);
  std::erase_if(priors.names, [&](const std::string& name) { return !is_prior(name); });
  std::vector<const PublishedAcceptance*> of_rates;
  std::vector<const PublishedPrior*> of_lengths;
  if (!rates.names.empty() || options.names.empty()) {
    std::vector<std::string> names;
    for (const PublishedPrior& prior : planning::published_priors()) names.push_back(prior.name);
    of_rates = chosen(rates.names, planning::published_acceptances(), planning::published_acceptance, names);
  }
  if (!priors.names.empty() || options.names.empty()) {
    of_lengths = chosen(priors.names, planning::published_priors(), planning::published_prior);
  }
  Report report;
  ordered_json& json = report.json;
  json = {{"published", ordered_json::array()}, {"priors", ordered_json::array()}, {"lengths", ordered_json::array()}};
  for (const PublishedAcceptance* const rate : of_rates) json["published"].push_back(json_of(*rate));
  std::set<const PublishedLength*> figures;
  for (const PublishedPrior* const prior : of_lengths) {
    json["priors"].push_back(json_of(*prior));
    figures.insert(prior->figures.begin(), prior->figures.end());
  }
  for (const PublishedLength* const figure : figures) add_rows(*figure, json["lengths"]);
  report.spoken = render::said(
      fmt::format("{} and {}.", counted(std::ssize(of_rates), "rate"), counted(std::ssize(of_lengths), "prior")),
      std::string(sources_told));
  std::string& text = report.spoken.note = "\n";
  if (!of_rates.empty()) text += text_of(of_rates);
  if (!of_rates.empty() && !of_lengths.empty()) text += '\n';
  if (!of_lengths.empty()) text += text_of(of_lengths);
  return report;
}

}  // namespace

Command list_hardware_command() {
  return {"list hardware",
          "Devices that --hardware knows by name",
          {{"hardware", "/hardware"}, {"sources", "/hardware/*/sources", {"name"}}},
          setup_of<ListOptions>([](const ListOptions& o, const Options&) {
            return list("hardware", "device", chosen(o.names, cost::hardware_presets(), cost::hardware_preset));
          })};
}

Command list_models_command() {
  return {"list models",
          "Models that --model and --draft-model know by name",
          {{"models", "/models"}},
          setup_of<ListOptions>([](const ListOptions& o, const Options&) {
            return list("models", "model", chosen(o.names, cost::model_presets(), cost::model_preset));
          })};
}

Command list_published_command() {
  return {"list published",
          "Acceptance that --published knows by name: rates, and priors from lengths",
          {{"published", "/published"},
           {"priors", "/priors"},
           {"prior_lengths", "/priors/*/lengths", {"name"}},
           {"lengths", "/lengths"}},
          setup_of<ListOptions>(list_published)};
}

}  // namespace specdec::cli
