#include "analysis/cost/hardware_spec.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "analysis/core/checks.hpp"
#include "analysis/cost/preset_files.hpp"
#include "analysis/cost/preset_names.hpp"
#include "traces/formats/config_fields.hpp"
#include "traces/formats/streams.hpp"

namespace specdec::cost {
namespace {

using traces::ConfigFields;
using traces::FieldRange;

/// From a microcontroller to more than a wafer: what lies outside was written in another unit, TB/s or TFLOP/s.
constexpr FieldRange plausible_memory = {1e4, 1e18, "a number of bytes"};
constexpr FieldRange plausible_bandwidth = {1e6, 1e20, "a number of bytes/s"};
constexpr FieldRange plausible_link = {1e4, 1e20, "a number of bytes/s"};
constexpr FieldRange plausible_peak = {1e5, 1e24, "a number of FLOP/s"};

constexpr std::array<std::string_view, 7> peak_names = {"bf16", "fp16", "fp32", "fp4", "fp64", "fp8", "int8"};

/// Where one is looked for, from the first.
std::vector<std::string_view> peaks_of(NumberType type) {
  switch (type) {
    case NumberType::fp32:
      return {"fp32"};
    case NumberType::fp16:
      return {"fp16", "bf16", "fp32"};
    case NumberType::bf16:
    case NumberType::int4:
      return {"bf16", "fp16", "fp32"};
    case NumberType::fp8:
      return {"fp8", "bf16", "fp16", "fp32"};
    case NumberType::int8:
      return {"int8", "bf16", "fp16", "fp32"};
    case NumberType::nvfp4:
    case NumberType::mxfp4:
      return {"fp4", "bf16", "fp16", "fp32"};
  }
  throw std::logic_error("peaks_of: no such number type");
}

/// @param sources_needed  true for a preset: no figure without its address
SourcedNumber figure_of(const ConfigFields& fields, const char* key, const FieldRange& range, bool sources_needed) {
  if (!sources_needed && !fields.is_object(key)) return {.value = fields.number(key, range)};
  const ConfigFields its = fields.object(key);
  its.require_keys({"value", "quoted", "source", "second_quoted", "second_source", "note"});
  return {.value = its.number("value", range),
          .source = sources_needed ? its.word("source") : its.word("source", ""),
          .note = its.word("note", ""),
          .quoted = its.word("quoted", ""),
          .second_source = its.word("second_source", ""),
          .second_quoted = its.word("second_quoted", "")};
}

HardwareSpec hardware_of(std::string_view text, const std::filesystem::path& path, bool sources_needed) {
  const nlohmann::json document = traces::parse_config(text, path);
  const ConfigFields fields(path, document);
  fields.require_keys({"name", "aliases", "vendor", "memory_bytes", "memory_bandwidth_bytes_per_second", "peak_flops",
                       "link_bytes_per_second", "watts", "gpus_per_node", "point_error"});
  const auto needed = [&](const char* key, const FieldRange& range) {
    return figure_of(fields, key, range, sources_needed);
  };
  const auto optional = [&](const char* key, const FieldRange& range) {
    return fields.has(key) ? std::optional(needed(key, range)) : std::nullopt;
  };
  HardwareSpec spec;
  spec.name = fields.word("name");
  spec.aliases = fields.words("aliases");
  spec.vendor = fields.word("vendor", "");
  spec.memory_bytes = needed("memory_bytes", plausible_memory);
  spec.memory_bandwidth_bytes_per_second = needed("memory_bandwidth_bytes_per_second", plausible_bandwidth);
  const ConfigFields peaks = fields.object("peak_flops");
  peaks.require_keys({peak_names.begin(), peak_names.end()});
  if (peaks.keys().empty())
    fields.refuse("peak_flops", "{}", fmt::format("an object with at least one of {}", fmt::join(peak_names, ", ")));
  for (const std::string& name : peaks.keys())
    spec.peak_flops.emplace(name, figure_of(peaks, name.c_str(), plausible_peak, sources_needed));
  spec.link_bytes_per_second = optional("link_bytes_per_second", plausible_link);
  spec.watts = optional("watts", {});
  spec.gpus_per_node = optional("gpus_per_node", {.least = 1});
  spec.point_error = optional("point_error", {});
  if (spec.gpus_per_node && spec.gpus_per_node->value != std::floor(spec.gpus_per_node->value))
    fields.refuse("gpus_per_node", fmt::format("{}", spec.gpus_per_node->value), "a whole number");
  return spec;
}

SourcedRange range_of(const ConfigFields& fields, const char* key, double least, double most) {
  const ConfigFields its = fields.object(key);
  its.require_keys({"low", "value", "high", "sources", "note"});
  SourcedRange read;
  read.low = its.number("low", {least, most});
  read.value = its.number("value", {read.low, most});
  read.high = its.number("high", {read.value, most});
  read.sources = its.words("sources");
  read.note = its.word("note");
  return read;
}

EfficiencyDefaults efficiency_of(const core::EmbeddedFile& file) {
  const std::filesystem::path path = std::filesystem::path("presets") / file.name;
  const nlohmann::json document = traces::parse_config(file.content, path);
  const ConfigFields fields(path, document);
  fields.require_keys({"bandwidth_efficiency", "compute_efficiency", "fp8_compute_efficiency", "fp4_compute_efficiency",
                       "link_efficiency", "all_reduce_latency_seconds", "launch_seconds", "draft_launch_seconds",
                       "layer_seconds", "scheduling_seconds"});
  const auto share = [&](const char* key) { return range_of(fields, key, core::least_positive, 1); };
  const auto seconds = [&](const char* key) { return range_of(fields, key, 0, core::largest_double); };
  return {.bandwidth_efficiency = share("bandwidth_efficiency"),
          .compute_efficiency = share("compute_efficiency"),
          .link_efficiency = share("link_efficiency"),
          .fp8_compute_efficiency = share("fp8_compute_efficiency"),
          .fp4_compute_efficiency = share("fp4_compute_efficiency"),
          .all_reduce_latency_seconds = seconds("all_reduce_latency_seconds"),
          .launch_seconds = seconds("launch_seconds"),
          .layer_seconds = seconds("layer_seconds"),
          .scheduling_seconds = seconds("scheduling_seconds"),
          .draft_launch_seconds = seconds("draft_launch_seconds")};
}

std::vector<HardwareSpec> read_presets() {
  std::vector<HardwareSpec> presets;
  for (const core::EmbeddedFile& file : hardware_preset_files())
    presets.push_back(hardware_of(file.content, std::filesystem::path("presets/hardware") / file.name, true));
  std::sort(presets.begin(), presets.end(),
            [](const HardwareSpec& a, const HardwareSpec& b) { return a.name < b.name; });
  return presets;
}

/// The type that products with weights of a type are made in, and its peak.
const std::pair<const std::string, SourcedNumber>& peak_for(const HardwareSpec& hardware, NumberType type) {
  const std::vector<std::string_view> peaks = peaks_of(type);
  auto fastest = hardware.peak_flops.end();
  for (const std::string_view peak : peaks) {
    const auto found = hardware.peak_flops.find(std::string(peak));
    if (found == hardware.peak_flops.end()) continue;
    if (fastest == hardware.peak_flops.end() || found->second.value > fastest->second.value) fastest = found;
  }
  if (fastest != hardware.peak_flops.end()) return *fastest;
  throw std::invalid_argument(fmt::format("peak_flops_for: {} has no peak for {} weights, but must have one of {}",
                                          hardware.name.empty() ? "the hardware" : hardware.name, name_of(type),
                                          fmt::join(peaks, ", ")));
}

}  // namespace

double peak_flops_for(const HardwareSpec& hardware, NumberType type) { return peak_for(hardware, type).second.value; }

const SourcedRange& compute_efficiency_for(const HardwareSpec& hardware, NumberType type) {
  const EfficiencyDefaults& usual = efficiency_defaults();
  const std::string& computed = peak_for(hardware, type).first;
  return computed == "fp8"   ? usual.fp8_compute_efficiency
         : computed == "fp4" ? usual.fp4_compute_efficiency
                             : usual.compute_efficiency;
}

HardwareSpec read_hardware_spec(const std::filesystem::path& path) {
  return hardware_of(traces::small_file(path), path, false);
}

std::span<const HardwareSpec> hardware_presets() {
  static const std::vector<HardwareSpec> presets = read_presets();
  return presets;
}

const HardwareSpec* hardware_preset(std::string_view name) { return find_preset(hardware_presets(), name); }

const EfficiencyDefaults& efficiency_defaults() {
  static const EfficiencyDefaults defaults = efficiency_of(efficiency_preset_files().front());
  return defaults;
}

}  // namespace specdec::cost
